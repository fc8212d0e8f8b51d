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
        (
            &["stauts"],
            "unknown command \"stauts\" (did you mean status?)",
        ),
        (
            &["nightly", "true"],
            "unknown command \"nightly\" (run, claim, renew, release, status, history, purge or init; see `lease --help`)",
        ),
        (
            &["--ttl", "5s", "claim", "k"],
            "--ttl is an option of run, claim and renew (put it after the command)",
        ),
        (
            &["claim", "k", "--force"],
            "--force is an option of release, not of claim",
        ),
        (
            &["renew", "-E", "3"],
            "-E is an option of run and claim, not of renew",
        ),
        (
            &["--verbose=1", "status"],
            "--verbose does not take a value",
        ),
        (
            &["claim", "k", "--", "true"],
            "unexpected argument \"true\" (to run a command under a lease, use lease run; ",
        ),
        (
            &["claim", "k", "-E", ""],
            "-E: the value is empty (give a number",
        ),
        (
            &["claim"],
            "missing KEY (usage: lease claim [OPTIONS] <KEY>)",
        ),
        (&["claim", ""], "1 to 1024 bytes"),
        (&["claim", &long_key], "1 to 1024"),
        (&["claim", "k", "--ttl", "0s"], "100ms to 30days"),
        (&["claim", "k", "--ttl", "1000years"], "100ms to 30days"),
        (&["claim", "k", "--ttl", "soon"], "500ms, 30s, 5m"),
        (
            &["claim", "k", "--ttl", "-5s"],
            "--ttl: \"-5s\" is negative",
        ),
        (
            &["claim", "k", "--ttl", "60"],
            "--ttl: \"60\" has no unit (write 60s, 5m or '1h 30m')",
        ),
        (
            &["claim", "k", "--ttl", "31days"],
            "--ttl: \"31days\" is out of range (100ms to 30days)",
        ),
        (&["claim", "-x"], "write a key that begins with - after --"),
        (
            &["claim", "k", "-E", "abc"],
            "-E: \"abc\" is not a number from 0 to 255",
        ),
        (&["claim", "k", "--wait", "never"], "forever"),
        (
            &["run", "--wait", "5M", "k", "true"],
            "--wait: \"5M\": M means months (write 5m for minutes",
        ),
        (
            &["claim", "k", "--wait", "-5s"],
            "--wait: \"-5s\" is negative\n",
        ),
        (&["claim", "k", "--name", &long_name], "--name"),
        (&["claim", "k", "--name", ""], "empty"),
        (&["claim", "k", "--holder", ""], "empty"),
        (&["claim", "k", "--format", "yaml"], "shell or json"),
        (&["claim", "k", "-E", "256"], "256"),
        (&["claim", "k", "extra"], "extra"),
        (&["claim", "k", "--table", "a.b.c"], "schema.table"),
        (
            &["init", "--table", "pg_temp.lease"],
            "is in pg_temp, a schema of the server itself",
        ),
        (&["status", "--table", "pg_temp_3.lease"], "pg_temp_3"),
        (
            &["init", "--with-fencing", "--table", "jobs.lease_fence"],
            "--table: \"jobs.lease_fence\" is the name of the table that --with-fencing creates",
        ),
        (
            &[
                "init",
                "--print",
                "--with-fencing",
                "--table",
                "lease_fence",
            ],
            "give the lease table another name",
        ),
        (
            &["claim", "k", "--table", "information_schema.lease"],
            "information_schema",
        ),
        (&["claim", "k", "--db-timeout", "0s"], "--db-timeout"),
        (&["run", "k"], "lease run [OPTIONS] <KEY> [--] <COMMAND>"),
        (&["run", "k", "--"], "missing COMMAND after the key \"k\""),
        (&["run"], "missing KEY and COMMAND"),
        (
            &["run", "--", "echo", "hi"],
            "missing KEY (usage: lease run [OPTIONS]",
        ),
        (&["run", "--eager", "k", "true"], "--eager needs --wait"),
        (&["claim", "--eager", "k"], "--eager needs --wait"),
        (&["run", "-k", "true"], "unknown option -k"),
        (&["run", "k", "--tll", "3s", "true"], "--ttl"),
        (&["run", "", "true"], "1 to 1024 bytes"),
        (
            &["run", "k", "--ttl", "6s", "--grace", "6s", "true"],
            "--grace 6s does not fit into --ttl 6s",
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
            "--fence: \"seven\" is not a whole number",
        ),
        (
            &["renew", "k", "--holder", "h", "--fence", ""],
            "--fence: the fence is empty",
        ),
        (
            &[
                "renew",
                "k",
                "--holder",
                "h",
                "--fence",
                "9223372036854775808",
            ],
            "--fence: \"9223372036854775808\" is larger than any fence",
        ),
        (&["release", "k", "--holder", "h"], "FENCE"),
        (
            &["renew", "k", "--holder", "h", "--fence=-1"],
            "--fence: -1 is not a fence, which is at least 1",
        ),
        (
            &["release", "k", "--holder", "h", "--fence=0"],
            "at least 1",
        ),
        (
            &["release", "--force"],
            "missing KEY: --force does not use LEASE_KEY",
        ),
        (&["status", "--exit-code"], "<KEY>"),
        (
            &["status", "--watch", "--exit-code", "k"],
            "--watch cannot be used with --exit-code",
        ),
        (
            &["-d", "postgres://u:s3cret/x@h:1/d", "claim", "k"],
            "in a password, write @ as %40, / as %2F",
        ),
        (
            &["-d", "postgres://u:1@s3cret/x@h:1/d", "claim", "k"],
            "in a password, write @ as %40, / as %2F",
        ),
        (&["status", "--watch", "1ms"], "100ms"),
        (
            &["purge"],
            "missing --older-than (usage: lease purge --older-than <DURATION> [OPTIONS] [KEY]...)",
        ),
        (
            &["purge", "nightly", "--dry-run"],
            "missing --older-than (usage: ",
        ),
        (
            &["purge", "--older-than", "90"],
            "--older-than: \"90\" has no unit (write 90s, 5m or '1h 30m')",
        ),
        (
            &["purge", "--older-than", "0s"],
            "--older-than: \"0s\" is out of range (1ms to 100years)",
        ),
        (
            &["history", "--since", "0s"],
            "--since: \"0s\" is out of range (1ms or more)",
        ),
        (
            &["history", "--chart", "--since", "0s"],
            "--since: \"0s\" is out of range (1ms or more)",
        ),
        (
            &["history", "--overdue", "0ns"],
            "--overdue: \"0ns\" is out of range (1ms or more)",
        ),
        (
            &["purge", "--older-than", "1d", &long_key],
            "the key has 1025 bytes (1 to 1024 are allowed)",
        ),
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
fn what_is_not_utf_8_is_refused_by_name() {
    use std::os::unix::ffi::OsStrExt as _;
    let odd = std::ffi::OsStr::from_bytes(b"k\xff");
    let message = |call: Lease| call.on(shared()).output().expect_code(2).stderr;
    assert_eq!(
        message(Lease::new(["claim"]).arg(odd)),
        "lease: KEY is not UTF-8\n"
    );
    assert_eq!(
        message(Lease::new(["claim", "k", "--name"]).arg(odd)),
        "lease: --name is not UTF-8\n"
    );
    assert_eq!(
        message(Lease::new(["claim", "k"]).env("LEASE_TABLE", odd)),
        "lease: LEASE_TABLE is not UTF-8\n"
    );
}

