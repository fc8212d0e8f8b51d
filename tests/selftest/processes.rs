//! Programs under observation, and what is left of them.

use std::io::Write as _;
use std::os::unix::process::ExitStatusExt as _;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;

use crate::support::{Disk, LIMIT, Lease, Server, keeper, key, proc, until};

fn sh(script: &str) -> Lease {
    Lease::program("sh").args(["-c", script])
}

#[test]
fn a_program_is_seen_as_it_is() {
    let output = sh("cat; echo out; echo err >&2; exit 7")
        .input("in\n")
        .output()
        .expect_code(7);
    assert_eq!(
        (output.stdout.as_str(), output.stderr.as_str()),
        ("in\nout\n", "err\n")
    );
    sh("kill -TERM $$").output().expect_signal(Signal::SIGTERM);
}

#[test]
fn a_program_starts_in_a_clean_environment_and_without_a_terminal() {
    let output = sh("env; ls \"$HOME\"; (: </dev/tty) 2>/dev/null || echo no tty")
        .output()
        .expect_code(0);
    let foreign = |line: &&str| {
        line.starts_with("LEASE_") || line.starts_with("PG") || line.starts_with("CARGO")
    };
    assert_eq!(output.stdout.lines().find(foreign), None);
    assert!(output.stdout.ends_with("no tty\n"), "{output}");
}

#[test]
fn a_line_is_waited_for_and_a_signal_arrives() {
    let running =
        sh("trap 'echo got it; exit 3' USR1; echo ready >&2; while :; do sleep 0.01; done").spawn();
    assert_eq!(running.wait_for_line("ready"), "ready");
    running.signal(Signal::SIGUSR1);
    running.wait().expect_code(3);
}

#[test]
fn the_end_is_noticed_while_another_process_holds_the_pipes() {
    let start = Instant::now();
    let running = sh("sleep 600 & echo said").spawn();
    assert!(running.wait_exit(LIMIT).success());
    assert!(start.elapsed() < Duration::from_secs(20));
    assert_eq!(running.stdout(), "said\n");
}

#[test]
fn nothing_of_a_dropped_program_is_left() {
    let key = key();
    let running = sh("setsid sleep 601 & trap '' TERM; echo ready; sleep 602")
        .env("TESTED", &key)
        .spawn();
    running.wait_for_line("ready");
    until("three processes run", || {
        proc::with_env("TESTED", &key).len() == 3
    });
    drop(running);
    assert!(proc::no_process_with_env("TESTED", &key));
}

#[test]
fn states_groups_and_parents_are_read() {
    let running = sh("sleep 603 & echo ready; wait").spawn();
    running.wait_for_line("ready");
    let sleep = until("the child", || {
        proc::children(running.pid())
            .into_iter()
            .find(|p| p.name == "sleep")
    });
    assert_eq!(
        (sleep.parent, sleep.group, sleep.session),
        (running.pid(), running.pid(), running.pid())
    );
    assert_eq!(sleep.command(), "sleep 603");
    assert!(
        proc::with_command("sleep 603")
            .iter()
            .any(|found| found.pid == sleep.pid)
    );
    assert_eq!(proc::group(running.pid()).len(), 2);
    sleep.signal(Signal::SIGSTOP);
    until("it is stopped", || {
        proc::Process::find(sleep.pid).is_some_and(|now| now.is_stopped())
    });
    sleep.signal(Signal::SIGKILL);
    until("it is gone", || !sleep.is_alive());
    assert_eq!(running.wait_exit(LIMIT).signal(), None);
}

/// The test starts itself once more, as the one that is killed.
#[test]
fn a_killed_test_process_leaves_no_process_and_no_file() {
    if std::env::var_os("VICTIM").is_some() {
        let frozen = Server::start_plain();
        frozen.freeze();
        // Where it is allowed; a directory with a disk on it could not be removed.
        let _disk = Disk::new(1);
        let sleeper = sh("sleep 604 & setsid sleep 604").spawn();
        until("both sleep", || sleeper.processes().len() == 3);
        writeln!(std::io::stdout(), "\nroot {}", keeper::root().display()).unwrap();
        loop {
            std::thread::park();
        }
    }
    let victim = Lease::program(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "processes::a_killed_test_process_leaves_no_process_and_no_file",
        ])
        .arg("--nocapture")
        .env("VICTIM", "1")
        .spawn();
    let root = victim.wait_for_line("root /tmp/").split_off("root ".len());
    let ours = |p: &proc::Process| {
        p.env(keeper::MARK)
            .is_some_and(|mark| mark.starts_with(root.as_bytes()))
    };
    let marked = || proc::all().iter().any(ours);
    let inside = || !proc::working_in(root.as_ref()).is_empty();
    assert!(marked() && inside());
    victim.signal(Signal::SIGKILL);
    until("nothing of it is left", || {
        !marked() && !inside() && !std::path::Path::new(&root).exists()
    });
}
