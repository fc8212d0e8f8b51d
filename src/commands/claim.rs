//! `lease claim`: takes a lease, for scripts.

use std::sync::mpsc;
use std::time::Duration;

use anyhow::{Context as _, anyhow};

use super::{Ending, claim_failed, fresh_holder, gave_up, store, voice, waiting};
use crate::acquire::{Acquired, Input, Wanted, acquire, is_nobody_elses};
use crate::cli::{ClaimArgs, Common, TermFormat};
use crate::exit::Exit;
use crate::job::Ended;
use crate::output;
use crate::process::Children;
use crate::signals;
use crate::store::Sent;
use crate::timing::{Extension, Ttl};

/// Claims and prints the term.
///
/// # Errors
/// When an argument can't be valid, the database failed, or the answer can't be printed: then the lease is released, unless
/// its holder had it before.
pub fn claim(common: &Common, args: ClaimArgs) -> anyhow::Result<Ending> {
    let ttl = Ttl::new(args.acquire.ttl)?;
    let is_fresh = args.holder.is_none();
    let (holder, extension) = match args.holder {
        Some(holder) => (holder, Extension::of(ttl, args.acquire.ttl_was_typed)),
        None => (
            fresh_holder(args.acquire.name.as_deref())?,
            Extension::To(ttl),
        ),
    };
    let store = store(common)?.named(&args.key);
    let voice = voice(common);
    let key = args.key;

    let (sender, inputs) = mpsc::channel::<Input>();
    signals::listen(sender.clone()).context("cannot catch signals")?;
    let wanted = Wanted {
        store: store.clone(),
        key: key.clone(),
        holder: holder.clone(),
        is_fresh,
        extension,
        wait: args.acquire.wait,
    };
    let (acquired, signal) = acquire(wanted, &inputs, sender, &mut Children::default(), |w| {
        voice.info(waiting(&w, &key));
    })
    .context("cannot start a thread")?;
    let interrupted = |signal: Option<i32>| Ending::As {
        ended: signal.map_or(Ended::Code(Exit::Failed.code()), Ended::Signal),
        whole_group: false,
    };
    let grant = match acquired {
        Ok(Acquired::Granted(Sent { answer, .. })) => answer,
        Ok(Acquired::Held(row)) => {
            voice.info(gave_up(args.acquire.wait, &row));
            return Ok(Ending::Code(args.acquire.conflict_exit_code));
        }
        Ok(Acquired::Interrupted) => return Ok(interrupted(signal)),
        Err(failure) => return Err(claim_failed(failure, &key, &holder, extension)),
    };
    let may_give_back = is_nobody_elses(is_fresh, &grant);
    if signal.is_some() {
        // It came between the grant and now: nobody waits for the answer any more.
        if may_give_back {
            store
                .release(&grant.lease, Duration::ZERO, store.limit())
                .with_context(|| {
                    format!(
                        "interrupted, and {} stays until {}",
                        key.as_str(),
                        grant.expires_at
                    )
                })?;
        }
        return Ok(interrupted(signal));
    }
    let text = match args.format {
        TermFormat::Shell => output::term_shell(&grant),
        TermFormat::Json => output::term_json(&grant),
    };
    if let Err(error) = output::print(&text) {
        let fate = if may_give_back {
            // Nobody knows of this term, so nobody could ever release it.
            match store.release(&grant.lease, Duration::ZERO, store.limit()) {
                Ok(_) => "the lease was released".to_owned(),
                Err(failure) => format!(
                    "it could not be released, so it stays until {}: {failure}",
                    grant.expires_at
                ),
            }
        } else {
            format!(
                "{} had it before, so it stays until {}",
                holder.as_str(),
                grant.expires_at
            )
        };
        return Err(anyhow!(
            "cannot print the claim of {}: {}; {fate}",
            key.as_str(),
            output::io_error(&error)
        ));
    }
    Ok(Ending::Exit(Exit::Done))
}
