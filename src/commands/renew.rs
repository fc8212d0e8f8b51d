//! `lease renew`: renews a lease that the caller holds.

use anyhow::anyhow;

use super::{Ending, failed, store, term, term_text, too_slow, verbosity};
use crate::cli::{Common, Renew};
use crate::clock::BootTime;
use crate::exit::Exit;
use crate::lease::{Loss, Renewal, Term};
use crate::output;
use crate::store::{Sent, Store};
use crate::text::os_error_text;
use crate::timing::{self, Extension, Ttl};

/// Renews and prints the term.
///
/// # Errors
/// When an argument can't be valid, the database failed, or the answer can't be printed.
pub fn renew(common: &Common, args: Renew) -> anyhow::Result<Ending> {
    let ttl = Ttl::new(args.ttl)?;
    let extension = Extension::of(ttl, args.ttl_was_typed);
    let term = term(args.key, args.holder, args.fence)?;
    let store = store(common)?.named(&term.key);
    let key = term.key.as_str();
    let renew = || {
        store.renew(&term, extension, store.limit()).map_err(|f| {
            let doubt = "until you know, rely only on the old expiry";
            let (cannot, was) = (format!("cannot renew {key}"), format!("{key} was renewed"));
            failed(&cannot, &was, &f, doubt)
        })
    };
    let mut asked_again = false;
    loop {
        let Sent { answer, at, .. } = renew()?;
        let grant = match answer {
            Renewal::Renewed(grant) => grant,
            Renewal::Lost(loss) => {
                verbosity(common).error(lost(&store, &term, &loss));
                return Ok(Ending::Exit(Exit::Lost));
            }
        };
        let left = timing::left(at, grant.expires_in, BootTime::now());
        let text = term_text(&grant, args.format, left, None);
        if !timing::trusted_until(at, grant.expires_in).has_passed() {
            output::print(&text).map_err(|error| {
                anyhow!(
                    "{key} was renewed until {}, but this cannot be printed: {}",
                    grant.expires_at,
                    os_error_text(&error)
                )
            })?;
            return Ok(Ending::Exit(Exit::Done));
        }
        // A second slow answer is final.
        if asked_again {
            let fate = format!("it expires at {}", grant.expires_at);
            return Err(too_slow(&format!("cannot renew {key}"), ttl, &fate).into());
        }
        asked_again = true;
    }
}

/// After a mismatch it is not said that the lease is lost: such a term may never have existed.
fn lost(store: &Store, term: &Term, loss: &Loss) -> String {
    let key = term.key.as_str();
    let what = match loss {
        Loss::Mismatch { .. } => format!("cannot renew {key}"),
        Loss::Taken(_) | Loss::Expired | Loss::Released | Loss::NoRow | Loss::NoTable(_) => {
            format!("{key} is lost")
        }
    };
    format!("{what}: {}", super::why_lost(store, term, loss))
}
