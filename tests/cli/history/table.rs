//! The table of the history: who may read it, what is written and kept, and what happens if it is missing or altered.

use crate::support::{Lease, key, shared};
use crate::{claimed, database, lease, with_term};

#[test]
fn without_a_history_status_works_and_history_says_what_to_do() {
    let server = shared();
    let database = database(server);
    let url = server.url_for("postgres", &database);
    let here = |args: &[&str]| Lease::new(args).url(&url);
    here(&["init", "--no-history"]).output().expect_code(0);
    here(&["run", "k", "--", "true"]).output().expect_code(0);
    let out = here(&["status", "--all"]).output().expect_code(0);
    assert!(out.stdout.trim_end().ends_with(" -"), "{out:?}");
    let out = here(&["history"]).output().expect_code(69);
    assert!(
        out.stderr
            .contains("public.lease_history does not exist (`lease init`")
            && out.stderr.contains("lease init"),
        "{out:?}"
    );
    here(&["init"]).output().expect_code(0);
    let out = here(&["history"]).output().expect_code(0);
    assert_eq!(out.stderr, "lease: no runs\n");
}

#[test]
fn a_history_that_was_altered_costs_one_warning_and_no_lease_and_hides_none() {
    let server = shared();
    let database = database(server);
    let url = server.url_for("postgres", &database);
    let here = |args: &[&str]| Lease::new(args).url(&url).output();
    here(&["init"]).expect_code(0);
    let change = |statement: &str| drop(server.psql_in(&database, statement));
    for (breaks, mends) in [
        (
            "ALTER TABLE public.lease_history RENAME COLUMN ended TO finished",
            "ALTER TABLE public.lease_history RENAME COLUMN finished TO ended",
        ),
        (
            "ALTER TABLE public.lease_history ADD CONSTRAINT nothing CHECK (false) NOT VALID",
            "ALTER TABLE public.lease_history DROP CONSTRAINT nothing",
        ),
        ("DROP TABLE public.lease_history", "SELECT 1"),
    ] {
        change(breaks);
        let out = here(&["run", "k", "--", "true"]).expect_code(0);
        assert_eq!(out.stderr.lines().count(), 1, "{out:?}");
        assert!(
            out.stderr
                .contains("the history of leases could not be written: "),
            "{out:?}"
        );
        let out = here(&["run", "-q", "k", "--", "true"]).expect_code(0);
        assert_eq!(out.stderr, "");
        let out = here(&["status", "k"]).expect_code(0);
        assert!(out.stdout.contains("free"), "{out:?}");
        change(mends);
    }
    let out = here(&["init"]).expect_code(0);
    assert!(out.stderr.contains("public.lease_history is ready"));
    let out = here(&["run", "k", "--", "true"]).expect_code(0);
    assert_eq!(out.stderr, "");
    let out = here(&["history", "k"]).expect_code(0);
    assert_eq!(out.stdout.lines().count(), 2, "{out:?}");
}

#[test]
fn a_role_with_the_documented_grants_is_recorded_and_cannot_write_the_history_itself() {
    let server = shared();
    let database = database(server);
    let owner = server.url_for("postgres", &database);
    Lease::new(["init"]).url(&owner).output().expect_code(0);
    server.psql_in(
        &database,
        "CREATE ROLE history_job LOGIN; GRANT SELECT, INSERT, UPDATE ON public.lease TO history_job",
    );
    let url = server.url_for("history_job", &database);
    Lease::new(["run", "k", "--", "sh", "-c", "exit 6"])
        .url(&url)
        .output()
        .expect_code(6);
    let forged = "SET ROLE history_job; DO $$ BEGIN
         INSERT INTO public.lease_history (key, fence, holder, acquired_at) VALUES ('k', 1, 'x', now());
       EXCEPTION WHEN insufficient_privilege THEN RAISE NOTICE 'refused'; RETURN; END $$;
       SELECT count(*) FROM pg_proc WHERE proname = 'lease_history' AND has_function_privilege('history_job', oid, 'EXECUTE')";
    assert!(server.psql_in(&database, forged).ends_with('0'));
    let told = server.psql_in(
        &database,
        "SELECT string_agg(holder || ' ' || exit_code, ',') FROM public.lease_history",
    );
    assert!(told.ends_with(" 6") && !told.contains(','), "{told}");
}

#[test]
fn a_losing_claim_and_a_renewal_write_nothing_to_the_history() {
    let key = key();
    let term = claimed(&key, &["--ttl", "1h"]);
    let versions = || {
        shared().psql(&format!(
            "SELECT string_agg(xmin || ' ' || ctid, ',') FROM public.lease_history WHERE key = {}",
            crate::literal(&key)
        ))
    };
    let before = versions();
    assert!(!before.is_empty() && !before.contains("),"), "{before}");
    lease(&["claim", &key]).output().expect_code(75);
    with_term("renew", &term).output().expect_code(0);
    assert_eq!(versions(), before);
}

#[test]
fn old_runs_of_a_key_go_when_it_is_claimed_but_never_its_last_success() {
    let server = shared();
    let database = database(server);
    let url = server.url_for("postgres", &database);
    let here = |args: &[&str]| Lease::new(args).url(&url).output();
    here(&["init", "--keep-history", "1day"]).expect_code(0);
    // A later one keeps what was asked for.
    here(&["init"]).expect_code(0);
    for code in ["0", "0", "3"] {
        here(&["run", "k", "--", "sh", "-c", &format!("exit {code}")]);
    }
    here(&["run", "other", "--", "false"]);
    server.psql_in(
        &database,
        "UPDATE public.lease_history SET acquired_at = acquired_at - interval '3 days', ended_at = ended_at - interval '3 days'",
    );
    // The last claim was yesterday's, and the next one is the first of its day.
    server.psql_in(
        &database,
        "UPDATE public.lease SET fence = fence - 86400000000",
    );
    here(&["run", "k", "--", "sh", "-c", "exit 4"]).expect_code(4);
    let left = server.psql_in(
        &database,
        "SELECT string_agg(key || exit_code, ' ' ORDER BY key, acquired_at) FROM public.lease_history",
    );
    assert_eq!(left, "k0 k4 other1");
}

#[test]
fn a_role_without_a_right_on_the_history_is_told_which() {
    let server = shared();
    let database = database(server);
    let url = server.url_for("postgres", &database);
    Lease::new(["init"]).url(&url).output().expect_code(0);
    server.psql_in(
        &database,
        "CREATE ROLE history_reader LOGIN; GRANT SELECT ON public.lease TO history_reader",
    );
    let url = server.url_for("history_reader", &database);
    let out = Lease::new(["history"]).url(&url).output().expect_code(69);
    assert!(
        out.stderr
            .contains(r#"GRANT SELECT ON public.lease, public.lease_history TO "history_reader""#),
        "{out:?}"
    );
    Lease::new(["status"]).url(&url).output().expect_code(0);
}
