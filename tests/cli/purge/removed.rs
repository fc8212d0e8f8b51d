//! Which keys go, and what goes with them.

use super::place::Place;

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
