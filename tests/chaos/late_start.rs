//! Something delays `lease` between its last look at the clock and the job's first instruction.
//!
//! strace(1) holds one system call up, always the same one and for the same time. A busy machine, a suspend and a slow
//! fork do that now and then.

use crate::nothing_left;
use crate::support::job::{Journal, run_script};
use crate::support::table::column;
use crate::support::{Lease, Terminal, keeper, key, programs, shared, skip};

/// A run whose job notes that it acts. `injections` are strace's, as in `setpgid:delay_enter=3500000`: the delay is in
/// microseconds.
fn delayed(options: &[&str], key: &str, journal: &Journal, injections: &[&str]) -> Lease {
    let job = format!("echo acted >>{}; exec sleep 1000", journal.path());
    run_script(options, key, &job).wrapped(injecting(injections))
}

/// The words of strace(1) in front of a command, for these injections into its system calls.
pub(crate) fn injecting(injections: &[&str]) -> Vec<String> {
    let calls: Vec<_> = injections
        .iter()
        .map(|i| i.split(':').next().expect("a call"))
        .collect();
    let mut wrapper: Vec<String> = ["strace", "-f", "-qq", "-o"].map(str::to_owned).to_vec();
    wrapper.push(keeper::dir("trace").join("calls").display().to_string());
    wrapper.extend(["-e".to_owned(), format!("trace={}", calls.join(","))]);
    for injection in injections {
        wrapper.extend(["-e".to_owned(), format!("inject={injection}")]);
    }
    wrapper
}

pub(crate) fn can_trace() -> bool {
    let can = programs::find("strace").is_some()
        && Lease::program("strace")
            .args(["-qq", "-o/dev/null", "true"])
            .output()
            .code
            == Some(0);
    if !can {
        skip("strace");
    }
    can
}

/// The child's first step after the fork, and how long it lasts: longer than the lease of 3 s.
const SLOW_CHILD: &str = "setpgid:delay_enter=3500000";
/// Each signal to the job's group comes a second late, so that the watchdog's KILL does not hide a job that was started.
const LATE_KILL: &str = "pidfd_send_signal:delay_enter=1000000";

#[test]
fn a_job_whose_lease_expired_while_it_was_being_started_does_not_start() {
    if !can_trace() {
        return;
    }
    let both = [
        (
            ["--ttl", "3s", "--on-loss", "stop"],
            [SLOW_CHILD, LATE_KILL],
        ),
        (
            ["--ttl", "3s", "--on-loss", "continue"],
            [SLOW_CHILD, LATE_KILL],
        ),
        // The fork of the job is the second one of its kind; the first one is the watchdog's.
        (
            ["--ttl", "3s", "--on-loss", "stop"],
            ["clone:delay_enter=3500000:when=2", LATE_KILL],
        ),
    ];
    std::thread::scope(|scope| {
        for (options, injections) in both {
            let key = format!("{}-{}", key(), options[3]);
            scope.spawn(move || {
                let journal = Journal::new();
                let run = delayed(&options, &key, &journal, &injections)
                    .on(shared())
                    .spawn();
                run.wait_exit(crate::support::LIMIT);
                nothing_left(&run, &key);
                let out = run.wait().expect_code(76);
                assert_eq!(journal.lines(), Vec::<String>::new(), "{out}");
                let said = out
                    .stderr
                    .lines()
                    .filter(|line| line.starts_with("lease: "));
                assert_eq!(said.count(), 1, "{out}");
                assert!(out.stderr.contains("the job was not started"), "{out}");
                assert_eq!(column(shared(), &key, "holder"), "", "{out}");
            });
        }
    });
}

#[test]
fn a_job_that_would_be_stopped_at_once_does_not_start_and_its_lease_is_released() {
    if !can_trace() {
        return;
    }
    let (key, journal) = (key(), Journal::new());
    // It would be asked to stop 2.4 s after the claim, and its lease expires after 60 s.
    let options = ["--ttl", "60s", "--grace", "57s"];
    let slow = ["setpgid:delay_enter=4000000"];
    let run = delayed(&options, &key, &journal, &slow)
        .on(shared())
        .spawn();
    run.wait_exit(crate::support::LIMIT);
    nothing_left(&run, &key);
    let out = run.wait().expect_code(76);
    assert_eq!(journal.lines(), Vec::<String>::new(), "{out}");
    assert!(out.stderr.contains("the job was not started"), "{out}");
    let row = column(
        shared(),
        &key,
        "holder || '-' || (expires_at <= clock_timestamp())::text",
    );
    assert_eq!(row, "-true", "{out}");
}

#[test]
fn a_job_that_is_not_started_because_another_holder_has_its_lease_names_the_new_holder() {
    if !can_trace() {
        return;
    }
    let (key, journal) = (key(), Journal::new());
    let options = ["-v", "--ttl", "3s"];
    let slow = ["setpgid:delay_enter=6000000"];
    let late = delayed(&options, &key, &journal, &slow)
        .on(shared())
        .spawn();
    late.wait_for_line("claimed");
    let next = run_script(
        &["--wait", "1m", "--name", "next"],
        &key,
        "echo next; exec sleep 1000",
    )
    .on(shared())
    .spawn();
    next.wait_for_line("next");
    let out = late.wait().expect_code(76);
    assert_eq!(journal.lines(), Vec::<String>::new(), "{out}");
    assert!(out.stderr.contains("the job was not started"), "{out}");
    assert!(
        out.stderr
            .contains("was lost before the job was started: next-"),
        "{out}"
    );
}

#[test]
fn a_child_that_is_held_up_in_its_last_step_before_the_exec_does_not_start_the_job() {
    if !can_trace() {
        return;
    }
    let (key, journal) = (key(), Journal::new());
    // Taking the terminal is the one ioctl of the child. Others have made theirs before the claim, or are not held up.
    // Without a watchdog, no other process would notice.
    let options = ["--ttl", "60s", "--grace", "57s", "--on-loss", "continue"];
    let slow = ["ioctl:delay_exit=4000000:when=1"];
    let tty = Terminal::spawn(&delayed(&options, &key, &journal, &slow).on(shared()));
    assert_eq!(
        tty.wait_exit(crate::support::LIMIT).code(),
        Some(76),
        "{}",
        tty.screen()
    );
    assert_eq!(journal.lines(), Vec::<String>::new(), "{}", tty.screen());
}
