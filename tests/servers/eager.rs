//! `--eager`: a waiter that keeps its connection and looks many times a second.

use std::time::Duration;

use crate::claim;
use crate::column;
use crate::support::pooler::{Mode, Pooler};
use crate::support::proxy::Proxy;
use crate::support::{Lease, Running, Server, key, skip, until, until_within};

/// A waiter by `url` for a key that is held.
fn waiter(url: &str, key: &str) -> Running {
    Lease::new(["run", "--wait", "forever", "--eager", key])
        .args(["--", "sh", "-c", "echo has $FENCE"])
        .url(url)
        .spawn()
}

fn release(server: &Server, key: &str, (holder, fence): &(String, i64)) {
    let fence = fence.to_string();
    Lease::new(["release", "--holder", holder, "--fence", &fence, key])
        .on(server)
        .output()
        .expect_code(0);
}

/// The sessions of the waiters for this key.
fn sessions(server: &Server, key: &str) -> String {
    server.psql(&format!(
        "SELECT string_agg(pid::text, ' ' ORDER BY pid) FROM pg_stat_activity WHERE application_name = left('lease {key}', 63)"
    ))
}

/// When one of them has sent its last statement.
fn last_look(server: &Server, key: &str) -> String {
    server.psql(&format!(
        "SELECT max(query_start) FROM pg_stat_activity WHERE application_name = left('lease {key}', 63)"
    ))
}

#[test]
fn an_eager_waiter_looks_on_one_connection_and_leaves_no_transaction_open() {
    let server = Server::start_plain();
    let key = key();
    let held = claim(&server.url(), &key, &[]);
    let run = waiter(&server.url(), &key);
    run.wait_for_line("waiting: ");
    until("it is connected", || !sessions(&server, &key).is_empty());
    let session = sessions(&server, &key);
    for _ in 0..8 {
        let before = last_look(&server, &key);
        until("it looks again", || last_look(&server, &key) != before);
        let open = server.psql(&format!(
            "SELECT count(*) FROM pg_stat_activity WHERE application_name = left('lease {key}', 63) AND state LIKE 'idle in%'"
        ));
        assert_eq!(open, "0", "a transaction is open");
    }
    assert_eq!(
        sessions(&server, &key),
        session,
        "still the same connection"
    );
    release(&server, &key, &held);
    let out = run.wait().expect_code(0);
    assert!(out.stdout.starts_with("has "), "{out}");
    assert_eq!(column(&server, &key, "holder"), "");
}

#[test]
fn a_long_eager_wait_needs_no_more_of_the_stack_than_a_short_one() {
    let server = Server::start_plain();
    let key = key();
    let held = claim(&server.url(), &key, &[]);
    // A quarter of the usual stack, so that a wait of some seconds stands for one of hours.
    let run = Lease::new(["run", "-v", "--wait", "forever", "--eager", &key])
        .args(["--", "true"])
        .env("RUST_MIN_STACK", "524288")
        .url(server.url())
        .spawn();
    // On a busy machine it looks less often.
    until_within("it has looked often", Duration::from_secs(180), || {
        run.stderr().matches("look: answered").count() > 150
    });
    release(&server, &key, &held);
    run.wait().expect_code(0);
}

#[test]
fn the_job_of_an_eager_waiter_runs_without_a_connection() {
    let server = Server::start_plain();
    let key = key();
    let held = claim(&server.url(), &key, &[]);
    let run = Lease::new(["run", "--wait", "forever", "--eager", &key])
        .args(["--", "sh", "-c", "echo ready; read end"])
        .url(server.url())
        .open_input()
        .spawn();
    run.wait_for_line("waiting: ");
    until("it is connected", || !sessions(&server, &key).is_empty());
    release(&server, &key, &held);
    run.wait_for_line("ready");
    until("its connection is closed", || {
        sessions(&server, &key).is_empty()
    });
    run.close_input();
    run.wait();
}

#[test]
fn an_eager_waiter_survives_a_broken_connection_and_an_outage() {
    let server = Server::start_plain();
    let proxy = Proxy::to(&server);
    let key = key();
    let held = claim(&server.url(), &key, &[]);
    let run = Lease::new(["run", "-v", "--wait", "forever", "--eager", &key])
        .args(["--", "true"])
        .url(proxy.url())
        .spawn();
    run.wait_for_line("waiting: ");
    until("it is connected", || proxy.open() == 1);
    let accepted = proxy.accepted();
    proxy.cut();
    until("it has connected again", || proxy.accepted() > accepted);
    proxy.refuse();
    run.wait_for_line("waiting: cannot claim");
    proxy.resume();
    let looks = || run.stderr().matches("look: answered").count();
    let before = looks();
    until("it looks often again", || looks() > before + 10);
    release(&server, &key, &held);
    run.wait().expect_code(0);
}