#[test]
fn what_cannot_be_written_is_not_a_success() {
    // Without a lease, status has nothing to write.
    crate::claimed(&crate::support::key(), &[]);
    for args in [
        "--help",
        "--version",
        "help claim",
        "init --print",
        "status",
        "status --watch",
    ] {
        for (stdout, why) in [
            (">&-", "stdout is closed"),
            (">/dev/full", "no space left on device"),
        ] {
            let out = Lease::program("/bin/sh")
                .args(["-c", &format!("\"$LEASE\" {args} {stdout}")])
                .knowing_lease()
                .on(shared())
                .output()
                .expect_code(125);
            let told = format!("lease: cannot write to stdout: {why}\n");
            assert_eq!(out.stderr, told, "{args}");
        }
    }
}

#[test]
fn a_forgotten_key_runs_nothing_and_a_dashed_one_is_written_between_two_dashes() {
    let out = crate::lease(&["run", "--", "echo", "hi", "there"])
        .output()
        .expect_code(2);
    assert_eq!(out.stdout, "");
    let key = format!("-{}", crate::support::key());
    let out = crate::lease(&["run", "--", &key, "--", "sh", "-c", "echo \"$LEASE_KEY\""])
        .output()
        .expect_code(0);
    assert_eq!(out.stdout, format!("{key}\n"));
}

#[test]
fn help_and_version_go_to_stdout() {
    let version = format!("lease {}\n", env!("CARGO_PKG_VERSION"));
    let out = Lease::new(["--version"]).output().expect_code(0);
    assert_eq!(out.stdout, version);
    let long = Lease::new(["--help"]).output().expect_code(0).stdout;
    assert_eq!(Lease::new(["help"]).output().expect_code(0).stdout, long);
    for verb in [
        "run", "claim", "renew", "release", "status", "history", "purge", "init",
    ] {
        let out = Lease::new([verb, "--version"]).output().expect_code(0);
        assert_eq!(out.stdout, version);
        let long = Lease::new([verb, "--help"]).output().expect_code(0).stdout;
        let out = Lease::new(["help", verb]).output().expect_code(0);
        assert_eq!(out.stdout, long);
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
