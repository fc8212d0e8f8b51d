//! Wrong usage: exit 2, one line that says what would be right, and nothing touched.

use crate::database;
use crate::support::{Lease, shared};

#[test]
fn wrong_input_is_exit_2_and_one_line_and_touches_nothing() {
    let server = shared();
    let database = database(server);
    let long_key = "k".repeat(1025);
    let long_name = "n".repeat(256);
    let cases: &[(&[&str], &str)] = &[
        (&[], "no command given"),
        (&["stauts"], "'status'"),
        (&["claim"], "<KEY>"),
        (&["claim", ""], "1 to 1024 bytes"),
        (&["claim", &long_key], "1 to 1024"),
        (&["claim", "k", "--ttl", "0s"], "100ms to 30days"),
        (&["claim", "k", "--ttl", "1000years"], "100ms to 30days"),
        (&["claim", "k", "--ttl", "soon"], "500ms, 30s, 5m"),
        (
            &["claim", "k", "--ttl", "-5s"],
            "unexpected argument '-5' found (see",
        ),
        (&["claim", "k", "--wait", "never"], "forever"),
        (&["claim", "k", "--name", &long_name], "--name"),
        (&["claim", "k", "--name", ""], "empty"),
        (&["claim", "k", "--holder", ""], "empty"),
        (&["claim", "k", "--format", "yaml"], "shell, json"),
        (&["claim", "k", "-E", "256"], "256"),
        (&["claim", "k", "extra"], "extra"),
        (&["claim", "k", "--table", "a.b.c"], "schema.table"),
        (&["claim", "k", "--db-timeout", "0s"], "--db-timeout"),
        (&["run", "k"], "lease run [OPTIONS] <KEY> [--] <COMMAND>"),
        (
            &["run", "k", "--"],
            "lease run [OPTIONS] <KEY> [--] <COMMAND>",
        ),
        (&["run", "k", "--tll", "3s", "true"], "--ttl"),
        (&["run", "", "true"], "1 to 1024 bytes"),
        (
            &["run", "k", "--ttl", "6s", "--grace", "6s", "true"],
            "--grace 6s does not fit --ttl 6s",
        ),
        (
            &["run", "k", "--ttl", "6s", "--heartbeat", "4s", "true"],
            "--heartbeat 4s",
        ),
        (&["run", "k", "--heartbeat", "0s", "true"], "--heartbeat"),
        (&["run", "k", "--hold-at-least", "1year", "true"], "30days"),
        (&["renew"], "LEASE_KEY"),
        (
            &["renew", "k", "--holder", "h", "--fence", "seven"],
            "no whole number",
        ),
        (&["release", "k", "--holder", "h"], "FENCE"),
        (&["release", "--force"], "<KEY>"),
        (&["status", "--exit-code"], "<KEY>"),
        (&["status", "--watch", "1ms"], "100ms"),
        (
            &["-d", "postgres://u:s3cret@host:port/db", "claim", "k"],
            "port",
        ),
        (
            &["-d", "host=h colour=red password=s3cret", "claim", "k"],
            "colour",
        ),
        (&["-d", "http://u:s3cret@h/db", "claim", "k"], "postgres"),
    ];
    for (args, right) in cases {
        let out = Lease::new(*args)
            .url(server.url_for("postgres", &database))
            .output()
            .expect_code(2);
        assert!(out.stderr.starts_with("lease: "), "{args:?}: {out:?}");
        assert!(
            out.stderr.contains(right),
            "{args:?} should say {right:?}: {out:?}"
        );
        assert_eq!(out.stderr.lines().count(), 1, "{args:?}: {out:?}");
        assert_eq!(out.stdout, "", "{args:?}");
        assert!(!out.stderr.contains("s3cret"), "{args:?}: {out:?}");
    }
    assert_eq!(
        server.psql_in(&database, "SELECT to_regclass('public.lease') IS NULL"),
        "t"
    );
}

#[test]
fn a_key_that_is_not_utf_8_is_refused() {
    use std::os::unix::ffi::OsStrExt as _;
    let key = std::ffi::OsStr::from_bytes(b"k\xff");
    Lease::new(["claim"])
        .arg(key)
        .on(shared())
        .output()
        .expect_code(2);
}

#[test]
fn help_and_version_go_to_stdout() {
    let out = Lease::new(["--version"]).output().expect_code(0);
    assert_eq!(out.stdout, format!("lease {}\n", env!("CARGO_PKG_VERSION")));
    for verb in ["run", "claim", "renew", "release", "status", "init"] {
        let out = Lease::new([verb, "--help"])
            .env("LEASE_DATABASE_URL", "postgres://u:s3cret@h/d")
            .output();
        let out = out.expect_code(0);
        assert!(
            out.stdout.contains("Usage: lease") && out.stderr.is_empty(),
            "{out:?}"
        );
        assert!(!out.stdout.contains("s3cret"), "{out:?}");
    }
}

#[test]
fn quiet_may_come_from_the_environment() {
    let key = crate::support::key();
    crate::claimed(&key, &[]);
    for (value, silent) in [
        ("1", true),
        ("yes", true),
        ("0", false),
        ("false", false),
        ("", false),
    ] {
        let out = crate::lease(&["claim", &key])
            .env("LEASE_QUIET", value)
            .output()
            .expect_code(75);
        assert_eq!(
            out.stderr.is_empty(),
            silent,
            "LEASE_QUIET={value}: {out:?}"
        );
    }
}
