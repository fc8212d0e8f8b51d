//! `lease run` ends as its job did.

use std::os::unix::fs::PermissionsExt as _;

use nix::sys::signal::Signal;

use crate::support::job::{of_job, run, run_script, until_gone};
use crate::support::{Lease, keeper, key, shared};
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
    let out = Lease::program("sh")
        .args(["-c", shell, &key()])
        .env("LEASE", env!("CARGO_BIN_EXE_lease"))
        .on(shared())
        .output()
        .expect_code(0);
    assert_eq!(out.stdout, "137\n", "{out}");
}

#[test]
fn a_job_that_dumps_core_leaves_no_core_of_lease() {
    let dir = keeper::dir("core");
    // `core` in the working directory is what many systems do; where a handler takes cores, there is nothing to see here.
    let key = key();
    run_script(&[], &key, "ulimit -c 0; kill -QUIT $$")
        .wrapped(["sh", "-c", "ulimit -c unlimited; exec \"$@\"", "sh"])
        .dir(&dir)
        .on(shared())
        .output()
        .expect_signal(Signal::SIGQUIT);
    let left: Vec<_> = std::fs::read_dir(&dir).expect("a directory").collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn a_command_that_does_not_exist_is_127_and_one_that_can_not_be_executed_126_and_the_lease_is_free_again()
 {
    let dir = keeper::dir("programs");
    let plain = dir.join("plain");
    std::fs::write(&plain, "#!/bin/sh\n").expect("a file");
    let foreign = dir.join("foreign");
    std::fs::write(&foreign, [0x7f, b'E', b'L', b'F', 0, 0]).expect("a file");
    std::fs::set_permissions(&foreign, std::fs::Permissions::from_mode(0o755)).expect("chmod");
    let text = |path: &std::path::Path| path.to_str().expect("a plain path").to_owned();
    let cases = [
        ("no-such-command".to_owned(), 127),
        ("/no/such/command".to_owned(), 127),
        (String::new(), 127),
        (text(&plain), 126),
        (text(&dir), 126),
        (text(&foreign), 126),
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
    // Also with a hold: nothing ran, so there is nothing to keep others from.
    let key = key();
    run(&["--hold-at-least", "1h"], &key, &["no-such-command"])
        .on(shared())
        .output()
        .expect_code(127);
    claimed(&key, &[]);
}

#[test]
fn a_program_that_was_found_but_lacks_its_interpreter_is_reported_as_a_shell_does() {
    let dir = keeper::dir("programs");
    let orphan = dir.join("orphan");
    std::fs::write(&orphan, "#!/no/such/interpreter\n").expect("a file");
    std::fs::set_permissions(&orphan, std::fs::Permissions::from_mode(0o755)).expect("chmod");
    let shell = Lease::program("dash")
        .args(["-c", "\"$0\"", orphan.to_str().expect("plain")])
        .output();
    let ours = run(&[], &key(), &[&orphan]).on(shared()).output();
    assert_eq!(shell.code, Some(127), "{shell}");
    assert!(matches!(ours.code, Some(126 | 127)), "{ours}");
    assert!(ours.stderr.starts_with("lease: cannot run "), "{ours}");
}

#[test]
fn a_script_without_an_interpreter_line_runs_as_from_a_shell_or_is_126() {
    let script = keeper::dir("programs").join("script");
    std::fs::write(&script, "echo ran; exit 3\n").expect("a file");
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).expect("chmod");
    let out = run(&[], &key(), &[&script]).on(shared()).output();
    assert!(
        out.code == Some(3) && out.stdout == "ran\n"
            || out.code == Some(126) && out.stdout.is_empty(),
        "{out}"
    );
}

#[test]
fn what_the_job_leaves_in_its_group_is_stopped_and_counted() {
    let key = key();
    let script = "sleep 1000 & sleep 1000 & echo left; exit 4";
    let out = run_script(&[], &key, script)
        .on(shared())
        .output()
        .expect_code(4);
    assert!(of_job(&key).is_empty(), "{:?}", of_job(&key));
    assert!(out.stderr.contains("left 2 processes"), "{out}");
    assert_eq!(column(shared(), &key, "holder"), "");
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
fn a_daemon_that_left_the_group_on_purpose_is_not_touched() {
    let key = key();
    let script = "setsid sh -c 'echo $$; exec sleep 1000' >pid </dev/null 2>&1 & until [ -s pid ]; do sleep 0.02; done; cat pid";
    let out = run_script(&[], &key, script)
        .dir(keeper::dir("daemon"))
        .on(shared())
        .output()
        .expect_code(0);
    let daemon = of_job(&key);
    assert_eq!(daemon.len(), 1, "{daemon:?}");
    assert_eq!(daemon[0].pid.to_string(), out.stdout.trim());
    assert_eq!(
        column(shared(), &key, "holder"),
        "",
        "the lease does not wait for it"
    );
    daemon[0].signal(Signal::SIGKILL);
    until_gone(&key);
}
