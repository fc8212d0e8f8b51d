//! A fault on top of a fault: something dies while the job is being stopped.

use nix::sys::signal::Signal;

use crate::lease_dies::watchdog;
use crate::support::job::{Journal, of_job, run_script, steal, until_gone};
use crate::support::{Lease, keeper, key, shared, until};
use crate::{dead_in_time, deaf, nothing_left, until_it_ticks};

/// Long enough that a test can do something in it.
const SLOW: [&str; 6] = ["--ttl", "1m", "--heartbeat", "500ms", "--grace", "3s"];

#[test]
fn lease_killed_while_it_stops_its_job_leaves_the_rest_to_the_watchdog() {
    let (key, journal) = (key(), Journal::new());
    let job = deaf(&SLOW, &key, &journal).on(shared()).spawn();
    until_it_ticks(&journal);
    steal(shared(), &key);
    job.wait_for_line("the job is stopped");
    job.signal(Signal::SIGKILL);
    nothing_left(&job, &key);
}

#[test]
fn lease_frozen_while_it_stops_its_job_leaves_the_rest_to_the_watchdog() {
    let (key, journal) = (key(), Journal::new());
    let job = deaf(&SLOW, &key, &journal).on(shared()).spawn();
    until_it_ticks(&journal);
    steal(shared(), &key);
    job.wait_for_line("the job is stopped");
    job.signal(Signal::SIGSTOP);
    until_gone(&key);
    job.signal(Signal::SIGCONT);
    job.wait().expect_code(76);
}

#[test]
fn a_watchdog_killed_while_lease_stops_the_job_is_not_missed() {
    let (key, journal) = (key(), Journal::new());
    let job = deaf(&SLOW, &key, &journal).on(shared()).spawn();
    until_it_ticks(&journal);
    steal(shared(), &key);
    job.wait_for_line("the job is stopped");
    watchdog(&job).signal(Signal::SIGKILL);
    let watched = job.processes();
    job.wait().expect_code(76);
    assert!(of_job(&key).is_empty());
    assert!(
        !watched.iter().any(|process| process.is_alive()),
        "{watched:?}"
    );
}

#[test]
fn lease_killed_while_it_stops_what_its_job_has_left_takes_that_along() {
    let (key, journal) = (key(), Journal::new());
    let script = format!(
        "bash -c '{}' {} & while [ ! -s {1} ]; do sleep 0.02; done; exit 0",
        crate::DEAF.replace('\'', "'\\''"),
        journal.path()
    );
    let job = run_script(&SLOW, &key, &script).on(shared()).spawn();
    job.wait_for_line("left");
    assert!(!of_job(&key).is_empty());
    job.signal(Signal::SIGKILL);
    nothing_left(&job, &key);
    dead_in_time(shared(), &key, &journal);
}

#[test]
fn a_stopped_job_of_a_killed_lease_is_ended_too() {
    let (key, journal) = (key(), Journal::new());
    // The death of its parent orphans its group, and the kernel sends HUP to the stopped processes of an orphaned
    // group.
    let script = format!(
        "trap '' HUP; trap 'echo tidy >>{0}; exit 0' TERM; echo ready >>{0}; while :; do sleep 0.05; done",
        journal.path()
    );
    let job = run_script(&["--ttl", "1m", "--grace", "5s"], &key, &script)
        .on(shared())
        .spawn();
    journal.wait_for("ready");
    for process in of_job(&key) {
        process.signal(Signal::SIGSTOP);
    }
    job.signal(Signal::SIGKILL);
    nothing_left(&job, &key);
    // It was continued, and so could act on its TERM.
    assert_eq!(journal.lines(), ["ready", "tidy"]);
}

#[test]
fn a_job_that_starts_process_after_process_leaves_none() {
    let key = key();
    let script = "trap '' TERM; echo ready; while :; do sleep 1000 & sleep 0.01; done";
    let job = run_script(&["--ttl", "1m", "--grace", "300ms"], &key, script)
        .on(shared())
        .spawn();
    job.wait_for_line("ready");
    until("there are several", || of_job(&key).len() > 10);
    job.signal(Signal::SIGKILL);
    nothing_left(&job, &key);
}

#[test]
fn a_run_writes_no_file_whatever_its_end() {
    let dir = keeper::dir("empty");
    let path = dir.to_str().expect("a plain path");
    let start = |key: &str, end: &str| {
        let call: Lease = run_script(
            &["--ttl", "1m", "--grace", "300ms"],
            key,
            &format!("echo ready; {end}"),
        );
        let call = call
            .dir(&dir)
            .env("HOME", path)
            .env("TMPDIR", path)
            .env("XDG_RUNTIME_DIR", path);
        let job = call.on(shared()).spawn();
        job.wait_for_line("ready");
        job
    };
    let keys = [key(), key(), key()];
    start(&keys[0], "exit 0").wait().expect_code(0);
    let job = start(&keys[1], "sleep 1000");
    job.signal(Signal::SIGKILL);
    nothing_left(&job, &keys[1]);
    let job = start(&keys[2], "sleep 1000");
    job.signal(Signal::SIGTERM);
    job.wait().expect_signal(Signal::SIGTERM);
    let left: Vec<_> = std::fs::read_dir(&dir).expect("a directory").collect();
    assert!(left.is_empty(), "{left:?}");
}
