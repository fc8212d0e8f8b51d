//! `lease claim`: takes a lease, for scripts.

use std::time::Duration;

use anyhow::anyhow;

use super::{Ending, fresh_holder, store, voice};
use crate::acquire::{Acquired, Waiting, acquire};
use crate::cli::{ClaimArgs, Common, TermFormat};
use crate::exit::Exit;
use crate::interrupt::Interrupt;
use crate::output;
use crate::store::{Applied, Sent};
use crate::timing::{Ttl, human};

/// Claims and prints the term.
///
/// # Errors
/// When an argument can't be valid, the database failed, or the answer can't be printed: then the lease is released.
pub fn claim(common: &Common, args: ClaimArgs) -> anyhow::Result<Ending> {
    let ttl = Ttl::new(args.acquire.ttl)?;
    let holder = match args.holder {
        Some(holder) => holder,
        None => fresh_holder(args.acquire.name.as_deref())?,
    };
    let store = store(common)?.named(&args.key);
    let voice = voice(common);
    let key = args.key;

    static INTERRUPT: Interrupt = Interrupt::new();
    if args.acquire.wait.is_some() {
        // Refused where a signal is ignored already, as INT is in a script's background: then it stays ignored.
        let _ = ctrlc::try_set_handler(|| INTERRUPT.raise());
    }
    let tell = |waiting: Waiting<'_>| match waiting {
        Waiting::For(row) => voice.info(format!("waiting: {}", output::held_by(row))),
        Waiting::Failed(failure) => {
            voice.info(format!("waiting: cannot claim {}: {failure}", key.as_str()))
        }
    };
    let acquired = acquire(
        &store,
        &key,
        &holder,
        ttl,
        args.acquire.wait,
        &INTERRUPT,
        tell,
    );
    let grant = match acquired {
        Ok(Acquired::Granted(Sent { answer, .. })) => answer,
        Ok(Acquired::Held(row)) => {
            voice.info(output::held_by(&row));
            return Ok(Ending::Code(args.acquire.conflict_exit_code));
        }
        Ok(Acquired::Interrupted) => return Ok(Ending::Code(130)),
        Err(failure) => {
            let mut context = format!("cannot claim {}", key.as_str());
            if failure.applied == Applied::Unknown {
                context = format!(
                    "it is unknown whether {} was claimed; if it was, {} has it for at most {} (`lease claim --holder` with this holder asks again)",
                    key.as_str(),
                    holder.as_str(),
                    human(ttl.get()),
                );
            }
            return Err(anyhow::Error::new(failure).context(context));
        }
    };
    let text = match args.format {
        TermFormat::Shell => output::term_shell(&grant),
        TermFormat::Json => output::term_json(&grant),
    };
    if let Err(error) = output::print(&text) {
        // Nobody knows of this term, so nobody could ever release it.
        let released = store.release(&grant.lease, Duration::ZERO, store.limit());
        let fate = match released {
            Ok(_) => "the lease was released".to_owned(),
            Err(failure) => format!(
                "and it could not be released, so it stays until {}: {failure}",
                grant.expires_at
            ),
        };
        return Err(anyhow!(
            "cannot print the claim of {}: {error}; {fate}",
            key.as_str()
        ));
    }
    Ok(Ending::Exit(Exit::Done))
}
