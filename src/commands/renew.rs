//! `lease renew`: extends a lease that is held.

use anyhow::anyhow;

use super::{Ending, failed, store, term, voice};
use crate::cli::{Common, Renew, TermFormat};
use crate::exit::Exit;
use crate::lease::{Loss, Renewal};
use crate::output;
use crate::timing::{Extension, Ttl};

/// Renews and prints the term.
///
/// # Errors
/// When an argument can't be valid, the database failed, or the answer can't be printed.
pub fn renew(common: &Common, args: Renew) -> anyhow::Result<Ending> {
    let ttl = Ttl::new(args.ttl)?;
    let extension = Extension::of(ttl, args.ttl_was_typed);
    let lease = term(args.key, args.holder, args.fence)?;
    let store = store(common)?.named(&lease.key);
    let key = lease.key.as_str();
    let renewed = store.renew(&lease, extension, store.limit()).map_err(|f| {
        let doubt = "until you know, count on the expiry that you knew before";
        failed(&format!("cannot renew {key}"), &f, doubt)
    })?;
    let grant = match renewed.answer {
        Renewal::Renewed(grant) => grant,
        Renewal::Lost(loss) => {
            // A term that never was is not lost.
            let what = match loss {
                Loss::Mismatch { .. } => format!("cannot renew {key}"),
                Loss::Taken(_)
                | Loss::Expired
                | Loss::Released
                | Loss::NoRow
                | Loss::NoTable(_) => {
                    format!("{key} is lost")
                }
            };
            voice(common).error(format!("{what}: {}", output::loss(&loss)));
            return Ok(Ending::Exit(Exit::Lost));
        }
    };
    let text = match args.format {
        TermFormat::Shell => output::term_shell(&grant),
        TermFormat::Json => output::term_json(&grant),
    };
    output::print(&text).map_err(|error| {
        anyhow!(
            "{key} is renewed until {}, but that can't be printed: {}",
            grant.expires_at,
            output::io_error(&error)
        )
    })?;
    Ok(Ending::Exit(Exit::Done))
}
