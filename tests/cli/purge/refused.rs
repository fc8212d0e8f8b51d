//! What is never removed, and what is not purged at all.

use super::place::Place;
use crate::support::Lease;

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
