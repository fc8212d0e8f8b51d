//! A database that is away, hangs or refuses: bounded in time, exit 69, and the message says which.

use std::net::TcpListener;
use std::time::Duration;

use crate::database;
use crate::support::{Lease, Server, shared};

/// Every verb that goes to the database.
const VERBS: [&[&str]; 6] = [
    &["claim", "k"],
    &["renew", "--holder", "h", "--fence", "1", "k"],
    &["release", "--holder", "h", "--fence", "1", "k"],
    &["release", "--force", "k"],
    &["status"],
    &["init"],
];

/// What a loaded machine may add to a limit.
const SLACK: Duration = Duration::from_secs(8);

#[test]
fn a_database_that_is_down_is_exit_69_at_once() {
    let port = {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        listener.local_addr().expect("an address").port()
    };
    for verb in VERBS {
        if verb[0] == "claim" {
            continue; // It tries again: see below.
        }
        let out = Lease::new(verb)
            .args(["--db-timeout", "30s"])
            .url(format!("postgres://app:s3cret@127.0.0.1:{port}/app"))
            .output()
            .expect_code(69);
        assert!(out.took < SLACK, "{out:?}");
        assert!(
            out.stderr.contains("refused") && out.stderr.contains(&port.to_string()),
            "{out:?}"
        );
        assert!(!out.stderr.contains("s3cret"), "{out:?}");
        assert_eq!(out.stderr.lines().count(), 1, "{out:?}");
    }
}

#[test]
fn a_claim_says_at_once_that_it_tries_again_and_does_so_within_the_time_limit() {
    let verbs = [&["claim", "k"][..], &["run", "k", "--", "echo", "ran"]];
    for verb in verbs {
        for quiet in [false, true] {
            let mut call = Lease::new([verb[0], "--db-timeout", "2s"]);
            if quiet {
                call = call.arg("-q");
            }
            let out = call
                .args(&verb[1..])
                .url("postgres://app@127.0.0.1:1/app")
                .output()
                .expect_code(69);
            assert!(out.took < SLACK, "{out:?}");
            let mut lines = out.stderr.lines();
            if !quiet {
                let first = lines.next().expect("a line");
                assert!(
                    first.ends_with("connection refused; retrying for up to 2s"),
                    "{out}"
                );
            }
            assert_eq!(
                lines.collect::<Vec<_>>(),
                ["lease: cannot claim k: 127.0.0.1:1: connection refused"]
            );
        }
    }
}

#[test]
fn a_restart_costs_neither_a_claim_nor_a_run_that_begins_meanwhile() {
    let server = Server::start_plain();
    server.stop();
    let claim = Lease::new(["claim", "--db-timeout", "5m", "claimed"])
        .on(&server)
        .spawn();
    let run = Lease::new(["run", "--db-timeout", "5m", "run", "--", "echo", "ran"])
        .on(&server)
        .spawn();
    claim.wait_for_line("retrying for up to 5m");
    run.wait_for_line("retrying for up to 5m");
    server.start();
    claim.wait().expect_code(0);
    assert_eq!(run.wait().expect_code(0).stdout, "ran\n");
}

#[test]
fn a_peer_that_accepts_and_never_answers_costs_the_time_limit_and_no_more() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    for sslmode in ["disable", "prefer", "require"] {
        for verb in VERBS {
            let out = Lease::new(verb)
                .args(["--db-timeout", "300ms"])
                .url(format!(
                    "postgres://app@127.0.0.1:{port}/app?sslmode={sslmode}"
                ))
                .output()
                .expect_code(69);
            assert!(
                out.took >= Duration::from_millis(290) && out.took < SLACK,
                "{out:?}"
            );
            assert!(
                out.stderr
                    .contains(&format!("127.0.0.1:{port}: no answer within 0.")),
                "{out:?}"
            );
        }
    }
    drop(listener);
}

#[test]
fn a_frozen_server_costs_the_time_limit_and_applies_nothing_afterwards() {
    let server = Server::start_plain();
    Lease::new(["init"]).on(&server).output().expect_code(0);
    server.freeze();
    for verb in VERBS {
        let out = Lease::new(verb)
            .args(["--db-timeout", "300ms"])
            .on(&server)
            .output()
            .expect_code(69);
        assert!(out.took < SLACK, "{out:?}");
        assert!(out.stderr.contains("no answer within"), "{out:?}");
    }
    server.thaw();
    assert_eq!(server.psql("SELECT count(*) FROM public.lease"), "0");
}

