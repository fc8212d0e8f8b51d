//! What the statements promise, seen from the server.

use crate::support::table::{change, delete, lock_row};
use crate::support::{Lease, Server, key, shared, until};
use crate::{claimed, column, database, lease, left_of, term, with_term};

const MICROS: &str = "(extract(epoch FROM clock_timestamp()) * 1000000)::bigint";

#[test]
fn an_expiry_counts_from_the_row_lock_and_not_from_the_start_of_the_statement() {
    let key = key();
    claimed(&key, &["--ttl", "2s"]);
    until("it expires", || {
        column(shared(), &key, "expires_at < clock_timestamp()") == "t"
    });
    let mut client = shared().client();
    let mut transaction = client.transaction().expect("a transaction");
    lock_row(&mut transaction, &key);
    let claiming = lease(&["claim", "--format", "json", "--ttl", "20s", &key]).spawn();
    until("the claim waits", || {
        shared().psql("SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND application_name LIKE 'lease an_expiry_counts%'") == "1"
    });
    transaction
        .execute("SELECT pg_sleep(2)", &[])
        .expect("two seconds pass");
    let unlocked: i64 = transaction
        .query_one(&format!("SELECT {MICROS}"), &[])
        .expect("a clock")
        .get(0);
    transaction.commit().expect("the row is unlocked");
    let out = claiming.wait().expect_code(0);
    let granted = term(&out.stdout);
    left_of(20_000, granted.expires_in_ms, &out);
    assert!(
        granted.expires_in_ms <= 18_000,
        "it counts from the sending"
    );
    assert!(
        granted.fence >= unlocked,
        "the clock was read after the lock"
    );
    assert_eq!(
        column(shared(), &key, "expires_at - acquired_at = '20s'"),
        "t"
    );
}

#[test]
fn a_claim_that_waited_for_a_row_being_deleted_reads_the_clock_once_its_row_exists() {
    let key = key();
    let first = claimed(&key, &[]);
    with_term("release", &first).output().expect_code(0);
    let mut client = shared().client();
    let mut transaction = client.transaction().expect("a transaction");
    transaction
        .execute("DELETE FROM public.lease WHERE key = $1", &[&key])
        .expect("the row is being deleted");
    let claiming = lease(&["claim", "--format", "json", &key]).spawn();
    until("the claim waits", || {
        shared().psql("SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND application_name LIKE 'lease a_claim_that_waited%'") == "1"
    });
    let later: i64 = transaction
        .query_one(&format!("SELECT {MICROS}"), &[])
        .expect("a clock")
        .get(0);
    transaction.commit().expect("the row is deleted");
    let granted = term(&claiming.wait().expect_code(0).stdout);
    assert!(
        granted.fence > later,
        "{} is older than {later}",
        granted.fence
    );
}

#[test]
fn a_claim_that_loses_writes_nothing() {
    let server = Server::builder()
        .conf("wal_level = minimal")
        .conf("max_wal_senders = 0")
        .conf("autovacuum = off")
        .conf("full_page_writes = off")
        .start();
    Lease::new(["claim", "k"])
        .on(&server)
        .output()
        .expect_code(0);
    server.psql("CHECKPOINT");
    let facts = || {
        server.psql(
            "SELECT pg_current_wal_insert_lsn() || ' ' || pg_snapshot_xmax(pg_current_snapshot())",
        )
    };
    // The first look after a start may still log something of the server's own.
    Lease::new(["claim", "k"])
        .on(&server)
        .output()
        .expect_code(75);
    let before = facts();
    for _ in 0..20 {
        Lease::new(["claim", "k"])
            .on(&server)
            .output()
            .expect_code(75);
    }
    assert_eq!(facts(), before);
    Lease::new(["claim", "other"])
        .on(&server)
        .output()
        .expect_code(0);
    assert_ne!(facts(), before, "a claim that wins does write");
}

#[test]
fn a_grant_survives_the_crash_of_a_server_that_does_not_wait_for_its_log() {
    let server = Server::builder()
        .fsync(true)
        .conf("synchronous_commit = off")
        .conf("wal_writer_delay = 10s")
        .start();
    Lease::new(["init"]).on(&server).output().expect_code(0);
    for n in 1..=5 {
        Lease::new(["claim", &format!("k{n}")])
            .on(&server)
            .output()
            .expect_code(0);
        server.crash();
        server.start();
        assert_eq!(
            server.psql("SELECT count(*) FROM public.lease"),
            n.to_string()
        );
    }
}

#[test]
fn a_stronger_durability_is_kept() {
    let server = Server::builder()
        .conf("synchronous_commit = remote_apply")
        .conf("log_statement = all")
        .start();
    Lease::new(["claim", "k"])
        .on(&server)
        .output()
        .expect_code(0);
    let raised = "SELECT set_config('synchronous_commit', 'on', true)\n\t WHERE current_setting('synchronous_commit') IN ('off', 'local')";
    assert!(server.log().contains(raised), "{}", server.log());
}

