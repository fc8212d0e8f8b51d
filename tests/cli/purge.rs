//! `lease purge`. Each test has a database of its own, because purge looks at every key.

use std::sync::atomic::{AtomicBool, Ordering};

use nix::sys::signal::Signal;
use postgres::types::ToSql;

use crate::support::{Lease, Output, Server, shared, until};
use crate::{database, term};

/// A lease table in a database of its own.
struct Place {
    server: &'static Server,
    database: String,
}

impl Place {
    fn with(init: &[&str]) -> Self {
        let server = shared();
        let place = Self {
            server,
            database: database(server),
        };
        if !init.is_empty() {
            place.lease(init).expect_code(0);
        }
        place
    }

    fn new() -> Self {
        Self::with(&["init"])
    }

    fn call(&self, args: &[&str]) -> Lease {
        Lease::new(args).url(self.server.url_for("postgres", &self.database))
    }

    #[track_caller]
    fn lease(&self, args: &[&str]) -> Output {
        self.call(args).output()
    }

    #[track_caller]
    fn sql(&self, text: &str) -> String {
        self.server.psql_in(&self.database, text)
    }

    /// A fence of `key`, which is released again.
    #[track_caller]
    fn used(&self, key: &str) -> i64 {
        let term = term(
            &self
                .lease(&["claim", "--format", "json", key])
                .expect_code(0)
                .stdout,
        );
        let fence = term.fence.to_string();
        self.lease(&["release", "--holder", &term.holder, "--fence", &fence, key])
            .expect_code(0);
        term.fence
    }

    /// Moves everything that has happened to these keys so many days into the past.
    fn age(&self, keys: &str, days: u32) {
        self.sql(&format!(
            "ALTER TABLE public.lease DISABLE TRIGGER USER;
             UPDATE public.lease
                SET acquired_at = acquired_at - interval '{days} days', expires_at = expires_at - interval '{days} days',
                    fence = fence - {days} * 86400000000
              WHERE key LIKE '{keys}';
             ALTER TABLE public.lease ENABLE TRIGGER USER;"
        ));
        if self.has_history() {
            self.sql(&format!(
                "UPDATE public.lease_history
                    SET acquired_at = acquired_at - interval '{days} days', ended_at = ended_at - interval '{days} days',
                        fence = fence - {days} * 86400000000
                  WHERE key LIKE '{keys}'"
            ));
        }
    }

    fn has_history(&self) -> bool {
        !self
            .sql("SELECT to_regclass('public.lease_history')")
            .is_empty()
    }

    /// The keys that have a row.
    fn keys(&self) -> String {
        self.sql("SELECT string_agg(key, ' ' ORDER BY key COLLATE \"C\") FROM public.lease")
    }

    /// The keys of all runs.
    fn runs(&self) -> String {
        self.sql("SELECT string_agg(key, ' ' ORDER BY key, fence) FROM public.lease_history")
    }

    /// Every row, with its version.
    fn all(&self) -> String {
        self.sql("SELECT l::text || xmin FROM public.lease AS l ORDER BY key")
            + &self.sql("SELECT h::text || xmin FROM public.lease_history AS h ORDER BY h")
    }
}

