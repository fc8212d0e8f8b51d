//! Terminals carry signals, sizes and their end.

use nix::sys::signal::Signal;
use std::os::unix::process::ExitStatusExt as _;

use crate::support::{LIMIT, Lease, Terminal, proc, pty, until};

fn sh(script: &str) -> Lease {
    Lease::program("sh").args(["-c", script])
}

#[test]
fn ctrl_c_is_one_interrupt_for_the_foreground() {
    let terminal = Terminal::spawn(&sh(
        "trap 'echo got it' INT; echo ready; while :; do sleep 0.01; done",
    ));
    terminal.wait_for("ready");
    assert_eq!(terminal.foreground(), terminal.pid());
    for count in 1..=3 {
        terminal.type_in(pty::INTERRUPT);
        terminal.wait_for_times("got it", count);
    }
    assert_eq!(terminal.screen().matches("got it").count(), 3);
    let terminal = Terminal::spawn(&sh("echo ready; exec sleep 605"));
    terminal.wait_for("ready");
    terminal.type_in(pty::INTERRUPT);
    assert_eq!(
        terminal.wait_exit(LIMIT).signal(),
        Some(Signal::SIGINT as i32)
    );
}

#[test]
fn a_shell_in_a_terminal_has_jobs() {
    let shell = Lease::program("bash")
        .args(["--norc", "--noprofile", "-i"])
        .env("PS1", "> ");
    let terminal = Terminal::spawn(&shell);
    terminal.wait_for("> ");
    terminal.type_in("sh -c 'echo rea\"\"dy; sleep 606'; echo co\"\"de $?\r");
    terminal.wait_for("ready");
    let job = until("the job is in the foreground", || {
        Some(terminal.foreground()).filter(|group| *group != terminal.pid() && *group > 0)
    });
    // A shell that is about to start a program cannot be stopped until the program runs.
    until("the job sleeps", || {
        proc::group(job)
            .iter()
            .any(|process| process.name == "sleep")
    });
    terminal.type_in(pty::SUSPEND);
    until("the job is stopped", || {
        proc::group(job).iter().all(proc::Process::is_stopped)
    });
    terminal.wait_for("Stopped");
    terminal.type_in("fg\r");
    until("the job runs", || {
        !proc::group(job).iter().any(proc::Process::is_stopped)
    });
    until("it is in the foreground", || terminal.foreground() == job);
    terminal.type_in(pty::INTERRUPT);
    until("the job is gone", || proc::group(job).is_empty());
    terminal.type_in("exit 7\r");
    assert_eq!(terminal.wait_exit(LIMIT).code(), Some(7));
}

#[test]
fn a_terminal_has_a_size_and_an_end() {
    let terminal = Terminal::spawn(&sh(
        "stty size; trap 'stty size' WINCH; trap 'exit 4' HUP; echo ready; while :; do sleep 0.01; done",
    ));
    terminal.wait_for("24 80");
    terminal.wait_for("ready");
    terminal.resize(30, 100);
    terminal.wait_for("30 100");
    terminal.hang_up();
    assert!(terminal.screen().contains("30 100"));
    assert_eq!(terminal.wait_exit(LIMIT).code(), Some(4));
}
