//! The dead man's switch: whatever happens to `lease`, the job is dead before its lease is over.

use std::time::{Duration, Instant};

use nix::sys::signal::Signal::{SIGHUP, SIGINT, SIGKILL, SIGTERM, SIGUSR1};

use super::support::job::until_gone;
use super::support::{Lease, key, programs, shared, skip, stays, until};
use super::{STUBBORN, job, watchdog, watchdogs};

#[test]
fn a_killed_lease_takes_the_whole_group_along_within_the_grace() {
    let run = job(&["--ttl", "60s", "--grace", "1s"], STUBBORN).spawn();
    run.wait_for_line("ready");
    let killed = Instant::now();
    run.signal(SIGKILL);
    until("what heeds TERM ends at once", || {
        run.named("sleep").len() <= 1
    });
    // A loaded machine may be late, but not by as much as the lease would last.
    run.wait_gone(Duration::from_secs(20));
    assert!(
        killed.elapsed() >= Duration::from_millis(900),
        "{:?}",
        killed.elapsed()
    );
    // No other process is left to say whose job it was.
    let line = run.wait_for_line("the watchdog has stopped the job of ");
    assert!(
        line.starts_with("lease: the watchdog has stopped the job of a_killed_lease"),
        "{line}"
    );
}

#[test]
fn a_killed_lease_leaves_no_time_to_a_job_past_its_deadline() {
    let run = job(
        &["--ttl", "6s", "--heartbeat", "1s", "--grace", "3s"],
        STUBBORN,
    )
    .spawn();
    run.wait_for_line("ready");
    let killed = Instant::now();
    run.signal(SIGKILL);
    run.wait_gone(Duration::from_secs(20));
    assert!(
        killed.elapsed() < Duration::from_secs(6),
        "{:?}",
        killed.elapsed()
    );
}

#[test]
fn a_watchdog_that_is_replaced_after_the_jobs_end_knows_what_the_job_has_left() {
    let run = job(
        &["--ttl", "60s", "--grace", "10s"],
        "(trap '' TERM; while :; do sleep 0.1; done) & exit 0",
    )
    .spawn();
    // One, or two while its `sleep` is counted.
    run.wait_for_line("in its process group");
    let first = watchdog(&run, None);
    first.signal(SIGKILL);
    watchdog(&run, Some(&first));
    run.signal(SIGKILL);
    run.wait_gone(Duration::from_secs(20));
}

#[test]
fn a_watchdog_that_hears_of_the_job_after_its_end_knows_what_the_job_has_left() {
    if programs::find("strace").is_none() {
        return skip("strace");
    }
    let key = key();
    let held = Lease::new(["claim", "--ttl", "1h", "--holder", "before", &key]).on(shared());
    held.output().expect_code(0);
    let script = "(trap '' TERM; sleep 1000) & exit 0";
    let options = ["--wait", "1h", "--ttl", "60s", "--grace", "5s"];
    let run = Lease::new(["run", &key])
        .args(options)
        .args(["--", "sh", "-c", script])
        .on(shared())
        .spawn();
    run.wait_for_line("waiting: ");
    let dog = watchdog(&run, None);
    // Everything that it is told waits for a while, as on a machine that has no time for it.
    let slow = Lease::program("strace")
        .args(["-e", "trace=read", "-e", "inject=read:delay_enter=2000000"])
        .args(["-p", &dog.pid.to_string()])
        .spawn();
    let is_traced = || {
        let status = format!("/proc/{}/status", dog.pid);
        let status = std::fs::read_to_string(status).unwrap_or_default();
        !status.contains("TracerPid:\t0\n")
    };
    until("it is traced, or can't be", || {
        is_traced() || slow.exit().is_some()
    });
    if !is_traced() {
        return skip("the right to trace a process");
    }
    Lease::new(["release", "--force", &key])
        .on(shared())
        .output()
        .expect_code(0);
    run.wait_for_line("in its process group");
    run.signal(SIGKILL);
    until_gone(&key);
    until("the watchdog ends", || !dog.is_alive());
}

#[test]
fn the_watchdog_heeds_no_signal_and_holds_nothing_but_its_own() {
    let run = job(&["--ttl", "60s"], "echo ready; read line; true")
        .open_input()
        .spawn();
    run.wait_for_line("ready");
    let dog = watchdog(&run, None);
    assert_eq!((dog.session, dog.group), (dog.pid, dog.pid));
    for signal in [SIGINT, SIGTERM, SIGHUP, SIGUSR1] {
        dog.signal(signal);
    }
    let fd = |n: i32| std::fs::read_link(format!("/proc/{}/fd/{n}", dog.pid));
    for n in [0, 1] {
        assert_eq!(fd(n).expect("open"), std::path::Path::new("/dev/null"));
    }
    let open = std::fs::read_dir(format!("/proc/{}/fd", dog.pid))
        .expect("fd")
        .count();
    assert!(open <= 6, "{open} descriptors");
    assert_eq!(
        std::fs::read_link(format!("/proc/{}/cwd", dog.pid)).expect("cwd"),
        std::path::Path::new("/")
    );
    stays("the watchdog", Duration::from_millis(100), || {
        dog.is_alive()
    });
    run.write("end\n");
    let pid = run.pid();
    run.wait_exit(Duration::from_secs(20));
    assert!(!dog.is_alive(), "the watchdog of {pid} outlives the run");
}

#[test]
fn a_run_that_starts_no_job_leaves_no_watchdog() {
    let run = Lease::new(["run", &key(), "--", "/no/such/program"])
        .on(shared())
        .spawn();
    run.wait_exit(Duration::from_secs(20));
    assert!(watchdogs(&run).is_empty());
    let output = run.wait().expect_code(127);
    assert_eq!(output.stderr.lines().count(), 1, "{output}");
}

#[test]
fn a_job_that_may_outlive_its_lease_has_no_watchdog() {
    let run = job(&["--on-loss", "continue"], "echo ready; read line")
        .open_input()
        .spawn();
    run.wait_for_line("ready");
    assert!(watchdogs(&run).is_empty());
    run.write("end\n");
    run.wait().expect_code(0);
}
