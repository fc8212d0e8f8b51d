//! What a message suggests if the command is almost right.

use crate::lease;
use crate::support::{Lease, key, shared};

#[test]
fn a_mistyped_command_suggests_the_nearest_one_only() {
    for (typed, meant) in [
        ("rn", "run"),
        ("rnu", "run"),
        ("relase", "release"),
        ("stauts", "status"),
        ("stat", "status"),
        ("rel", "release"),
        ("clam", "claim"),
        ("re", "renew or release"),
    ] {
        let out = Lease::new([typed]).output().expect_code(2);
        let right = format!("lease: unknown command \"{typed}\" (did you mean {meant}?)\n");
        assert_eq!(out.stderr, right);
    }
}

#[test]
fn a_word_of_other_tools_suggests_the_command_that_does_the_same() {
    for (typed, meant) in [
        ("list", "status"),
        ("ls", "status"),
        ("lock", "claim or run"),
        ("acquire", "claim or run"),
        ("unlock", "release"),
        ("exec", "run"),
        ("prune", "purge"),
        ("delete", "purge"),
        ("rm", "purge"),
        ("gc", "purge"),
        ("cleanup", "purge"),
    ] {
        let out = Lease::new([typed, "nightly"]).output().expect_code(2);
        let right = format!("lease: unknown command \"{typed}\" (did you mean {meant}?)\n");
        assert_eq!(out.stderr, right);
    }
}

#[test]
fn a_shell_builtin_as_command_suggests_a_shell() {
    for builtin in ["source", "ulimit", "exit", "if", "."] {
        let out = lease(&["run", &key(), "--", builtin, "x"])
            .output()
            .expect_code(127);
        let right = format!(
            "lease: cannot run {builtin}: it is part of the shell, not a program (write sh -c '{builtin} ...')\n"
        );
        assert_eq!(out.stderr, right);
    }
}

#[test]
fn what_is_joined_to_watch_is_an_interval_and_never_a_key() {
    for (option, told) in [
        ("--watch=abc", "\"abc\" is not a duration"),
        ("--watch=", "the value is empty"),
        ("--watch=1ms", "\"1ms\" is out of range"),
    ] {
        let out = lease(&["status", option]).output().expect_code(2);
        let right = format!("lease: --watch: {told} (");
        assert!(out.stderr.starts_with(&right), "{out}");
    }
    // After two dashes it is a key.
    let out = lease(&["status", "--", "--watch=abc"]).output();
    assert!(out.expect_code(0).stdout.contains("--watch=abc"));
}

#[test]
fn a_quiet_check_of_a_monitor_prints_nothing() {
    let (held, free) = (key(), key());
    crate::claimed(&held, &[]);
    for (key, code) in [(&held, 0), (&free, 1)] {
        for format in ["table", "json"] {
            let out = Lease::new(["status", "-q", "--exit-code", "--format", format, key])
                .on(shared())
                .output()
                .expect_code(code);
            assert_eq!((&*out.stdout, &*out.stderr), ("", ""));
        }
    }
}