#[test]
fn only_keys_that_nobody_has_used_for_that_long_go_and_all_their_history_with_them() {
    let place = Place::new();
    place.lease(&["run", "old", "--", "true"]).expect_code(0);
    place.lease(&["run", "old", "--", "false"]).expect_code(1);
    place.used("old-hand");
    place.lease(&["claim", "vanished"]).expect_code(0);
    place.age("%", 100);
    place.lease(&["claim", "vanished-lately"]).expect_code(0);
    place.age("vanished-lately", 89);
    place
        .lease(&["claim", "held", "--ttl", "30days"])
        .expect_code(0);
    place.age("held", 29);
    place
        .lease(&["run", "--hold-at-least", "30days", "cooling", "true"])
        .expect_code(0);
    place.age("cooling", 29);
    place.used("fresh");
    let stays = "cooling fresh held vanished-lately";

    let before = place.all();
    let out = place.lease(&["purge", "--older-than", "90d", "--dry-run"]);
    let out = out.expect_code(0);
    assert_eq!(out.stdout, "old\nold-hand\nvanished\n");
    assert_eq!(out.stderr, "lease: would remove 3 keys and 4 runs\n");
    assert_eq!(place.all(), before);
    let out = place.lease(&["purge", "--older-than", "20d", "--dry-run"]);
    let listed = out.expect_code(0).stdout;
    assert_eq!(listed, "old\nold-hand\nvanished\nvanished-lately\n");

    let out = place
        .lease(&["purge", "--older-than", "90d"])
        .expect_code(0);
    assert_eq!(
        (out.stdout.as_str(), out.stderr.as_str()),
        ("", "lease: removed 3 keys and 4 runs\n")
    );
    assert_eq!(
        (place.keys().as_str(), place.runs().as_str()),
        (stays, stays)
    );
    let out = place
        .lease(&["purge", "--older-than", "90d"])
        .expect_code(0);
    assert_eq!(out.stderr, "lease: removed 0 keys and 0 runs\n");

    // However short the time is, a key that somebody holds or that is cooling stays.
    let out = place.lease(&["purge", "-q", "--older-than", "1ms"]);
    assert_eq!(out.expect_code(0).stderr, "");
    assert_eq!(place.keys(), "cooling held");
}

#[test]
fn only_the_keys_that_are_named_go() {
    let place = Place::new();
    for key in ["import-1", "import-2", "50%", "500", "nightly"] {
        place.used(key);
    }
    place.age("%", 100);
    let gone = |keys: &[&str]| {
        let args = [&["purge", "--older-than", "90d"], keys].concat();
        place.lease(&args).expect_code(0);
        place.keys()
    };
    assert_eq!(gone(&["imp*-1", "no-such-key"]), "50% 500 import-2 nightly");
    assert_eq!(gone(&["50%"]), "500 import-2 nightly");
    assert_eq!(gone(&["import-?", "500"]), "nightly");
    assert_eq!(place.runs(), "nightly");
}

#[test]
fn the_history_of_a_key_without_a_row_goes_if_it_is_that_old() {
    let place = Place::with(&["init", "--keep-history", "forever"]);
    for key in ["deleted", "deleted-lately"] {
        place.used(key);
    }
    place.age("%", 100);
    place.used("deleted-lately");
    place.sql("DELETE FROM public.lease");
    let out = place.lease(&["purge", "--older-than", "90d", "--dry-run"]);
    assert_eq!(out.expect_code(0).stdout, "deleted\n");
    let out = place
        .lease(&["purge", "--older-than", "90d"])
        .expect_code(0);
    assert_eq!(out.stderr, "lease: removed 1 key and 1 run\n");
    assert_eq!(place.runs(), "deleted-lately deleted-lately");
}

#[test]
fn without_a_history_the_keys_go_alone() {
    let place = Place::with(&["init", "--no-history"]);
    place.used("old");
    place.age("%", 100);
    let out = place.lease(&["purge", "--older-than", "90d", "--dry-run"]);
    assert_eq!(out.expect_code(0).stderr, "lease: would remove 1 key\n");
    let out = place
        .lease(&["purge", "--older-than", "90d"])
        .expect_code(0);
    assert_eq!(out.stderr, "lease: removed 1 key\n");
    assert_eq!(place.keys(), "");
}

#[test]
fn without_a_table_there_is_nothing_to_purge() {
    let place = Place::with(&[]);
    for more in [&[][..], &["--dry-run"]] {
        let args = [&["purge", "--older-than", "90d"], more].concat();
        let out = place.lease(&args).expect_code(0);
        assert_eq!(
            out.stderr,
            "lease: nothing to purge: table public.lease does not exist (see --table)\n"
        );
    }
}

