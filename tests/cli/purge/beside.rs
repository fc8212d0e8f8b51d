//! A purge beside claims, locks and signals, in short transactions.

use std::sync::atomic::{AtomicBool, Ordering};

use nix::sys::signal::Signal;
use postgres::types::ToSql;

use super::place::Place;
use crate::support::until;
use crate::term;

#[test]
fn claims_that_race_purges_all_succeed_and_no_fence_falls() {
    const CLAIMS: usize = 60;
    let place = Place::new();
    let done = AtomicBool::new(false);
    let removed = std::thread::scope(|scope| {
        let claimers: Vec<_> = ["one", "two"]
            .into_iter()
            .map(|key| {
                let place = &place;
                scope.spawn(move || {
                    let mut last = 0;
                    for _ in 0..CLAIMS {
                        let fence = place.used(key);
                        assert!(fence > last, "{key}: {fence} after {last}");
                        last = fence;
                    }
                })
            })
            .collect();
        let purger = scope.spawn(|| {
            let mut removed = 0;
            while !done.load(Ordering::SeqCst) {
                let out = place
                    .lease(&["purge", "--older-than", "1ms"])
                    .expect_code(0);
                removed += usize::from(!out.stderr.contains("removed 0 keys"));
            }
            removed
        });
        let ended: Vec<_> = claimers.into_iter().map(|claimer| claimer.join()).collect();
        done.store(true, Ordering::SeqCst);
        for claimer in ended {
            claimer.expect("every claim succeeds");
        }
        purger.join().expect("every purge succeeds")
    });
    assert!(removed > 5, "only {removed} purges have met the claims");
}

/// A statement of the source.
fn statement(room: &str, name: &str) -> String {
    let path = format!("{}/src/{room}/{name}.sql", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(path).expect("a file")
}

#[test]
fn a_claim_that_waits_for_the_row_that_is_purged_is_granted_with_a_larger_fence() {
    let place = Place::new();
    let fence = place.used("k");
    place.age("%", 100);
    let mut purge = place.server.client_in(&place.database);
    let mut purge = purge.transaction().expect("BEGIN");
    let keys: &[&(dyn ToSql + Sync)] = &[&["k"].as_slice(), &1_000_i64];
    let gone = purge.query(&statement("sql", "purge"), keys).expect("rows");
    assert_eq!(gone.len(), 1);
    let claim = place.call(&["claim", "--format", "json", "k"]).spawn();
    until("the claim waits for the row", || {
        place.sql(
            "SELECT count(*) FROM pg_stat_activity
              WHERE application_name = 'lease k' AND wait_event_type = 'Lock' AND datname = current_database()",
        ) == "1"
    });
    purge.commit().expect("COMMIT");
    let out = claim.wait().expect_code(0);
    assert_eq!(out.stderr, "");
    assert!(term(&out.stdout).fence > fence, "{fence}: {out}");
    assert_eq!(place.keys(), "k");
}

#[test]
fn a_key_that_another_session_has_locked_is_skipped_without_waiting() {
    let place = Place::with(&["init", "--keep-history", "forever"]);
    for key in ["claimed", "free"] {
        place.used(key);
    }
    place.age("%", 100);
    let mut other = place.server.client_in(&place.database);
    let mut other = other.transaction().expect("BEGIN");
    other
        .batch_execute(
            "UPDATE public.lease
                SET (holder, fence, acquired_at, expires_at) = ('other', fence + 1, clock_timestamp(), clock_timestamp() + interval '1h')
              WHERE key = 'claimed'",
        )
        .expect("claimed");
    let out = place
        .lease(&["purge", "--older-than", "90d", "--db-timeout", "20s"])
        .expect_code(0);
    assert_eq!(out.stderr, "lease: removed 1 key and 1 run\n");
    other.commit().expect("COMMIT");
    assert_eq!(
        (place.keys(), place.runs()),
        ("claimed".to_owned(), "claimed claimed".to_owned())
    );
}

/// So many unused keys, with one run each.
fn many(place: &Place, count: u32) {
    place.sql(&format!(
        "INSERT INTO public.lease (key, holder, fence, acquired_at, expires_at)
         SELECT 'k' || n, '', n, now() - interval '101 days', now() - interval '100 days' FROM generate_series(1, {count}) AS n;
         INSERT INTO public.lease_history (key, fence, holder, acquired_at, ended_at, ended)
         SELECT key, fence, 'x', acquired_at, expires_at, 'released' FROM public.lease"
    ));
}

#[test]
fn many_keys_and_a_long_history_go_in_short_transactions() {
    let place = Place::new();
    many(&place, 1_200);
    place.sql(
        "INSERT INTO public.lease_history (key, fence, holder, acquired_at, ended_at, ended)
         SELECT 'k7', n, 'x', now() - interval '102 days', now() - interval '101 days', 'released'
           FROM generate_series(1, 12000) AS n",
    );
    place.used("fresh");
    let out = place.lease(&["purge", "-v", "--older-than", "90d"]);
    let out = out.expect_code(0);
    let batches = out.stderr.matches("lease: purge: answered").count();
    assert!(batches >= 5, "{out}");
    assert!(
        out.stderr
            .ends_with("lease: removed 1200 keys and 13200 runs\n"),
        "{out}"
    );
    assert_eq!(
        (place.keys(), place.runs()),
        ("fresh".to_owned(), "fresh".to_owned())
    );
}

#[test]
fn a_purge_that_is_interrupted_leaves_whole_batches() {
    let place = Place::new();
    many(&place, 10_000);
    place.sql(
        "CREATE FUNCTION public.slow() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_sleep(0.3); RETURN NULL; END';
         CREATE TRIGGER slow AFTER DELETE ON public.lease FOR EACH STATEMENT EXECUTE FUNCTION public.slow()",
    );
    let count = |table: &str| -> u32 {
        let count = place.sql(&format!("SELECT count(*) FROM public.{table}"));
        count.parse().expect("a number")
    };
    let purge = place.call(&["purge", "--older-than", "90d"]).spawn();
    until("the first batch is gone", || count("lease") < 10_000);
    purge.signal(Signal::SIGINT);
    purge.wait().expect_signal(Signal::SIGINT);
    until("the server has noticed", || {
        place.sql("SELECT count(*) FROM pg_stat_activity WHERE application_name = 'lease' AND datname = current_database()") == "0"
    });
    let left = count("lease");
    assert!(left > 0 && left.is_multiple_of(500), "{left}");
    assert_eq!(count("lease_history"), left);
}
