//! `lease claim`: claims a lease for a script.

use std::sync::mpsc;
use std::time::Duration;

use anyhow::{Context as _, anyhow};

use super::{Ending, fresh_holder, outer_holder, reporter, store, term_text, too_slow, verbosity};
use crate::cli::{ClaimArgs, Common};
use crate::clock::BootTime;
use crate::event_loop::{Claimant, EventLoop, Input};
use crate::exit::Exit;
use crate::lease::Grant;
use crate::output::{self, StderrWriter};
use crate::signals;
use crate::store::{Applied, Store};
use crate::supervise::{Granted, Outcome, Plan, Purpose};
use crate::text::os_error_text;
use crate::timing::{self, Extension, Ttl};

/// Claims and prints the term.
///
/// # Errors
/// When an argument can't be valid, the database failed, or the answer can't be printed in time. In the last case, the
/// lease is released, unless its holder had it before.
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
    let stderr = StderrWriter::start(verbosity(common)).context("cannot start a thread")?;
    let plan = Plan {
        purpose: Purpose::Claim,
        holder: holder.clone(),
        holder_is_fresh: is_fresh,
        extension,
        wait: args.acquire.wait,
        eager: args.acquire.eager,
        db_timeout: store.limit(),
        outer_holder: outer_holder(&key),
    };
    let mut asked = store.clone().reporting_to(reporter(&stderr));
    if plan.eager {
        asked = asked.keeping_connections();
    }
    let claimant = Claimant {
        store: asked,
        key: key.clone(),
        holder: holder.clone(),
        extension,
        once_per: None,
    };
    let outcome = EventLoop::new(plan, claimant, None, stderr, (sender, inputs))
        .context("cannot start a thread")?
        .run();
    let Outcome::Granted(granted) = outcome else {
        return Ok(Ending::of(&outcome, args.acquire.conflict_exit_code));
    };
    let Granted { grant, sent, .. } = &granted;
    let give_up = || fate(&store, grant, is_fresh);
    let left = timing::left(*sent, grant.expires_in, BootTime::now());
    let is_new = is_fresh || grant.is_new;
    let text = term_text(grant, args.format, left, Some(is_new));
    if granted.deadline.has_passed() {
        // The answer came in time, so this process was stopped since.
        let what = format!("cannot claim {}", key.as_str());
        return Err(too_slow(&what, ttl, &give_up()).into());
    }
    output::print(&text).map_err(|error| {
        anyhow!(
            "cannot print the claim of {}: {}; {}",
            key.as_str(),
            os_error_text(&error),
            give_up()
        )
    })?;
    Ok(Ending::Exit(Exit::Done))
}

/// Releases a term that could not be printed, and says what happened to it. No one else knows the term, so no one else
/// could release it. If its holder had it before, it is kept.
fn fate(store: &Store, grant: &Grant, holder_is_fresh: bool) -> String {
    let expiry = format!("expires at {}", grant.expires_at);
    if !holder_is_fresh && !grant.is_new {
        let holder = grant.term.holder.as_str();
        return format!("{holder} held it before, and it {expiry}");
    }
    match store.release(&grant.term, Duration::ZERO, store.limit()) {
        Ok(_) => "the lease was released".to_owned(),
        Err(failure) => output::not_released(
            grant.term.key.as_str(),
            failure.applied == Applied::Unknown,
            &failure.to_string(),
            &expiry,
        ),
    }
}
