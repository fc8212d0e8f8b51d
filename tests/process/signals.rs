//! What is sent to `lease` reaches the job: that very signal, once.

use std::time::Duration;

use nix::sys::signal::Signal::{SIGCONT, SIGHUP, SIGINT, SIGTERM, SIGTSTP};

use super::job;
use super::support::job::{around, of_job};
use super::support::{Lease, keeper, key, programs, shared, skip, until};

fn count(text: &str, part: &str) -> usize {
    text.lines().filter(|line| *line == part).count()
}

#[test]
fn dispositions_and_mask_are_those_that_lease_was_started_with() {
    let status = "grep -E '^Sig(Blk|Ign|Cgt)' /proc/self/status";
    for start in [
        "",
        "trap '' HUP;",
        "trap '' INT QUIT;",
        "trap '' PIPE;",
        "trap '' USR1 TSTP CHLD;",
    ] {
        let plain = Lease::program("bash")
            .args(["-c", &format!("{start} exec {status}")])
            .output();
        let line = format!("{start} exec \"$LEASE\" run \"$0\" -- {status}");
        let under = around("bash", &line)
            .arg(key())
            .on(shared())
            .output()
            .expect_code(0);
        assert_eq!(plain.stdout, under.stdout, "{start}");
    }
}

#[test]
fn a_stop_and_its_continuation_arrive_in_their_order() {
    // In a session without a terminal, no shell could continue a stopped group, so the kernel would not have stopped
    // the job either if lease were not there.
    let run = job(&[], "echo ready; read line; echo end")
        .open_input()
        .spawn();
    run.wait_for_line("ready");
    for _ in 0..20 {
        run.signal(SIGTSTP);
        run.signal(SIGCONT);
    }
    run.write("line\n");
    run.wait_for_line("end");
    run.wait().expect_code(0);
}

#[test]
fn a_second_term_kills_a_job_that_is_being_stopped() {
    let name = key();
    let run = Lease::new([
        "run",
        &name,
        "--ttl",
        "60s",
        "--heartbeat",
        "200ms",
        "--grace",
        "20s",
    ])
    .args([
        "--",
        "sh",
        "-c",
        "trap 'echo asked' TERM; echo ready; while :; do sleep 0.05; done",
    ])
    .on(shared())
    .spawn();
    run.wait_for_line("ready");
    Lease::new(["release", "--force", &name])
        .on(shared())
        .output()
        .expect_code(0);
    run.wait_for_line("asked");
    run.signal(SIGTERM);
    let output = run.wait_within(Duration::from_secs(10)).expect_code(76);
    assert_eq!(count(&output.stdout, "asked"), 1, "{output}");
}

#[test]
fn as_process_1_of_a_container_it_passes_signals_on_and_reaps_orphans() {
    let possible = Lease::program("unshare")
        .args(["-pf", "--mount-proc", "true"])
        .output();
    if possible.code != Some(0) {
        skip("the right to make a pid namespace");
        return;
    }
    // The orphan leaves the job's group, so that it is not a leftover, and becomes a child of process 1.
    let script = "trap 'echo got-TERM; exit 9' TERM; (setsid sleep 0.1 &); echo ready; while :; do sleep 0.05; done";
    let run = job(&[], script)
        .wrapped(["unshare", "-pf", "--mount-proc", "--kill-child"])
        .spawn();
    run.wait_for_line("ready");
    let lease = until("process 1", || run.named("lease").into_iter().next());
    until("the orphan was reaped", || {
        run.named("sleep").iter().all(|p| p.parent != lease.pid)
            && super::support::proc::zombies(lease.pid).is_empty()
    });
    lease.signal(SIGTERM);
    run.wait_for_line("got-TERM");
    run.wait_exit(Duration::from_secs(20));
    run.wait_gone(Duration::from_secs(20));
    run.wait().expect_code(9);
    // A signal has no effect on process 1, so its exit code tells.
    job(&[], "kill -9 $$")
        .wrapped(["unshare", "-pf", "--mount-proc"])
        .output()
        .expect_code(137);
}

/// Between the installation of a handler and the moment when it does something there is a gap, and a signal that comes in it
/// must not get lost: strace sends each one there.
#[test]
fn a_signal_that_comes_while_its_handler_is_being_installed_ends_the_run() {
    let file = keeper::dir("trace").join("calls");
    let traced = |options: &[&str]| {
        Lease::program("strace")
            .args(["-qq", "-e", "trace=rt_sigaction", "-o"])
            .arg(&file)
            .args(options)
    };
    if programs::find("strace").is_none() || traced(&["true"]).output().code != Some(0) {
        return skip("strace");
    }
    let lease = programs::lease();
    traced(&[lease, "run", &key(), "--", "true"])
        .on(shared())
        .output()
        .expect_code(0);
    let calls = std::fs::read_to_string(&file).expect("an account");
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        let installs = format!("rt_sigaction({signal}, {{");
        let nth = calls.lines().position(|line| line.starts_with(&installs));
        let nth = nth.expect("the handler is installed") + 1;
        let inject = format!("inject=rt_sigaction:signal={signal}:when={nth}");
        let key = format!("{}-{signal}", key());
        let run = traced(&["-e", &inject, lease, "run", &key, "--", "sleep", "1000"])
            .on(shared())
            .spawn();
        // strace ends as what it traces.
        run.wait().expect_signal(signal);
        assert!(of_job(&key).is_empty(), "{signal}");
    }
}
