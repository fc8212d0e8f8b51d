//! Streams, arguments and environment: a job gets them as without `lease`.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::time::Duration;

use crate::support::job::{around, run, run_script, until_gone};
use crate::support::{Lease, key, shared};
use crate::{claimed, database};

#[test]
fn standard_input_is_the_jobs() {
    let out = run(&[], &key(), &["cat"])
        .input("hi\n")
        .on(shared())
        .output()
        .expect_code(0);
    assert_eq!((out.stdout.as_str(), out.stderr.as_str()), ("hi\n", ""));
}

#[test]
fn a_loop_over_lines_sees_every_line() {
    let key = key();
    let script =
        "printf 'a\\nb\\nc\\nd\\n' | while read l; do \"$LEASE\" run \"$0\" -- true; echo $l; done";
    let out = around("sh", script)
        .arg(&key)
        .on(shared())
        .output()
        .expect_code(0);
    assert_eq!(out.stdout, "a\nb\nc\nd\n", "{out}");
    // Nor is anything read by a run that is skipped or fails.
    claimed(&key, &[]);
    let script = "printf 'a\\nb\\n' | while read l; do \"$LEASE\" run -q \"$0\" -- cat; \"$LEASE\" run -d postgres://u@127.0.0.1:1/d --db-timeout 1s -q x -- cat; echo $l; done";
    let out = around("sh", script)
        .arg(&key)
        .on(shared())
        .output()
        .expect_code(0);
    assert_eq!(out.stdout, "a\nb\n", "{out}");
}

#[test]
fn what_looks_like_an_option_after_the_command_is_the_commands() {
    let key = key();
    let out = run(&[], &key, &["ls", "--help"])
        .on(shared())
        .output()
        .expect_code(0);
    assert!(
        out.stdout.starts_with("Usage: ls") || out.stdout.contains("ls [OPTION]"),
        "{out}"
    );
    // Without the separator, too.
    let out = Lease::new([
        "run",
        &key,
        "printf",
        "%s ",
        "--ttl",
        "0s",
        "-q",
        "--version",
        "--",
        "-h",
    ])
    .on(shared())
    .output()
    .expect_code(0);
    assert_eq!(out.stdout, "--ttl 0s -q --version -- -h ", "{out}");
    let out = Lease::new(["run", &key, "cat", "-v"])
        .input([7])
        .on(shared())
        .output()
        .expect_code(0);
    assert_eq!(out.stdout, "^G");
}

#[test]
fn arguments_and_environment_arrive_byte_for_byte() {
    let key = key();
    let out = run(
        &[],
        &key,
        &[
            "printf",
            "[%s]",
            "a b",
            "",
            "*",
            "$HOME",
            "it's",
            "two\nlines",
            "\\",
        ],
    )
    .on(shared())
    .output()
    .expect_code(0);
    assert_eq!(out.stdout, "[a b][][*][$HOME][it's][two\nlines][\\]");
    let wild = OsStr::from_bytes(b"\xff\xfe=\x80");
    let out = run(
        &[],
        &key,
        &[
            OsStr::new("sh"),
            OsStr::new("-c"),
            OsStr::new("printf '%s|%s' \"$1\" \"$WILD\""),
            OsStr::new("sh"),
            wild,
        ],
    )
    .env("WILD", wild)
    .on(shared())
    .output()
    .expect_code(0);
    assert_eq!(out.stdout_bytes, b"\xff\xfe=\x80|\xff\xfe=\x80");
}

#[test]
fn the_end_of_the_job_does_not_wait_for_its_pipes() {
    let key = key();
    let script = "\"$LEASE\" run \"$0\" -- sh -c 'sleep 1000 & echo ok' | cat";
    let out = around("sh", script)
        .arg(&key)
        .on(shared())
        .output()
        .expect_code(0);
    assert_eq!(out.stdout, "ok\n");
    assert!(out.took < Duration::from_secs(10), "{out}");
    until_gone(&key);
    // A daemon keeps the pipe, and may; `lease` itself is through.
    let script = "setsid sleep 1000 & echo ok";
    let job = run_script(&[], &key, script).on(shared()).spawn();
    job.wait_exit(Duration::from_secs(10));
    assert_eq!(job.stdout(), "ok\n");
}

