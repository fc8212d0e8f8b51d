//! The line at a terminal that says whom a run or a claim waits for.

use nix::sys::signal::Signal;

use crate::support::job::{Journal, run_script};
use crate::support::pty::{INTERRUPT, SUSPEND, Terminal, interactive};
use crate::support::{LIMIT, Lease, key, shared, until};
use crate::{claimed, lease, with_term};

const SIZE: (u16, u16) = (24, 80);

/// The lines of the terminal that a person sees and that are not empty.
fn seen(terminal: &Terminal) -> Vec<String> {
    let (mut lines, _) = terminal.seen(SIZE);
    lines.retain(|line| !line.is_empty());
    lines
}

/// Waits until the line is there and says so.
#[track_caller]
fn until_it_says(terminal: &Terminal, parts: &[&str]) {
    until(&format!("the line says {parts:?}"), || {
        seen(terminal).last().is_some_and(|last| {
            last.starts_with("lease: waiting: ") && parts.iter().all(|part| last.contains(part))
        })
    });
}

/// An interactive shell at a terminal.
fn shell() -> Terminal {
    let shell = interactive("bash").env("PS1", "ready> ").on(shared());
    let terminal = Terminal::spawn(&shell);
    terminal.wait_for("ready> ");
    terminal
}

#[test]
fn a_waiting_run_shows_whom_it_waits_for_in_one_line_that_the_job_finds_gone() {
    let key = key();
    let held = claimed(&key, &["--ttl", "1h", "--name", "web-3"]);
    let run = lease(&[
        "run",
        "-v",
        "--wait",
        "10m",
        &key,
        "--",
        "echo",
        "job-started",
    ]);
    let terminal = Terminal::spawn(&run);
    until_it_says(&terminal, &["so far"]);
    for _ in 0..2 {
        let before = seen(&terminal);
        until("the line has changed", || seen(&terminal) != before);
        until_it_says(&terminal, &["so far"]);
        let lines = seen(&terminal);
        let waiting = lines.iter().filter(|line| line.contains("waiting: "));
        assert_eq!(waiting.count(), 1, "{lines:#?}");
    }
    with_term("release", &held).output().expect_code(0);
    assert!(terminal.wait_exit(LIMIT).success());
    until("the job's line is whole", || {
        seen(&terminal).iter().any(|line| line == "job-started")
    });
    let lines = seen(&terminal);
    assert!(
        lines.iter().all(|line| !line.contains("waiting: ")),
        "{lines:#?}"
    );
}

#[test]
fn the_line_is_clipped_and_goes_on_in_no_second_one() {
    let key = format!("{}/{}", key(), "long-".repeat(30));
    claimed(&key, &["--ttl", "1h"]);
    let claim = lease(&["claim", "--wait", "3s", &key]);
    let terminal = Terminal::spawn(&claim);
    until_it_says(&terminal, &["so far", "…"]);
    assert_eq!(seen(&terminal).len(), 1);
    assert_eq!(terminal.wait_exit(LIMIT).code(), Some(75));
    until("the message that it gave up", || {
        seen(&terminal)
            .first()
            .is_some_and(|line| line.starts_with("lease: gave up after 3s: "))
    });
    let lines = seen(&terminal);
    assert!(
        lines.iter().all(|line| !line.contains("waiting: ")),
        "{lines:#?}"
    );
}

#[test]
fn a_signal_removes_the_line() {
    for end in [INTERRUPT, "TERM"] {
        let key = key();
        claimed(&key, &["--ttl", "1h"]);
        let terminal = Terminal::spawn(&lease(&["claim", "--wait", "10m", &key]));
        until_it_says(&terminal, &["so far"]);
        if end == INTERRUPT {
            terminal.type_in(INTERRUPT);
        } else {
            terminal.named("lease")[0].signal(Signal::SIGTERM);
        }
        terminal.wait_exit(LIMIT);
        let lines = seen(&terminal);
        assert!(
            lines.iter().all(|line| !line.contains("waiting: ")),
            "{lines:#?}"
        );
    }
}

#[test]
fn a_stopped_terminal_does_not_delay_the_job() {
    let (key, journal) = (key(), Journal::new());
    let held = claimed(&key, &["--ttl", "1h"]);
    let script = format!("echo started >>{}", journal.path());
    let terminal = Terminal::spawn(&run_script(&["--wait", "10m"], &key, &script).on(shared()));
    until_it_says(&terminal, &["so far"]);
    // Ctrl-S; the line is drawn no more.
    terminal.type_in("\x13");
    with_term("release", &held).output().expect_code(0);
    journal.wait_for("started");
    // Ctrl-Q.
    terminal.type_in("\x11");
    assert!(terminal.wait_exit(LIMIT).success());
}

#[test]
fn a_suspended_run_leaves_no_line_and_shows_it_again_in_the_foreground_only() {
    let (terminal, key) = (shell(), key());
    let held = claimed(&key, &["--ttl", "1h"]);
    terminal.type_in(&format!(
        "$LEASE run --wait 10m {key} -- echo job''-started\n"
    ));
    until_it_says(&terminal, &["so far"]);
    terminal.type_in(SUSPEND);
    terminal.wait_for("Stopped");
    let shown = || seen(&terminal).iter().any(|line| line.contains("so far"));
    until("the line is gone", || !shown());
    terminal.type_in("bg\n");
    // It goes on in the background: its next claim is there when the shell has answered.
    terminal.type_in("sleep 2; echo still''-here\n");
    terminal.wait_for("still-here");
    assert!(!shown(), "{:#?}", seen(&terminal));
    terminal.type_in("fg\n");
    until("the line is back", shown);
    with_term("release", &held).output().expect_code(0);
    terminal.wait_for("job-started");
    assert!(!shown(), "{:#?}", seen(&terminal));
}

#[test]
fn without_a_terminal_and_with_quiet_there_is_no_line() {
    let key = key();
    claimed(&key, &["--ttl", "1h"]);
    let out = lease(&["claim", "--wait", "2s", &key])
        .output()
        .expect_code(75);
    assert!(!out.stderr.contains("so far"), "{out}");
    assert_eq!(out.stderr.matches("lease: waiting: ").count(), 1, "{out}");
    let quiet = Lease::new(["claim", "-q", "--wait", "2s", &key]).on(shared());
    let terminal = Terminal::spawn(&quiet);
    assert_eq!(terminal.wait_exit(LIMIT).code(), Some(75));
    assert_eq!(terminal.screen(), "");
}
