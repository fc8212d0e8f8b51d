//! `lease run --wait`: when a wait ends, and what has happened by then.

use std::time::{Duration, Instant};

use nix::sys::signal::Signal;

use crate::support::job::{Journal, run, run_script};
use crate::support::{key, programs, shared};
use crate::{claimed, column, with_term};

#[test]
fn an_interrupted_wait_ends_at_once_and_starts_and_claims_nothing() {
    for signal in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP] {
        let (key, journal) = (key(), Journal::new());
        let held = claimed(&key, &[]);
        let script = format!("echo started >>{}", journal.path());
        let waiter = run_script(&["--wait", "10m"], &key, &script)
            .on(shared())
            .spawn();
        waiter.wait_for_line("waiting: ");
        let asked = Instant::now();
        waiter.signal(signal);
        let out = waiter.wait().expect_signal(signal);
        assert!(asked.elapsed() < Duration::from_secs(5), "{out}");
        assert_eq!(column(shared(), &key, "holder"), held.holder);
        with_term("release", &held).output().expect_code(0);
        assert_eq!(column(shared(), &key, "holder"), "", "nobody else came");
        assert!(journal.lines().is_empty(), "{journal:?}");
    }
}

#[test]
fn a_waiting_run_starts_its_job_when_the_lease_is_released() {
    let key = key();
    let held = claimed(&key, &["--ttl", "10m"]);
    let waiter = run(&["--wait", "forever"], &key, &["echo", "mine"])
        .on(shared())
        .spawn();
    waiter.wait_for_line("waiting: ");
    with_term("release", &held).output().expect_code(0);
    let out = waiter.wait().expect_code(0);
    assert_eq!(out.stdout, "mine\n");
}

#[test]
fn a_waiting_run_takes_the_lease_of_a_dead_holder_at_its_expiry() {
    let key = key();
    let dead = claimed(&key, &["--ttl", "3s"]);
    let out = run_script(&["--wait", "1m"], &key, "echo $FENCE")
        .on(shared())
        .output()
        .expect_code(0);
    let fence: i64 = out.stdout.trim().parse().expect("a fence");
    // By the server's clock, in microseconds: not before the expiry, and not a ttl later.
    let gap = fence - (dead.fence + 3_000_000);
    assert!((0..2_000_000).contains(&gap), "{gap} us after the expiry");
}

#[test]
fn a_run_inside_its_own_run_is_reported_and_never_waits() {
    for wait in [&[][..], &["--wait", "forever"]] {
        let key = key();
        let lease = programs::lease();
        let mut inner = vec![lease, "run"];
        inner.extend(wait);
        inner.extend([&*key, "--", "echo", "ran"]);
        let out = run(&[], &key, &inner).on(shared()).output().expect_code(75);
        assert_eq!(out.stdout, "");
        assert!(
            out.stderr.contains(&format!(
                "cannot claim {key}: it is held by the run or script that started this command"
            )),
            "{out}"
        );
        let claim = [lease, "claim", "--wait", "forever", &*key];
        run(&[], &key, &claim).on(shared()).output().expect_code(75);
    }
}

#[test]
fn a_run_inside_a_run_of_another_key_claims_its_own() {
    let (outer, inner) = (key(), key());
    let lease = programs::lease();
    let out = run(&[], &outer, &[lease, "run", &*inner, "--", "echo", "ran"])
        .on(shared())
        .output()
        .expect_code(0);
    assert_eq!(out.stdout, "ran\n");
}
