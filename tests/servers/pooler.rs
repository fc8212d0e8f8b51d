//! PgBouncer in each of its modes.

use std::time::Duration;

use crate::claim;
use crate::support::pooler::{Mode, Pooler};
use crate::support::{Lease, Server, key, skip, until};

fn every_verb_works(url: &str) {
    let key = key();
    let call = |args: &[&str]| Lease::new(args).url(url).output();
    call(&["init"]).expect_code(0);
    let (holder, fence) = claim(url, &key, &[]);
    let fence = fence.to_string();
    call(&["claim", &key]).expect_code(75);
    call(&["claim", &key, "--wait", "200ms"]).expect_code(75);
    call(&["renew", "--holder", &holder, "--fence", &fence, &key]).expect_code(0);
    assert!(call(&["status"]).expect_code(0).stdout.contains(&key));
    call(&["release", "--holder", &holder, "--fence", &fence, &key]).expect_code(0);
    call(&["run", "--ttl", "1s", &key, "--", "sleep", "2"]).expect_code(0);
    claim(url, &key, &[]);
    call(&["release", "--force", &key]).expect_code(0);
    until("the key is purged", || {
        let out = call(&["purge", "--older-than", "1ms", &key]).expect_code(0);
        out.stderr == "lease: removed 1 key and 3 runs\n"
    });
}

#[test]
fn eight_clients_share_two_connections_in_transaction_mode_without_an_error() {
    if !Pooler::is_available() {
        return skip("PgBouncer");
    }
    let server = Server::start_plain();
    let pooler = Pooler::start(&server, Mode::Transaction, 2);
    every_verb_works(&pooler.url());
    std::thread::scope(|scope| {
        for client in 0..8 {
            let url = pooler.url();
            scope.spawn(move || {
                for run in 0..50 {
                    // Half of the keys are fought for, half are the client's own.
                    let key = if run % 2 == 0 {
                        format!("own-{client}")
                    } else {
                        format!("shared-{run}")
                    };
                    let out =
                        Lease::new(["run", "--ttl", "30s", "--wait", "1m", &key, "--", "true"])
                            .url(&url)
                            .output();
                    let out = out.expect_code(0);
                    assert_eq!(
                        (
                            out.stdout.as_str(),
                            out.stderr
                                .lines()
                                .filter(|l| !l.contains("waiting: "))
                                .count()
                        ),
                        ("", 0),
                        "{out:?}"
                    );
                }
            });
        }
    });
    assert_eq!(
        server.psql("SELECT count(*) FROM public.lease WHERE holder <> '' AND key LIKE 'own%'"),
        "0"
    );
}

#[test]
fn no_setting_leaks_to_the_next_client_of_a_pooled_connection() {
    if !Pooler::is_available() {
        return skip("PgBouncer");
    }
    let server = Server::start_plain();
    server.psql("ALTER SYSTEM SET synchronous_commit = off");
    server.psql("SELECT pg_reload_conf()");
    let pooler = Pooler::start(&server, Mode::Transaction, 1);
    let mut other =
        postgres::Client::connect(&pooler.url(), postgres::NoTls).expect("the pooler answers");
    let mut settings = || -> Vec<String> {
        [
            "search_path",
            "statement_timeout",
            "lock_timeout",
            "idle_in_transaction_session_timeout",
            "synchronous_commit",
            "transaction_isolation",
        ]
        .iter()
        .map(|name| {
            let rows = other
                .simple_query(&format!("SHOW {name}"))
                .expect("a setting");
            let Some(postgres::SimpleQueryMessage::Row(row)) = rows.get(1) else {
                panic!("{rows:?}");
            };
            format!("{name}={}", row.get(0).unwrap_or_default())
        })
        .collect()
    };
    let backend = "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()";
    let before = settings();
    every_verb_works(&pooler.url());
    assert_eq!(settings(), before);
    assert_eq!(
        server.psql(backend),
        "1",
        "it was one and the same connection"
    );
}

#[test]
fn session_mode_works() {
    if !Pooler::is_available() {
        return skip("PgBouncer");
    }
    let server = Server::start_plain();
    every_verb_works(&Pooler::start(&server, Mode::Session, 2).url());
}

#[test]
fn statement_mode_is_refused_with_advice() {
    if !Pooler::is_available() {
        return skip("PgBouncer");
    }
    let server = Server::start_plain();
    let pooler = Pooler::start(&server, Mode::Statement, 2);
    for verb in [&["claim", "k"][..], &["status"], &["init"]] {
        let out = Lease::new(verb).url(pooler.url()).output().expect_code(69);
        assert!(
            out.stderr.contains("transaction or session mode"),
            "{out:?}"
        );
    }
    assert_eq!(
        server.psql("SELECT to_regclass('public.lease') IS NULL"),
        "t"
    );
}

#[test]
fn a_job_behind_a_pooler_survives_a_restart_of_its_server() {
    if !Pooler::is_available() {
        return skip("PgBouncer");
    }
    let server = Server::start_plain();
    let pooler = Pooler::start_with(&server, Mode::Transaction, 2, &["server_login_retry = 1"]);
    let key = key();
    let stop = crate::support::keeper::dir("stop").join("now");
    let job = format!(
        "until test -e '{}'; do sleep 0.1; done; echo done",
        stop.display()
    );
    let run = Lease::new([
        "run",
        "--ttl",
        "20s",
        "--heartbeat",
        "500ms",
        &key,
        "--",
        "sh",
        "-c",
        &job,
    ])
    .url(pooler.url())
    .spawn();
    let fence = || {
        server.psql(&format!(
            "SELECT fence || holder FROM public.lease WHERE key = '{key}'"
        ))
    };
    until("the lease is claimed", || {
        server
            .try_psql_in("postgres", "SELECT fence FROM public.lease")
            .is_ok_and(|f| !f.is_empty())
    });
    let before = fence();
    server.stop();
    run.wait_for_line("cannot renew");
    server.start();
    run.wait_for_line("is renewed again");
    assert_eq!(fence(), before);
    std::fs::write(&stop, "").expect("a file");
    let out = run.wait_within(Duration::from_secs(60)).expect_code(0);
    assert_eq!(out.stdout, "done\n");
    assert_eq!(
        out.stderr.lines().count(),
        2,
        "once when it begins and once when it ends: {out:?}"
    );
}
