//! Servers start, freeze, crash and come back.

use std::sync::mpsc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use postgres::{Client, NoTls};

use crate::support::{Clock, LIMIT, Server, proc, shared, skip, stays, until};

#[test]
fn a_server_answers_on_tcp_and_on_its_socket() {
    let server = shared();
    for url in [server.url(), server.socket_url()] {
        let row = Client::connect(&url, NoTls)
            .unwrap()
            .query_one("SELECT 1", &[])
            .unwrap();
        assert_eq!(row.get::<_, i32>(0), 1, "{url}");
    }
    assert_eq!(
        server.psql("VALUES (1, NULL, 'x'), (2, 'b', 'y')"),
        "1||x\n2|b|y"
    );
}

#[test]
fn a_new_database_is_empty_and_private() {
    let (one, other) = (shared().create_database(), shared().create_database());
    let tables = "SELECT count(*) FROM pg_class WHERE relnamespace = 'public'::regnamespace";
    Client::connect(&one, NoTls)
        .unwrap()
        .batch_execute("CREATE TABLE t ()")
        .unwrap();
    let row = Client::connect(&other, NoTls)
        .unwrap()
        .query_one(tables, &[])
        .unwrap();
    assert_eq!(row.get::<_, i64>(0), 0);
}

#[test]
fn settings_and_rules_of_a_server_are_the_tests_own() {
    let server = Server::builder()
        .conf("synchronous_commit = off")
        .hba("host all app 127.0.0.1/32 scram-sha-256")
        .start();
    assert_eq!(server.psql("SHOW synchronous_commit"), "off");
    server.psql("CREATE ROLE app LOGIN PASSWORD 'secret'");
    let connect = |user| Client::connect(&server.url_for(user, "postgres"), NoTls);
    assert!(connect("app:secret").is_ok());
    assert!(connect("app:wrong").is_err());
    server.set("synchronous_commit", "local");
    assert_eq!(server.psql("SHOW synchronous_commit"), "local");
}

#[test]
fn a_frozen_server_answers_only_when_it_is_resumed() {
    let server = Server::start_plain();
    let mut client = server.client();
    server.freeze();
    let (sender, answers) = mpsc::channel();
    std::thread::spawn(move || sender.send(client.simple_query("SELECT 1").is_ok()));
    stays("no answer", Duration::from_millis(300), || {
        answers.try_recv().is_err()
    });
    server.thaw();
    assert_eq!(answers.recv_timeout(LIMIT), Ok(true));
}

#[test]
fn a_crash_loses_what_was_not_flushed_and_nothing_else() {
    let server = Server::builder()
        .conf("synchronous_commit = off")
        .conf("wal_writer_delay = 10s")
        .start();
    server.psql("CREATE TABLE t (flushed bool); INSERT INTO t VALUES (true)");
    server.psql("CHECKPOINT");
    server.psql("INSERT INTO t VALUES (false)");
    let port = server.port();
    server.crash();
    assert!(Client::connect(&server.url(), NoTls).is_err());
    server.start();
    assert_eq!(server.psql("SELECT * FROM t"), "t");
    assert_eq!(server.port(), port);
}

#[test]
fn a_dropped_server_leaves_no_process_and_no_file() {
    let server = Server::start_plain();
    let (dir, pid) = (
        server.data().parent().unwrap().to_owned(),
        server.pid().unwrap(),
    );
    let mut client = server.client();
    server.freeze();
    drop(server);
    assert!(!dir.exists());
    until("its processes are gone", || {
        proc::working_in(&dir).is_empty() && proc::children(pid).is_empty()
    });
    assert!(client.simple_query("SELECT 1").is_err());
}

#[test]
fn a_servers_clock_goes_as_it_is_set() {
    let Some(clock) = Clock::new() else {
        return skip("faketime");
    };
    let server = clock.start(Server::builder());
    let mut client = server.client();
    let mut off = || -> f64 {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        let sql = "SELECT extract(epoch FROM clock_timestamp())::float8";
        client.query_one(sql, &[]).unwrap().get::<_, f64>(0) - now.as_secs_f64()
    };
    for (offset, seconds) in [("+0", 0.0), ("+1h", 3600.0), ("-1h", -3600.0), ("+0", 0.0)] {
        clock.set(offset);
        let off = off();
        assert!((off - seconds).abs() < 60.0, "{offset}: {off} s");
    }
}
