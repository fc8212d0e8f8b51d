//! A server that restarts, recovers, is full, or ends sessions: transient, retried, said once.

use std::time::Duration;

use crate::support::{Disk, Lease, Running, Server, key, programs, skip, until};
use crate::{claim, column};

/// A run whose job ends when it is told to.
struct Job {
    run: Running,
    stop: std::path::PathBuf,
}

fn start(server: &Server, url: &str, key: &str, ttl: &str) -> Job {
    let stop = crate::support::keeper::dir("stop").join("now");
    let job = format!("until test -e '{}'; do sleep 0.1; done", stop.display());
    let run = Lease::new([
        "run",
        "--ttl",
        ttl,
        "--heartbeat",
        "300ms",
        key,
        "--",
        "sh",
        "-c",
        &job,
    ])
    .url(url)
    .spawn();
    let holder = format!("SELECT holder FROM public.lease WHERE key = '{key}'");
    until("the lease is claimed", || {
        server
            .try_psql_in("postgres", &holder)
            .is_ok_and(|h| !h.is_empty())
    });
    Job { run, stop }
}

impl Job {
    fn finish(self, lines: usize) {
        std::fs::write(&self.stop, "").expect("a file");
        let out = self.run.wait_within(Duration::from_secs(60)).expect_code(0);
        assert_eq!(out.stderr.lines().count(), lines, "{out:?}");
    }
}

#[test]
fn crash_recovery_of_the_server_is_survived_and_reported_once() {
    let server = Server::builder().fsync(true).start();
    let key = key();
    let job = start(&server, &server.url(), &key, "30s");
    server.crash();
    job.run.wait_for_line("cannot renew");
    server.start_without_waiting();
    job.run.wait_for_line("is renewed again");
    job.finish(2);
}

#[test]
fn a_server_without_a_free_connection_is_survived_and_reported_once() {
    let server = Server::builder()
        .conf("max_connections = 6")
        .conf("superuser_reserved_connections = 2")
        .start();
    server.psql("CREATE ROLE app LOGIN");
    server.psql("GRANT CREATE ON SCHEMA public TO app");
    let url = server.url_for("app", "postgres");
    let key = key();
    let job = start(&server, &url, &key, "30s");
    let mut taken = Vec::new();
    until("every connection is taken", || {
        taken.extend(postgres::Client::connect(&url, postgres::NoTls).ok());
        taken.len() >= 4
    });
    job.run.wait_for_line("cannot renew");
    assert!(
        job.run.stderr().contains("reserved") || job.run.stderr().contains("too many"),
        "{}",
        job.run.stderr()
    );
    drop(taken);
    job.run.wait_for_line("is renewed again");
    job.finish(2);
}

#[test]
fn limits_on_idle_sessions_do_no_harm() {
    let server = Server::start_plain();
    server.psql("CREATE ROLE app LOGIN; GRANT CREATE ON SCHEMA public TO app");
    // For the role of the job alone: what this test asks must not be cut off.
    let mut limits = vec![
        "idle_in_transaction_session_timeout = '2s'",
        "statement_timeout = '5s'",
        "lock_timeout = '1s'",
    ];
    if programs::version() >= 14 {
        limits.push("idle_session_timeout = '200ms'");
    }
    for limit in limits {
        server.psql(&format!("ALTER ROLE app SET {limit}"));
    }
    let key = key();
    let job = start(&server, &server.url_for("app", "postgres"), &key, "30s");
    let renewed =
        || server.psql("SELECT expires_at - acquired_at > interval '32s' FROM public.lease") == "t";
    until("it was renewed several times", renewed);
    job.finish(0);
}

#[test]
fn sessions_that_are_ended_again_and_again_do_not_lose_the_lease() {
    let server = Server::start_plain();
    let key = key();
    let job = start(&server, &server.url(), &key, "30s");
    let fence = server.psql("SELECT fence FROM public.lease");
    let renewed =
        || server.psql("SELECT expires_at - acquired_at > interval '33s' FROM public.lease") == "t";
    until("it was renewed several times", || {
        server.psql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'lease%'");
        renewed()
    });
    assert_eq!(server.psql("SELECT fence FROM public.lease"), fence);
    std::fs::write(&job.stop, "").expect("a file");
    job.run.wait_within(Duration::from_secs(60)).expect_code(0);
}