#[test]
fn a_run_says_nothing_of_its_own() {
    let key = key();
    let out = run(&[], &key, &["echo", "x"])
        .on(shared())
        .output()
        .expect_code(0);
    assert_eq!((out.stdout.as_str(), out.stderr.as_str()), ("x\n", ""));
    // What it tells when asked goes to stderr, each line with its name in front.
    let out = run_script(&["-v"], &key, "echo x; echo y >&2")
        .on(shared())
        .output()
        .expect_code(0);
    assert_eq!(out.stdout, "x\n");
    let lines: Vec<&str> = out.stderr.lines().collect();
    assert!(lines.len() > 3 && lines.contains(&"y"), "{out}");
    assert!(
        lines
            .iter()
            .all(|line| *line == "y" || line.starts_with("lease: ")),
        "{out}"
    );
}

#[test]
fn the_password_is_in_no_message_at_any_verbosity() {
    let server = shared();
    let secret = "s3cret-Pa55";
    let good = server.url_for(&format!("postgres:{secret}"), "postgres");
    let port = server.port();
    let words =
        format!("host=127.0.0.1 port={port} user=postgres dbname=postgres password={secret}");
    let cases = [
        (good.clone(), 0),
        (words, 0),
        (
            format!("postgresql://postgres:{secret}@127.0.0.1:1/postgres"),
            69,
        ),
        (
            server.url_for(&format!("nobody-here:{secret}"), "postgres"),
            69,
        ),
        (
            server.url_for(&format!("postgres:{secret}"), "no_such_database"),
            69,
        ),
        (format!("{good}?sslmode=require"), 69),
        (format!("{good}?sslmode=wrong"), 2),
        (
            format!("postgresql://postgres:{secret}@127.0.0.1:{port}x/postgres"),
            2,
        ),
        (
            format!("postgresql://postgres:{secret}%zz@127.0.0.1/postgres"),
            2,
        ),
        (format!("postgres:{secret}@127.0.0.1/postgres"), 2),
    ];
    for (url, code) in cases {
        for options in [&["-v"][..], &[], &["-q"]] {
            let mut options = options.to_vec();
            if url.contains("127.0.0.1:1/") {
                // Nothing listens there, now or later.
                options.extend(["--db-timeout", "1s"]);
            }
            let out = run(&options, &key(), &["true"])
                .url(&url)
                .env("PGHOST", "127.0.0.1")
                .env("PGPORT", port.to_string())
                .env("PGUSER", "postgres")
                .output();
            assert!(
                !out.stderr.contains("s3cret") && !out.stdout.contains("s3cret"),
                "{url}: {out}"
            );
            assert_eq!(out.code, Some(code), "{url}: {out}");
        }
    }
    // Nor in the process list, when it came by the environment.
    let job = run_script(&["-v"], &key(), "echo ready; read end")
        .open_input()
        .url(&good)
        .spawn();
    job.wait_for_line("ready");
    for process in job.processes() {
        assert!(!process.command().contains(secret), "{process:?}");
    }
}

#[test]
fn a_stream_that_is_closed_is_closed_for_the_job_too() {
    let key = key();
    for (redirect, probe) in [
        (">&-", "echo lost"),
        ("<&-", "cat"),
        ("2>&-", "echo lost >&2"),
    ] {
        let script = format!("\"$LEASE\" run {key} -- sh -c '{probe}' {redirect}");
        let out = around("sh", &script).on(shared()).output();
        assert_ne!(out.code, Some(0), "{redirect}: {out:?}");
    }
}

#[test]
fn verbose_names_once_the_server_that_answered_and_the_database() {
    let (server, database) = (shared(), database(shared()));
    let address = format!("127.0.0.1:{}", server.port());
    let line = format!("lease: connected to {address}, database {database}, as role postgres");
    // The first port is closed, and a run connects for its claim and for its release.
    let url = format!(
        "postgres://postgres@127.0.0.1:1,{address}/{database}?target_session_attrs=read-write"
    );
    let key = key();
    for words in [&["run", "-v", &*key, "true"][..], &["claim", "-v", &*key]] {
        let out = Lease::new(words).url(&url).output().expect_code(0);
        let named = out.stderr.lines().filter(|l| l.contains("connected to "));
        assert_eq!(named.collect::<Vec<_>>(), [&*line], "{out}");
    }
}