#[test]
fn contended_claims_under_a_serializable_default_have_one_winner_and_no_error() {
    let server = shared();
    let database = database(server);
    server.psql(
        "CREATE ROLE strict_role LOGIN SUPERUSER; ALTER ROLE strict_role SET default_transaction_isolation = serializable",
    );
    let url = server.url_for("strict_role", &database);
    Lease::new(["claim", "--holder", "nobody", "k"])
        .url(&url)
        .output()
        .expect_code(0);
    let mut last_fence = 0;
    for round in 0..20 {
        server.psql_in(
            &database,
            "UPDATE public.lease SET acquired_at = clock_timestamp() - interval '2s', expires_at = clock_timestamp() - interval '1s'",
        );
        let running: Vec<_> = (0..16)
            .map(|_| {
                Lease::new(["claim", "--format", "json", "k"])
                    .url(&url)
                    .spawn()
            })
            .collect();
        let outs: Vec<_> = running.into_iter().map(|r| r.wait()).collect();
        let winners: Vec<_> = outs.iter().filter(|o| o.code == Some(0)).collect();
        assert_eq!(winners.len(), 1, "round {round}: {outs:?}");
        assert!(
            outs.iter().all(|o| matches!(o.code, Some(0 | 75))),
            "round {round}: {outs:?}"
        );
        let fence = term(&winners[0].stdout).fence;
        assert!(fence > last_fence);
        last_fence = fence;
    }
    // Not because each was asked again until it went through.
    assert!(!server.log().contains("ERROR:  could not serialize access"));
}

#[test]
fn neither_search_path_nor_objects_in_other_schemas_change_what_a_statement_means() {
    let server = shared();
    let database = database(server);
    server.psql_in(
        &database,
        "CREATE SCHEMA evil;
         CREATE TABLE evil.lease (key text PRIMARY KEY, holder text, fence bigint, acquired_at timestamptz, expires_at timestamptz);
         CREATE FUNCTION evil.clock_timestamp() RETURNS timestamptz LANGUAGE sql AS $$ SELECT 'epoch'::timestamptz $$;
         CREATE FUNCTION evil.set_config(text, text, boolean) RETURNS text LANGUAGE plpgsql AS $$ BEGIN RAISE 'evil'; END $$;
         CREATE ROLE lost_role LOGIN SUPERUSER; ALTER ROLE lost_role SET search_path = evil, pg_catalog, public",
    );
    Lease::new(["claim", "k"])
        .url(server.url_for("lost_role", &database))
        .output()
        .expect_code(0);
    Lease::new(["claim", "k"])
        .url(server.url_for("postgres", &database))
        .output()
        .expect_code(75);
    assert_eq!(
        server.psql_in(&database, "SELECT count(*) FROM evil.lease"),
        "0"
    );
}

#[test]
fn renewals_stay_hot_updates() {
    let server = Server::builder().conf("autovacuum = off").start();
    let out = Lease::new(["claim", "--format", "json", "k"])
        .on(&server)
        .output()
        .expect_code(0);
    let held = term(&out.stdout);
    let fence = held.fence.to_string();
    let renew = ["renew", "--holder", &held.holder, "--fence", &fence, "k"];
    for _ in 0..100 {
        Lease::new(renew).on(&server).output().expect_code(0);
    }
    let counts = || {
        server.psql("SELECT n_tup_upd - n_tup_hot_upd || ' ' || n_tup_upd FROM pg_stat_user_tables WHERE relname = 'lease'")
    };
    // The one update more is the second reading of the clock for a new row.
    until("the statistics arrive", || counts() == "0 101");
    assert_eq!(
        server.psql("SELECT pg_relation_size('public.lease') <= 16384"),
        "t"
    );
}

#[test]
fn a_clock_set_back_does_not_cost_a_holder_its_lease() {
    let key = key();
    let held = claimed(&key, &[]);
    change(
        shared(),
        &key,
        "acquired_at = clock_timestamp() + '1h', expires_at = clock_timestamp() + '1h 1min'",
    );
    with_term("renew", &held).output().expect_code(0);
    assert_eq!(
        column(
            shared(),
            &key,
            "expires_at < clock_timestamp() + interval '61s'"
        ),
        "t"
    );
    with_term("release", &held).output().expect_code(0);
    assert!(claimed(&key, &[]).fence > held.fence);
}

#[test]
fn a_fence_that_cannot_grow_is_explained() {
    let key = key();
    let held = claimed(&key, &[]);
    with_term("release", &held).output().expect_code(0);
    change(shared(), &key, "fence = 9223372036854775807");
    let out = lease(&["claim", &key]).output().expect_code(69);
    assert_eq!(
        out.stderr,
        format!(
            "lease: cannot claim {key}: bigint out of range (the fence cannot grow: its column must be a bigint; if it is one, somebody wrote the largest possible fence: find out who, DELETE the row, and make every resource forget that fence, see lease-fencing(7))\n"
        )
    );
    delete(shared(), &key);
    assert!(claimed(&key, &[]).fence > held.fence);
}