#[test]
fn a_claim_survives_the_end_of_its_session() {
    let server = Server::start_plain();
    let key = key();
    claim(&server.url(), &key, &["--ttl", "2s"]);
    let locked = "SELECT expires_at < clock_timestamp() FROM public.lease";
    until("it expires", || server.psql(locked) == "t");
    let mut client = server.client();
    let mut transaction = client.transaction().expect("a transaction");
    transaction
        .execute("SELECT FROM public.lease FOR UPDATE", &[])
        .expect("the row is locked");
    let claiming = Lease::new(["claim", &key]).on(&server).spawn();
    let ended = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE application_name LIKE 'lease%' AND wait_event_type = 'Lock'";
    until("its session is ended while it waits", || {
        server.psql(ended) != "0"
    });
    transaction.commit().expect("the row is unlocked");
    claiming.wait().expect_code(0);
}

#[test]
fn a_server_restart_while_the_job_ends_does_not_shorten_the_hold() {
    let server = Server::builder().fsync(true).start();
    let key = key();
    Lease::new(["init"]).on(&server).output().expect_code(0);
    let go = crate::support::keeper::dir("stop").join("now");
    let job = format!("until test -e '{}'; do sleep 0.1; done", go.display());
    let run = Lease::new([
        "run",
        "--ttl",
        "60s",
        "--db-timeout",
        "20s",
        "--hold-at-least",
        "1h",
        &key,
    ])
    .args(["--", "sh", "-c", &job])
    .on(&server)
    .spawn();
    until("the lease is claimed", || {
        !column(&server, &key, "holder").is_empty()
    });
    server.crash();
    std::fs::write(&go, "").expect("a file");
    until("the job has ended", || {
        crate::support::proc::no_process_with_env("LEASE_KEY", &key)
    });
    server.start();
    let out = run.wait_within(Duration::from_secs(60)).expect_code(0);
    assert_eq!(out.stderr, "");
    assert_eq!(column(&server, &key, "holder"), "");
    assert_eq!(
        column(&server, &key, "expires_at - acquired_at = '1h'"),
        "t"
    );
}

#[test]
fn a_full_disk_is_survived_and_reported_once() {
    let Some(disk) = Disk::new(1) else {
        return skip("the right to mount a file system");
    };
    let server = Server::start_plain();
    Lease::new(["init"]).on(&server).output().expect_code(0);
    let space = disk.dir("space");
    server.psql(&format!(
        "CREATE TABLESPACE small LOCATION '{}'",
        space.display()
    ));
    server.psql("ALTER TABLE public.lease SET TABLESPACE small");
    // Who still sees the old rows keeps their room from being used again, and a page holds but a few of such keys.
    let mut client = server.client();
    let mut reader = client
        .build_transaction()
        .isolation_level(postgres::IsolationLevel::RepeatableRead)
        .start()
        .expect("a transaction");
    reader.execute("SELECT", &[]).expect("a snapshot");
    let long = |key: String| format!("{key}{}", "-".repeat(900));
    let key = long(key());
    let job = start(&server, &server.url(), &key, "30s");
    let fence = column(&server, &key, "fence");
    disk.fill();
    let line = job.run.wait_for_line("cannot renew");
    assert!(line.contains("No space left on device"), "{line}");
    let claim = Lease::new(["claim", &long(crate::support::key())]);
    let refused = claim.on(&server).output().expect_code(69);
    assert!(
        refused.stderr.contains("No space left on device"),
        "{refused}"
    );
    disk.free();
    job.run.wait_for_line("is renewed again");
    assert_eq!(column(&server, &key, "fence"), fence);
    job.finish(2);
}

#[test]
fn a_disk_too_full_for_the_servers_own_log_is_survived_and_reported_once() {
    let Some(disk) = Disk::new(16) else {
        return skip("the right to mount a file system");
    };
    let server = Server::builder()
        .conf("wal_keep_size = 0")
        .conf("min_wal_size = 2MB")
        .conf("max_wal_size = 2MB")
        .start();
    server.stop();
    let (log, data) = (disk.dir("log"), server.data().join("pg_wal"));
    let script = "cp -a \"$1/.\" \"$2\" && rm -r \"$1\" && ln -s \"$2\" \"$1\"";
    programs::run(
        std::process::Command::new("sh")
            .args(["-c", script, "sh"])
            .args([&data, &log]),
    );
    server.start();
    // For a standby that does not come, everything is kept.
    server.psql("SELECT pg_create_physical_replication_slot('absent', true)");
    let key = key();
    let job = start(&server, &server.url(), &key, "60s");
    let fence = column(&server, &key, "fence");
    disk.fill();
    // It panics when it can't begin the next piece of its log.
    until("the server has crashed", || {
        let next = "SELECT pg_switch_wal(), txid_current()";
        server.try_psql_in("postgres", next).is_err()
    });
    job.run.wait_for_line("cannot renew");
    disk.free();
    // It has given up, or is about to.
    server.stop();
    server.start();
    job.run.wait_for_line("is renewed again");
    assert_eq!(column(&server, &key, "fence"), fence);
    assert!(server.log().contains("No space left on device"));
    job.finish(2);
}
