//! `lease release`, by the holder and by force.

use crate::support::table::change;
use crate::support::{key, shared};
use crate::{claimed, column, lease, literal, row_text, with_term, with_term_and};

#[test]
fn a_release_keeps_the_row_and_its_fence_and_may_be_repeated() {
    let key = key();
    let held = claimed(&key, &[]);
    let out = with_term("release", &held).output().expect_code(0);
    assert_eq!((out.stdout.as_str(), out.stderr.as_str()), ("", ""));
    assert_eq!(
        column(shared(), &key, "holder || fence"),
        held.fence.to_string()
    );
    let before = row_text(shared(), &key);
    with_term("release", &held).output().expect_code(0);
    assert_eq!(
        row_text(shared(), &key),
        before,
        "the second release changes nothing"
    );
}

#[test]
fn what_someone_else_holds_is_not_released() {
    let key = key();
    let held = claimed(&key, &["--holder", "dev-server"]);
    let before = row_text(shared(), &key);
    let fence = held.fence.to_string();
    let out = lease(&["release", "--holder", "dev", "--fence", &fence, &key])
        .output()
        .expect_code(76);
    assert!(out.stderr.contains("dev-server"), "{out:?}");
    let old = (held.fence - 1).to_string();
    lease(&["release", "--holder", "dev-server", "--fence", &old, &key])
        .output()
        .expect_code(76);
    assert_eq!(row_text(shared(), &key), before, "the row is untouched");
}

#[test]
fn a_late_release_does_not_end_a_newer_term() {
    let key = key();
    let first = claimed(&key, &["--holder", "h"]);
    with_term("release", &first).output().expect_code(0);
    let second = claimed(&key, &["--holder", "h"]);
    with_term("release", &first).output().expect_code(76);
    assert_eq!(column(shared(), &key, "holder"), "h");
    with_term("release", &second).output().expect_code(0);
}

#[test]
fn hold_at_least_keeps_others_out_after_the_release() {
    let key = key();
    let held = claimed(&key, &[]);
    with_term_and(&["release", "--hold-at-least", "30s"], &held)
        .output()
        .expect_code(0);
    let out = lease(&["claim", &key]).output().expect_code(75);
    assert!(out.stderr.contains("--hold-at-least"), "{out:?}");
    let status = lease(&["status", &key]).output().expect_code(0).stdout;
    assert!(status.contains("cooling"), "{status}");
    assert_eq!(
        column(shared(), &key, "expires_at - acquired_at = '30s'"),
        "t"
    );
}

#[test]
fn a_hold_that_comes_after_the_release_is_reported_to_change_nothing() {
    let key = key();
    let held = claimed(&key, &[]);
    with_term("release", &held).output().expect_code(0);
    let out = with_term_and(&["release", "--hold-at-least", "5m"], &held)
        .output()
        .expect_code(0);
    assert_eq!(
        out.stderr,
        format!("lease: {key} was already released; --hold-at-least 5m changed nothing\n")
    );
    let out = with_term("release", &held).output().expect_code(0);
    assert_eq!(out.stderr, "", "nothing was asked for that is not so");
}

#[test]
fn force_with_a_hold_says_so() {
    let key = key();
    claimed(&key, &[]);
    let out = lease(&["release", "--force", "--hold-at-least", "5m", &key])
        .output()
        .expect_code(0);
    let told = "; it stays closed until 5m after the claim\n";
    assert!(out.stderr.ends_with(told), "{out}");
    lease(&["claim", &key]).output().expect_code(75);
    // Longer, because it is no longer held.
    let longer = ["release", "--force", "--hold-at-least", "1h"];
    let out = lease(&longer).arg(&key).output().expect_code(0);
    assert_eq!(
        out.stderr,
        format!("lease: {key} was cooling; it stays closed until 1h after the claim\n")
    );
    change(
        shared(),
        &key,
        "holder = 'gone', acquired_at = clock_timestamp() - interval '2s', expires_at = clock_timestamp() - interval '1s'",
    );
    let out = lease(&longer).arg(&key).output().expect_code(0);
    let told = format!("lease: {key} had expired, and gone had not released it (fence ");
    assert!(
        out.stderr.starts_with(&told) && out.stderr.ends_with("until 1h after the claim\n"),
        "{out}"
    );
    let out = lease(&longer).arg(format!("{key}-free")).output();
    let told = " is free; --hold-at-least changed nothing\n";
    assert!(out.expect_code(0).stderr.ends_with(told));
}

#[test]
fn force_evicts_the_holder_and_says_who_it_was() {
    let key = key();
    let held = claimed(&key, &[]);
    let out = lease(&["release", "--force", &key]).output().expect_code(0);
    assert_eq!(out.stdout, "");
    assert!(
        out.stderr.contains(&held.holder) && out.stderr.contains(&held.fence.to_string()),
        "{out:?}"
    );
    with_term("renew", &held).output().expect_code(76);
    let out = lease(&["release", "--force", &key]).output().expect_code(0);
    assert!(out.stderr.contains("nothing to release"), "{out:?}");
}

#[test]
fn force_with_a_fence_ends_only_that_term() {
    let key = key();
    let held = claimed(&key, &[]);
    change(shared(), &key, "fence = 8");
    let before = row_text(shared(), &key);
    let out = lease(&["release", "--force", "--fence", "7", &key])
        .output()
        .expect_code(76);
    assert!(
        out.stderr
            .contains(&format!("its fence is 8, not 7; {} holds it", held.holder)),
        "{out:?}"
    );
    assert_eq!(row_text(shared(), &key), before);
    lease(&["release", "--force", "--fence", "8", &key])
        .output()
        .expect_code(0);
}

#[test]
fn force_with_another_fence_says_which_one_and_whose() {
    let key = key();
    claimed(&key, &["--holder", "a"]);
    let end = format!("WHERE key = {}", literal(&key));
    for (change, told) in [
        ("fence = 50", "a holds it"),
        (
            "acquired_at = 'epoch', expires_at = '2001-01-01'",
            "a held it, and let it expire",
        ),
        ("holder = ''", "nobody holds it"),
    ] {
        shared().psql(&format!("UPDATE public.lease SET {change} {end}"));
        let out = lease(&["release", "--force", "--fence", "49", &key])
            .output()
            .expect_code(76);
        let told =
            format!("lease: cannot release {key} by force: its fence is 50, not 49; {told}\n");
        assert_eq!(out.stderr, told);
    }
}

#[test]
fn force_ignores_the_term_in_the_environment() {
    let key = key();
    claimed(&key, &[]);
    lease(&["release", "--force", &key])
        .env("FENCE", "7")
        .env("LEASE_HOLDER", "me")
        .output()
        .expect_code(0);
    assert_eq!(column(shared(), &key, "holder"), "");
}

#[test]
fn force_opens_a_cooling_key() {
    let key = key();
    let held = claimed(&key, &[]);
    with_term_and(&["release", "--hold-at-least", "1h"], &held)
        .output()
        .expect_code(0);
    lease(&["release", "--force", &key]).output().expect_code(0);
    claimed(&key, &[]);
}