#[test]
fn a_key_whose_fence_is_newer_than_that_stays_since_the_next_one_could_be_smaller() {
    let place = Place::new();
    for key in ["ahead", "not-old-enough", "old"] {
        place.used(key);
    }
    let fence = place.used("old");
    place.age("%", 100);
    place.sql("UPDATE public.lease SET fence = fence + 200 * 86400000000 WHERE key = 'ahead'");
    // A clock that is set back by a day later on must not let it fall either.
    place.sql(
        "UPDATE public.lease SET fence = fence + 99 * 86400000000 WHERE key = 'not-old-enough'",
    );
    let before = place.sql("SELECT fence FROM public.lease WHERE key = 'ahead'");
    for more in [&["--dry-run"][..], &[]] {
        let args = [&["purge", "--older-than", "90d"], more].concat();
        let out = place.lease(&args).expect_code(0);
        assert!(
            out.stderr
                .contains("lease: kept 2 keys: a new claim could get a smaller fence"),
            "{out}"
        );
    }
    assert_eq!(place.keys(), "ahead not-old-enough");
    assert!(place.used("ahead") > before.parse().expect("a fence"));
    assert!(place.used("old") > fence);
}

#[test]
fn a_table_whose_default_fence_does_not_follow_the_clock_is_not_purged() {
    let place = Place::new();
    place.used("old");
    place.age("%", 100);
    place.sql("ALTER TABLE public.lease ALTER fence SET DEFAULT 1");
    let out = place
        .lease(&["purge", "--older-than", "90d"])
        .expect_code(69);
    assert!(
        out.stderr
            .starts_with("lease: cannot purge: fences in public.lease can go back")
            && out.stderr.contains("ALTER TABLE"),
        "{out}"
    );
    assert_eq!(
        (place.keys(), place.runs()),
        ("old".to_owned(), "old".to_owned())
    );
}

#[test]
fn a_table_whose_times_mean_another_instant_in_each_time_zone_is_not_purged() {
    let place = Place::with(&["init", "--no-history"]);
    place.used("old");
    place.age("%", 100);
    place.sql("ALTER TABLE public.lease ALTER expires_at TYPE timestamp");
    let out = place
        .lease(&["purge", "--older-than", "90d"])
        .expect_code(69);
    assert!(
        out.stderr
            .starts_with("lease: cannot purge: public.lease is not a lease table: expires_at is "),
        "{out}"
    );
    assert_eq!(place.keys(), "old");
}

#[test]
fn a_role_that_lacks_a_right_on_either_table_is_told_so_and_touches_nothing() {
    let place = Place::new();
    place.used("old");
    place.age("%", 100);
    let before = place.all();
    let role = format!("purger_{}", place.database);
    place.sql(&format!(
        "CREATE ROLE {role} LOGIN; GRANT SELECT, INSERT, UPDATE ON public.lease TO {role}"
    ));
    let url = place.server.url_for(&role, &place.database);
    let purge = || {
        let out = Lease::new(["purge", "--older-than", "90d"])
            .url(&url)
            .output();
        let out = out.expect_code(69);
        assert_eq!(place.all(), before);
        out.stderr
    };
    let told = |table: &str| {
        format!(
            "lease: cannot purge: permission denied for table {table} (run it as \"postgres\", the owner of the table)\n"
        )
    };
    assert_eq!(purge(), told("public.lease"));
    place.sql(&format!("GRANT DELETE ON public.lease TO {role}"));
    assert_eq!(purge(), told("public.lease_history"));
    // To look takes less.
    place.sql(&format!("GRANT SELECT ON public.lease_history TO {role}"));
    assert_eq!(purge(), told("public.lease_history"));
    let out = Lease::new(["purge", "--older-than", "90d", "--dry-run"])
        .url(&url)
        .output();
    assert_eq!(out.expect_code(0).stdout, "old\n");
    place.sql(&format!(
        "GRANT UPDATE, DELETE ON public.lease_history TO {role}"
    ));
    let out = Lease::new(["purge", "--older-than", "90d"])
        .url(&url)
        .output();
    assert_eq!(
        out.expect_code(0).stderr,
        "lease: removed 1 key and 1 run\n"
    );
}

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
