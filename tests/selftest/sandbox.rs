//! The sandbox gives a command a server, and leaves nothing.

use std::path::{Path, PathBuf};

use nix::sys::signal::Signal;

use crate::support::{LIMIT, Lease, Terminal, key, proc, pty, until};

fn sandbox(script: &str) -> Lease {
    let program = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/sandbox");
    Lease::program(program).args(["sh", "-c", script])
}

/// What the commands print first: the directory of their server.
const DIRECTORY: &str = "psql -XAtc 'SHOW unix_socket_directories' \"$LEASE_DATABASE_URL\";";

fn directory(line: &str) -> PathBuf {
    let directory = PathBuf::from(line.trim_end());
    assert!(
        directory.starts_with("/tmp") && directory.is_dir(),
        "{line}"
    );
    directory
}

fn is_gone(directory: &Path) -> bool {
    !directory.exists() && proc::working_in(directory).is_empty()
}

#[test]
fn the_command_gets_its_input_a_server_and_its_own_exit_code() {
    let script = format!("{DIRECTORY} cat; env | grep ^PG; exit 7");
    let output = sandbox(&script)
        .env("PGHOST", "nowhere")
        .env("PGOPTIONS", "-x")
        .input("in\n")
        .output();
    let output = output.expect_code(7);
    let (first, rest) = output.stdout.split_once('\n').unwrap();
    assert_eq!(rest, "in\n", "{output}");
    assert_eq!(output.stderr, "");
    assert!(is_gone(first.as_ref()));
    sandbox("kill -KILL $$").output().expect_code(137);
}

#[test]
fn a_call_without_a_command_is_wrong_use() {
    let output = Lease::program(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/sandbox"))
        .output()
        .expect_code(2);
    assert_eq!(
        (output.stdout.as_str(), output.stderr.lines().count()),
        ("", 1)
    );
}

#[test]
fn a_signal_reaches_the_command_and_the_server_is_removed() {
    for signal in [
        Signal::SIGHUP,
        Signal::SIGINT,
        Signal::SIGQUIT,
        Signal::SIGTERM,
    ] {
        let running = sandbox(&format!("{DIRECTORY} exec sleep 607")).spawn();
        let directory = directory(&running.wait_for_line("/tmp/"));
        running.signal(signal);
        running.wait().expect_code(128 + signal as i32);
        assert!(is_gone(&directory), "{signal}");
    }
}

#[test]
fn a_killed_sandbox_takes_the_command_and_the_server_along() {
    let key = key();
    let script = format!("{DIRECTORY} setsid sleep 608 & trap '' TERM; sleep 609");
    let running = sandbox(&script).env("TESTED", &key).spawn();
    let directory = directory(&running.wait_for_line("/tmp/"));
    let commands = || {
        proc::with_env("TESTED", &key)
            .into_iter()
            .filter(|p| p.env("LEASE_DATABASE_URL").is_some())
    };
    until("the command runs", || commands().count() >= 3);
    running.signal(Signal::SIGKILL);
    until("nothing is left", || {
        is_gone(&directory) && commands().count() == 0
    });
}

#[test]
fn ctrl_c_reaches_the_command_once_and_it_reads_the_terminal() {
    let script = format!(
        "{DIRECTORY} trap 'echo got it' INT; read line; echo \"read $line\"; read line; exit 5"
    );
    // dash returns from `read` when a trap has run; the second `read` keeps the command alive after the first.
    let terminal = Terminal::spawn(&sandbox(&script));
    terminal.wait_for("/tmp/lease.");
    terminal.type_in("some\"\"thing\n");
    terminal.wait_for("read some");
    terminal.type_in(pty::INTERRUPT);
    terminal.wait_for("got it");
    terminal.type_in("\n");
    assert_eq!(terminal.wait_exit(LIMIT).code(), Some(5));
    assert_eq!(terminal.screen().matches("got it").count(), 1);
}
