//! Black-box tests of what `lease run` does to processes: the watchdog, signals, the terminal, the job's end.

#[path = "../support/mod.rs"]
mod support;

mod forking;
mod job;
mod signals;
mod starts;
mod terminal;
mod watchdog;

use support::proc::Process;
use support::{Lease, Running, key, shared, until};

/// `lease run KEY OPTIONS -- sh -c SCRIPT`.
fn job(options: &[&str], script: &str) -> Lease {
    Lease::new(["run", &key()])
        .args(options)
        .args(["--", "sh", "-c", script])
        .on(shared())
}

/// What belongs to a run besides `lease` itself.
fn watchdogs(run: &Running) -> Vec<Process> {
    run.named("job-watchdog")
}

/// The one watchdog, once there is one and it is not `except`.
fn watchdog(run: &Running, except: Option<&Process>) -> Process {
    until("there is one watchdog", || {
        let found = watchdogs(run);
        let other = |found: &Process| except.is_none_or(|old| old.pid != found.pid);
        (found.len() == 1 && other(&found[0])).then(|| found[0].clone())
    })
}

/// The children of a shell that are there in spite of everything: one ignores TERM, one is a grandchild.
const STUBBORN: &str =
    "sh -c 'trap \"\" TERM; while :; do sleep 0.1; done' & sleep 1000 & echo ready; wait; wait";
