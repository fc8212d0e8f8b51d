//! `lease run`: runs a job while holding a lease.

use std::sync::mpsc;

use anyhow::Context as _;

use super::{Ending, fresh_holder, outer_holder, reporter, store, verbosity};
use crate::cli::{Common, LogFormat, Run};
use crate::event_loop::{Claimant, EventLoop, Input, JobControl};
use crate::output::{self, StderrWriter};
use crate::record::Said;
use crate::signals;
use crate::supervise::{JobPlan, Plan, Purpose};
use crate::timing::{self, Extension, Timing, Ttl};

/// Claims, runs the job, keeps the lease, releases.
///
/// # Errors
/// When an argument can't be valid, or a watchdog, a thread or a signal handler can't be started.
pub fn run(common: &Common, args: Run) -> anyhow::Result<Ending> {
    match args.log_format {
        LogFormat::Text => {}
        LogFormat::Json => output::log_as_json(args.key.as_str()),
    }
    let ttl = Ttl::new(args.acquire.ttl)?;
    let db_timeout = timing::db_timeout(common.db_timeout)?;
    let timing = Timing::new(ttl, args.heartbeat, args.grace, db_timeout)?;
    let hold = timing::hold_at_least(args.hold_at_least)?;
    let holder = fresh_holder(args.acquire.name.as_deref())?;
    output::log_holder(holder.as_str());
    let store = store(common)?.named(&args.key);

    let said = Said {
        program: args.command.first().and_then(|job| Said::program_of(job)),
        ..store.said().clone()
    };

    // First, because the watchdog is a fork: there must be one thread, and no connection that it could inherit.
    let job = JobControl::new(args.key.as_str(), args.command, timing, args.on_loss)
        .context("cannot start the watchdog")?;
    let (sender, inputs) = mpsc::channel::<Input>();
    signals::listen(sender.clone()).context("cannot catch signals")?;
    let stderr = StderrWriter::start(verbosity(common)).context("cannot start a thread")?;
    let store = store
        .reporting_to(reporter(&stderr))
        .saying(said)
        .keeping_connections();

    let plan = Plan {
        purpose: Purpose::Job(JobPlan {
            heartbeat: timing.heartbeat(),
            grace: timing.grace(),
            on_loss: args.on_loss,
            hold,
        }),
        holder: holder.clone(),
        holder_is_fresh: true,
        extension: Extension::To(ttl),
        wait: args.acquire.wait,
        eager: args.acquire.eager,
        db_timeout,
        outer_holder: outer_holder(&args.key),
    };
    let claimant = Claimant {
        store,
        key: args.key,
        holder,
        extension: plan.extension,
        once_per: args.once_per,
    };
    let outcome = EventLoop::new(plan, claimant, Some(job), stderr, (sender, inputs))
        .context("cannot start a thread")?
        .run();
    Ok(Ending::of(&outcome, args.acquire.conflict_exit_code))
}
