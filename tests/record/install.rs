//! How the history is made, brought up to date, kept short, and left out.

use crate::Database;
use crate::support::until;

const TRIGGERS: &str = "SELECT count(*) FROM pg_trigger WHERE tgrelid = 'public.lease'::regclass";
const INSTALLED: &str = "SELECT string_agg(oid::text, ' ' ORDER BY oid) FROM (
        SELECT oid FROM pg_trigger WHERE tgrelid = 'public.lease'::regclass
        UNION ALL SELECT oid FROM pg_class WHERE oid = to_regclass('public.lease_history')
        UNION ALL SELECT oid FROM pg_proc WHERE proname = 'lease_history') AS o";

#[test]
fn fifty_first_claims_beside_an_init_make_one_history_in_which_each_key_has_its_term() {
    let here = Database::empty();
    let init = here.lease(&["init", "--db-timeout", "60s"]).spawn();
    let running: Vec<_> = (0..50)
        .map(|n| {
            let key = format!("key-{n}");
            let call = ["claim", "--db-timeout", "60s", &key];
            here.lease(&call).spawn()
        })
        .collect();
    for claim in running {
        let out = claim.wait().expect_code(0);
        assert_eq!(out.stderr, "");
    }
    init.wait().expect_code(0);
    let terms = "SELECT count(*) FROM public.lease JOIN public.lease_history USING (key, fence, holder, acquired_at)";
    assert_eq!(here.sql(terms), "50");
    assert_eq!(here.sql("SELECT count(*) FROM public.lease_history"), "50");
    assert_eq!(here.sql(TRIGGERS), "4");
}

#[test]
fn a_table_without_a_history_gets_one_by_init_and_the_terms_that_go_on_are_recorded_at_their_end() {
    let here = Database::empty();
    here.lease(&["init", "--no-history"])
        .output()
        .expect_code(0);
    let term = here.claim("released", &[]);
    here.claim("expired", &[]);
    here.expire("expired");
    here.claim("deleted", &[]);
    here.claim("on", &[]);
    let began = here.sql("SELECT acquired_at FROM public.lease WHERE key = 'released'");
    here.lease(&["init"]).output().expect_code(0);
    here.lease(&["release", "--job-code", "3"])
        .args(term.named())
        .output()
        .expect_code(0);
    here.run("expired", "exit 0").output().expect_code(0);
    here.sql("DELETE FROM public.lease WHERE key = 'deleted'");
    assert_eq!(here.terms("released"), ["released code 3"]);
    assert_eq!(here.history("released", "acquired_at"), [began]);
    assert_eq!(here.history("released", "holder"), [term.holder]);
    assert_eq!(here.terms("expired"), ["expired", "released code 0"]);
    assert_eq!(here.terms("deleted"), ["deleted by postgres"]);
    assert!(here.terms("on").is_empty());
}

#[test]
fn init_again_changes_nothing_and_without_a_history_there_is_nothing_but_the_table() {
    let here = Database::empty();
    let init = |more: &[&str]| {
        here.lease(&[&["init"], more].concat())
            .output()
            .expect_code(0)
    };
    init(&["--no-history"]);
    here.run("k", "exit 0").output().expect_code(0);
    assert_eq!(here.sql(INSTALLED), "");
    init(&[]);
    let before = here.sql(INSTALLED);
    init(&[]);
    init(&["--no-history"]);
    assert_eq!(here.sql(INSTALLED), before);
    here.run("k", "exit 0").output().expect_code(0);
    assert_eq!(here.terms("k"), ["released code 0"]);
}

#[test]
fn init_finds_a_history_that_has_lost_its_primary_key() {
    let here = Database::ready();
    here.sql("ALTER TABLE public.lease_history DROP CONSTRAINT lease_history_pkey");
    let out = here.lease(&["init"]).output().expect_code(0);
    assert!(out.stderr.contains("no primary key"), "{out}");
    assert!(!out.stderr.contains("lease_history is ready"), "{out}");
}

/// Makes the terms of a key older by so many days.
fn age(here: &Database, days: u32) {
    here.sql(&format!(
        "UPDATE public.lease_history
            SET (acquired_at, ended_at) = (acquired_at - interval '{days} days', ended_at - interval '{days} days')"
    ));
}

/// Makes the last claim of a key one of yesterday, so that the next one is the first of its day.
fn let_a_day_pass(here: &Database) {
    here.sql("UPDATE public.lease SET fence = fence - 86400000000");
}