#[test]
fn an_eager_waiter_without_a_connection_to_keep_says_so_and_waits_like_any_other() {
    let server = Server::builder()
        .conf("max_connections = 6")
        .conf("superuser_reserved_connections = 2")
        .start();
    server.psql("CREATE ROLE app LOGIN; GRANT CREATE ON SCHEMA public TO app");
    let url = server.url_for("app", "postgres");
    let key = key();
    let held = claim(&url, &key, &[]);
    let mut taken = Vec::new();
    until("every connection is taken", || {
        taken.extend(postgres::Client::connect(&url, postgres::NoTls).ok());
        taken.len() >= 4
    });
    let run = waiter(&url, &key);
    run.wait_for_line("waiting: --eager cannot keep a connection: ");
    drop(taken);
    run.wait_for_line(&format!("waiting: {key} is held by"));
    release(&server, &key, &held);
    run.wait().expect_code(0);
}

#[test]
fn eager_waiters_share_one_connection_of_a_pooler() {
    if !Pooler::is_available() {
        return skip("PgBouncer");
    }
    let server = Server::start_plain();
    let pooler = Pooler::start(&server, Mode::Transaction, 1);
    let key = key();
    let held = claim(&pooler.url(), &key, &[]);
    let waiters: Vec<Running> = (0..5).map(|_| waiter(&pooler.url(), &key)).collect();
    for waiter in &waiters {
        waiter.wait_for_line("waiting: ");
    }
    let fence = held.1.to_string();
    Lease::new(["release", "--holder", &held.0, "--fence", &fence, &key])
        .url(pooler.url())
        .output()
        .expect_code(0);
    for waiter in waiters {
        let out = waiter.wait().expect_code(0);
        assert!(!out.stderr.contains("--eager cannot"), "{out}");
    }
}

#[test]
fn an_eager_look_means_the_same_under_any_search_path() {
    let server = Server::start_plain();
    let key = key();
    let held = claim(&server.url(), &key, &[]);
    server.psql(
        "CREATE ROLE app LOGIN; GRANT USAGE ON SCHEMA public TO app;
         GRANT SELECT, INSERT, UPDATE ON public.lease TO app;
         CREATE SCHEMA bad; GRANT USAGE ON SCHEMA bad TO app;
         CREATE FUNCTION bad.clock_timestamp() RETURNS timestamptz LANGUAGE sql AS $$ SELECT 'infinity'::timestamptz $$;
         CREATE FUNCTION bad.never(text, text) RETURNS boolean LANGUAGE sql AS $$ SELECT false $$;
         CREATE OPERATOR bad.= (LEFTARG = text, RIGHTARG = text, FUNCTION = bad.never);
         ALTER ROLE app SET search_path = bad, pg_catalog",
    );
    // With either of them the look would find the key free at every time, and each would be followed by a claim.
    let run = Lease::new(["run", "-v", "--wait", "forever", "--eager", &key])
        .args(["--", "true"])
        .url(server.url_for("app", "postgres"))
        .spawn();
    run.wait_for_line("waiting: ");
    until("it has looked ten times", || {
        run.stderr().matches("look: answered").count() >= 10
    });
    assert!(
        !run.stderr().contains("claim: answered"),
        "{}",
        run.stderr()
    );
    release(&server, &key, &held);
    run.wait().expect_code(0);
}

#[test]
fn an_interrupted_eager_wait_ends_at_once() {
    let server = Server::start_plain();
    let key = key();
    claim(&server.url(), &key, &[]);
    let run = Lease::new(["claim", "--wait", "forever", "--eager", &key])
        .url(server.url())
        .spawn();
    run.wait_for_line("waiting: ");
    until("it is connected", || !sessions(&server, &key).is_empty());
    run.signal(nix::sys::signal::Signal::SIGTERM);
    run.wait().expect_signal(nix::sys::signal::Signal::SIGTERM);
    until("its session has ended", || {
        sessions(&server, &key).is_empty()
    });
}
