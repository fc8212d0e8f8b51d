//! How a term ended, as it is recorded and shown.

use super::read::ends;
use crate::support::rows::evicted;
use crate::support::{key, shared, until};
use crate::{claimed, lease, with_term, with_term_and};

#[test]
fn a_script_says_how_it_ended_when_it_releases() {
    let key = key();
    let term = claimed(&key, &[]);
    with_term("release", &term).output().expect_code(0);
    assert_eq!(ends(&["history", &key]), ["released"]);
    let term = claimed(&key, &[]);
    with_term_and(&["release", "--job-code", "0"], &term)
        .output()
        .expect_code(0);
    assert_eq!(ends(&["history", &key])[0], "exit 0");
}

#[test]
fn a_release_of_a_term_that_had_expired_or_was_evicted_says_so_and_is_76() {
    let key = key();
    let term = claimed(&key, &["--ttl", "1s"]);
    until("it has expired", || {
        ends(&["history", &key])[0].starts_with("vanished")
    });
    let out = with_term("release", &term).output().expect_code(76);
    assert!(
        out.stderr.contains(&format!("{key} had expired at ")),
        "{out:?}"
    );
    assert_eq!(ends(&["history", &key]), ["lost"]);
    let term = claimed(&key, &[]);
    lease(&["release", "--force", &key]).output().expect_code(0);
    let out = with_term("release", &term).output().expect_code(76);
    assert!(out.stderr.contains(&evicted()), "{out:?}");
    // Its own release may be repeated.
    let term = claimed(&key, &[]);
    with_term("release", &term).output().expect_code(0);
    with_term("release", &term).output().expect_code(0);
}

#[test]
fn a_run_whose_expiry_was_moved_into_the_past_by_hand_has_lost_its_lease() {
    let key = key();
    let server = shared();
    let job = "echo works; read line; exit 5";
    let running = lease(&["run", "--ttl", "1m", &key, "--", "sh", "-c", job])
        .open_input()
        .spawn();
    running.wait_for_line("works");
    server.psql(&format!(
        "UPDATE public.lease SET (acquired_at, expires_at) = (clock_timestamp() - interval '2s', clock_timestamp() - interval '1s') WHERE key = {}",
        crate::literal(&key)
    ));
    running.close_input();
    let out = running.wait().expect_code(76);
    assert!(
        out.stderr.contains("before the job ended with code 5"),
        "{out:?}"
    );
}

#[test]
fn what_other_programs_do_to_a_lease_is_recorded_too() {
    let server = shared();
    let (taken, deleted, expired) = (key(), key(), key());
    for key in [&taken, &deleted] {
        claimed(key, &[]);
    }
    claimed(&expired, &["--ttl", "1s"]);
    let sql = |text: &str, key: &str| server.psql(&text.replace("KEY", &crate::literal(key)));
    sql(
        "UPDATE public.lease SET holder = 'hand', fence = fence + 1 WHERE key = KEY",
        &taken,
    );
    assert_eq!(
        ends(&["history", &taken]),
        ["running", "evicted by postgres"]
    );
    sql("DELETE FROM public.lease WHERE key = KEY", &deleted);
    assert_eq!(ends(&["history", &deleted]), ["row deleted by postgres"]);
    lease(&["claim", "--wait", "1m", &expired])
        .output()
        .expect_code(0);
    let ends = ends(&["history", &expired]);
    assert_eq!(ends[0], "running");
    assert!(ends[1].starts_with("vanished; expired "), "{ends:?}");
}