/// Adds `count` failed terms to the history of `k`, as old as its last term.
fn add_terms(here: &Database, count: u32) {
    here.sql(&format!(
        "INSERT INTO public.lease_history (key, fence, holder, acquired_at, ended_at, ended, exit_code)
         SELECT h.key, h.fence + n, h.holder, h.acquired_at, h.ended_at, h.ended, 1
           FROM (SELECT * FROM public.lease_history WHERE key = 'k' ORDER BY fence DESC LIMIT 1) AS h,
                generate_series(1, {count}) AS n"
    ));
}

#[test]
fn a_long_backlog_of_old_terms_goes_some_at_a_time_and_the_last_success_stays() {
    let here = Database::ready();
    here.run("k", "exit 0").output().expect_code(0);
    here.run("k", "exit 0").output().expect_code(0);
    here.run("other", "exit 1").output().expect_code(1);
    add_terms(&here, 700);
    age(&here, 89);
    let_a_day_pass(&here);
    here.run("k", "exit 2").output().expect_code(2);
    assert_eq!(here.terms("k").len(), 703, "none is 90 days old");
    age(&here, 2);
    let lengths: Vec<usize> = (0..4)
        .map(|_| {
            let_a_day_pass(&here);
            here.run("k", "exit 2").output().expect_code(2);
            here.terms("k").len()
        })
        .collect();
    assert!(lengths[0] > 350, "{lengths:?}");
    assert_eq!(lengths[3], 6, "{lengths:?}");
    assert_eq!(here.terms("k")[0], "released code 0");
    assert_eq!(here.terms("other"), ["released code 1"]);
}

#[test]
fn a_claim_whose_fence_is_divisible_by_sixteen_removes_old_terms_on_any_day() {
    let here = Database::ready();
    here.run("k", "exit 1").output().expect_code(1);
    add_terms(&here, 5);
    age(&here, 91);
    // Hours ahead of the clock, so that the next fence is the next number.
    here.sql("UPDATE public.lease SET fence = (fence / 16 + 1000000000) * 16 + 15");
    here.run("k", "exit 2").output().expect_code(2);
    assert_eq!(here.terms("k"), ["released code 2"]);
}

#[test]
fn the_longest_retention_and_an_endless_one_are_kept_by_the_next_init() {
    let here = Database::empty();
    for keep in ["100years", "forever"] {
        for more in [&["--keep-history", keep][..], &[]] {
            here.lease(&[&["init"], more].concat())
                .output()
                .expect_code(0);
            let out = here.run("k", "exit 3").output().expect_code(3);
            assert_eq!(out.stderr, "", "{keep}");
            age(&here, 3650);
        }
    }
    assert_eq!(here.terms("k").len(), 4);
}

#[test]
fn neither_a_renewal_nor_a_claim_that_loses_reaches_the_trigger() {
    let here = Database::ready();
    here.sql(&format!(
        "ALTER DATABASE {} SET track_functions = 'pl'",
        here.name
    ));
    let calls = || {
        here.sql("SELECT coalesce(sum(calls), 0) FROM pg_stat_user_functions WHERE funcname = 'lease_history'")
    };
    let updates = || {
        here.sql("SELECT n_tup_upd || ' ' || n_tup_hot_upd FROM pg_stat_user_tables WHERE relid = 'public.lease'::regclass")
    };
    let versions = |table: &str| {
        here.sql(&format!(
            "SELECT string_agg(xmin || ' ' || ctid, ',') FROM public.{table}"
        ))
    };
    let term = here.claim("k", &[]);
    // The row, and the clock that is read again once it exists.
    until("the claim is counted", || {
        calls() == "2" && updates() == "1 1"
    });
    let before = versions("lease_history");
    for _ in 0..20 {
        here.lease(&["renew"])
            .args(term.named())
            .output()
            .expect_code(0);
    }
    until("the renewals are counted, and all are HOT", || {
        updates() == "21 21"
    });
    let renewed = versions("lease");
    for _ in 0..5 {
        here.lease(&["claim", "k"]).output().expect_code(75);
    }
    here.lease(&["release"])
        .args(term.named())
        .output()
        .expect_code(0);
    assert_ne!(versions("lease"), renewed);
    until("the release is counted, and nothing else", || {
        calls() == "3" && updates() == "22 22"
    });
    assert_ne!(versions("lease_history"), before);
}
