//! Faults: whatever dies, freezes or goes away, a job does not outlive its lease.
//!
//! The witnesses do not ask `lease`: the kernel knows which processes carry the key in their environment, and a job notes
//! the time while it lives. The servers run on the machine of the tests, so one clock times the jobs and their leases.

#[path = "../support/mod.rs"]
mod support;

mod database;
mod late;
mod late_start;
mod lease_dies;
mod no_threads;
mod once_per;
mod replicas;
mod stderr;
mod stopping;
mod streams;
mod sweep;

use support::job::{Journal, of_job, run, until_gone};
use support::table::column;
use support::{LIMIT, Lease, Running, Server};

/// A job that can't be asked to end. It notes the time, in seconds since 1970, some twenty times a second and has a child
/// that can't be asked either. No process is started for a note, so that a busy machine does not keep it from its notes.
const DEAF: &str = r#"
trap '' TERM INT HUP
mkfifo $0.pipe.$$ && exec 9<>$0.pipe.$$
tick() { while :; do echo "$EPOCHREALTIME" >>$0; read -t 0.05 -u 9; done; }
tick & echo started >>$0.started; tick"#;

/// A run of a [`DEAF`] job, as it is put together.
fn deaf(options: &[&str], key: &str, journal: &Journal) -> Lease {
    run(options, key, &["bash", "-c", DEAF, journal.path()])
}

/// Waits until a [`DEAF`] job works.
#[track_caller]
fn until_it_ticks(journal: &Journal) {
    support::until("the job works", || !journal.lines().is_empty());
}

/// The last moment at which a [`DEAF`] job is known to have lived.
#[track_caller]
fn last_tick(journal: &Journal) -> f64 {
    ticks(journal).last().copied().expect("a note")
}

fn ticks(journal: &Journal) -> Vec<f64> {
    let lines = journal.lines();
    lines.iter().filter_map(|line| line.parse().ok()).collect()
}

/// A moment from the row of `key`, in seconds since 1970 by the server's clock.
#[track_caller]
fn moment(server: &Server, key: &str, which: &str) -> f64 {
    column(server, key, &format!("extract(epoch from {which})"))
        .parse()
        .expect("a time")
}

/// Demands that all of a [`DEAF`] job was dead before its lease was over. The row may be read at any later time: nobody
/// renews it any more.
#[track_caller]
fn dead_in_time(server: &Server, key: &str, journal: &Journal) {
    assert!(of_job(key).is_empty(), "{:?}", of_job(key));
    let (last, expiry) = (last_tick(journal), moment(server, key, "expires_at"));
    assert!(
        last < expiry,
        "the job lived {} s past its lease",
        last - expiry
    );
}

/// Waits until neither `lease`, nor its watchdog, nor its job is left.
#[track_caller]
fn nothing_left(run: &Running, key: &str) {
    until_gone(key);
    run.wait_gone(LIMIT);
}
