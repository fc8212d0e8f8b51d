//! `lease claim`: takes a lease, for scripts.

use std::sync::Arc;
use std::sync::mpsc;
use std::time::Duration;

use anyhow::{Context as _, anyhow};

use super::{Ending, fresh_holder, outer_holder, store, voice};
use crate::cli::{ClaimArgs, Common, TermFormat};
use crate::event_loop::{Claimant, EventLoop, Input};
use crate::exit::Exit;
use crate::output::{self, Speaker};
use crate::signals;
use crate::supervise::{Granted, Outcome, Plan, Purpose};
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
    let key = args.key;

    let (sender, inputs) = mpsc::channel::<Input>();
    signals::listen(sender.clone()).context("cannot catch signals")?;
    let speaker = Speaker::start(voice(common));
    let plan = Plan {
        purpose: Purpose::Claim,
        holder: holder.clone(),
        holder_is_fresh: is_fresh,
        extension,
        wait: args.acquire.wait,
        db_timeout: store.limit(),
        outer_holder: outer_holder(&key),
    };
    let claimant = Claimant {
        store: store.clone().told_to(Arc::new(speaker.narrator())),
        key: key.clone(),
        holder: holder.clone(),
        extension,
    };
    let outcome = EventLoop::new(plan, claimant, None, speaker, (sender, inputs))
        .context("cannot start a thread")?
        .run();
    let Outcome::Granted(Granted { grant, .. }) = outcome else {
        return Ok(Ending::of(&outcome, args.acquire.conflict_exit_code));
    };
    let may_give_back = is_fresh || grant.is_new;
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