#[test]
fn a_row_that_stays_locked_costs_the_time_limit_and_applies_nothing_afterwards() {
    let server = Server::start_plain();
    Lease::new(["claim", "--ttl", "2s", "k"])
        .on(&server)
        .output()
        .expect_code(0);
    let mut client = server.client();
    crate::support::until("it expires", || {
        server.psql("SELECT expires_at < clock_timestamp() FROM public.lease") == "t"
    });
    let mut transaction = client.transaction().expect("a transaction");
    transaction
        .execute("SELECT FROM public.lease FOR UPDATE", &[])
        .expect("the row is locked");
    let before = server.psql("SELECT lease::text FROM public.lease");
    let out = Lease::new(["claim", "k", "--db-timeout", "3s"])
        .on(&server)
        .output()
        .expect_code(69);
    assert!(out.took < SLACK, "{out:?}");
    assert!(
        out.stderr.contains("lock timeout"),
        "the server says what it was: {out:?}"
    );
    transaction.commit().expect("the row is unlocked");
    assert_eq!(server.psql("SELECT lease::text FROM public.lease"), before);
}

#[test]
fn a_wait_outlives_a_database_that_is_away_for_a_while() {
    let server = Server::start_plain();
    server.stop();
    let waiter = Lease::new(["claim", "--wait", "forever", "k"])
        .on(&server)
        .spawn();
    waiter.wait_for_line("waiting: cannot claim k");
    server.start();
    let out = waiter.wait().expect_code(0);
    assert_eq!(out.stderr.lines().count(), 1, "said once: {out:?}");
}

#[test]
fn a_wait_does_not_retry_what_cannot_succeed() {
    let server = shared();
    let out = Lease::new(["claim", "--wait", "forever", "k"])
        .url(server.url_for("postgres", "no_such_database"))
        .output()
        .expect_code(69);
    assert!(out.stderr.contains("no_such_database"), "{out:?}");
}

#[test]
fn a_table_of_other_columns_is_refused_by_name() {
    let server = shared();
    let database = database(server);
    server.psql_in(
        &database,
        "CREATE TABLE public.lease (id int PRIMARY KEY, tenant text)",
    );
    let url = server.url_for("postgres", &database);
    for verb in [&["claim", "k"][..], &["status"]] {
        let out = Lease::new(verb).url(&url).output().expect_code(69);
        assert!(out.stderr.contains("not a lease table"), "{out:?}");
    }
}

#[test]
fn a_password_is_in_no_message_at_any_verbosity() {
    let server = Server::builder()
        .hba("host all app 127.0.0.1/32 scram-sha-256")
        .start();
    server.psql("CREATE ROLE app LOGIN PASSWORD 'right-s3cret'");
    let good = format!(
        "postgres://app:right-s3cret@127.0.0.1:{}/postgres",
        server.port()
    );
    let bad = good.replace("right", "wrong");
    for (url, code) in [(good, 69), (bad, 69)] {
        for verbose in [false, true] {
            // The role may not make a table: with the right password too there is something to complain about.
            server.psql("REVOKE CREATE ON SCHEMA public FROM PUBLIC");
            let call = Lease::new(["claim", "k"]).url(&url);
            let call = if verbose { call.arg("-v") } else { call };
            let out = call.output().expect_code(code);
            assert!(
                !out.stderr.contains("s3cret") && !out.stdout.contains("s3cret"),
                "{out:?}"
            );
        }
    }
}

#[test]
fn without_descriptors_lease_says_what_it_cannot_do_and_does_not_panic() {
    // With fewer than four a program is not even loaded.
    for most in 4..16 {
        let limited = format!("ulimit -n {most}; exec \"$@\"");
        let key = crate::support::key();
        let out = Lease::new(["run", "-q", "--db-timeout", "2s", &key, "--", "echo", "ran"])
            .wrapped(["sh", "-c", &limited, "sh"])
            .on(shared())
            .output();
        if out.stdout == "ran\n" {
            out.expect_code(0);
            continue;
        }
        assert!(matches!(out.code, Some(69 | 125)), "{most}: {out}");
        assert_eq!(out.stdout, "");
        assert_eq!(out.stderr.lines().count(), 1, "{most}: {out}");
        assert!(out.stderr.starts_with("lease: cannot "), "{most}: {out}");
    }
}
