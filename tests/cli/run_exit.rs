//! `lease run` ends as its job did.

use std::os::unix::fs::PermissionsExt as _;

use nix::sys::signal::Signal;

use crate::support::job::{around, of_job, run, run_script};
use crate::support::{keeper, key, shared};
use crate::{claimed, column, with_term};

#[test]
fn the_exit_code_of_the_job_comes_through() {
    let key = key();
    for code in [0, 1, 2, 7, 75, 76, 125, 126, 127, 128, 255] {
        let out = run_script(&[], &key, &format!("exit {code}"))
            .on(shared())
            .output()
            .expect_code(code);
        assert_eq!(out.stderr, "", "{out}");
        assert_eq!(column(shared(), &key, "holder"), "");
    }
}

#[test]
fn a_job_ended_by_a_signal_ends_lease_by_that_signal() {
    for signal in [
        Signal::SIGKILL,
        Signal::SIGTERM,
        Signal::SIGINT,
        Signal::SIGUSR1,
        Signal::SIGSEGV,
        Signal::SIGPIPE,
    ] {
        let key = key();
        let script = format!("kill -{} $$", signal as i32);
        run_script(&[], &key, &script)
            .on(shared())
            .output()
            .expect_signal(signal);
        assert_eq!(
            column(shared(), &key, "holder"),
            "",
            "released after {signal}"
        );
    }
    // As a shell sees it.
    let shell = "\"$LEASE\" run \"$0\" -- sh -c 'kill -9 $$'; echo $?";
    let out = around("sh", shell)
        .arg(key())
        .on(shared())
        .output()
        .expect_code(0);
    assert_eq!(out.stdout, "137\n", "{out}");
}

#[test]
fn a_command_that_does_not_exist_is_127_and_one_that_cannot_be_executed_126_and_the_lease_is_free_again()
 {
    let dir = keeper::dir("programs");
    let plain = dir.join("plain");
    std::fs::write(&plain, "#!/bin/sh\n").expect("a file");
    let text = |path: &std::path::Path| path.to_str().expect("a plain path").to_owned();
    let cases = [
        ("no-such-command".to_owned(), 127),
        ("/no/such/command".to_owned(), 127),
        (String::new(), 127),
        (text(&plain), 126),
        (text(&dir), 126),
        (format!("{}/below", text(&plain)), 126),
    ];
    for (command, code) in cases {
        let key = key();
        let out = run(&[], &key, &[&command])
            .on(shared())
            .output()
            .expect_code(code);
        assert_eq!(out.stdout, "");
        assert_eq!(out.stderr.lines().count(), 1, "{out}");
        assert!(out.stderr.starts_with("lease: cannot run "), "{out}");
        let next = claimed(&key, &[]);
        with_term("release", &next).output().expect_code(0);
    }
    // Found, but its interpreter is not: what shells call "not found" too.
    let orphan = dir.join("orphan");
    std::fs::write(&orphan, "#!/no/such/interpreter\n").expect("a file");
    std::fs::set_permissions(&orphan, std::fs::Permissions::from_mode(0o755)).expect("chmod");
    run(&[], &key(), &[&orphan])
        .on(shared())
        .output()
        .expect_code(127);
    // What a shell would have understood.
    for (words, hint) in [
        ("echo hi", "sh -c"),
        ("TZ=UTC", "write env TZ=UTC and the command"),
    ] {
        let out = run(&[], &key(), &[words]).on(shared()).output();
        assert!(out.expect_code(127).stderr.contains(hint), "{words}");
    }
    // Also with a hold: nothing ran, so there is nothing to keep others from.
    let key = key();
    run(&["--hold-at-least", "1h"], &key, &["no-such-command"])
        .on(shared())
        .output()
        .expect_code(127);
    claimed(&key, &[]);
}

#[test]
fn what_ignores_term_in_the_group_is_killed_after_the_grace() {
    let key = key();
    let script =
        "sh -c 'trap \"\" TERM; echo deaf; while :; do sleep 0.2; done' & read deaf; exit 0";
    let out = run_script(
        &["--ttl", "10s", "--grace", "300ms"],
        &key,
        &format!("mkfifo f$$; exec 3<>f$$; rm f$$; {{ {script}; }} >&3 <&3"),
    )
    .dir(keeper::dir("fifo"))
    .on(shared())
    .output()
    .expect_code(0);
    assert!(of_job(&key).is_empty(), "{:?}", of_job(&key));
    assert!(out.stderr.contains("killed"), "{out}");
}

#[test]
fn an_error_of_the_system_is_reported_in_words() {
    let out = around("sh", "ulimit -n 4; exec \"$LEASE\" run k true")
        .on(shared())
        .output()
        .expect_code(125);
    assert_eq!(
        out.stderr,
        "lease: cannot start the watchdog: too many open files\n"
    );
}
