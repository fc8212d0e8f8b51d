use std::time::Duration;

use super::run::RULE;
use super::trust::margin;
use super::waiting::SHORTEST_POLL;
use super::*;
use crate::clock::BootTime;

fn ttl(ms: u64) -> Ttl {
    Ttl::new(Duration::from_millis(ms)).expect("in range")
}

#[test]
fn the_defaults_fit_every_ttl() {
    for ms in [
        100,
        101,
        150,
        300,
        1_000,
        3_000,
        60_000,
        3_600_000,
        2_592_000_000,
    ] {
        let t = Timing::new(ttl(ms), None, None, DEFAULT_DB_TIMEOUT);
        assert!(t.is_ok(), "ttl {ms} ms: {t:?}");
    }
}

#[test]
fn the_job_is_dead_before_the_server_may_grant_the_lease_again() {
    for ms in [100, 300, 60_000, 2_592_000_000] {
        let t = Timing::new(ttl(ms), None, None, DEFAULT_DB_TIMEOUT).expect("fits");
        let sent = BootTime::from_nanos(1_000_000_000);
        let end = sent + Duration::from_millis(ms);
        assert!(t.deadline(sent) < end);
        assert!(t.stop_at(t.deadline(sent)) < t.deadline(sent));
        assert_eq!(sent + t.trusted(), t.stop_at(t.deadline(sent)));
    }
}

#[test]
fn the_kill_may_be_late_by_a_quarter_of_a_second_or_a_tenth_of_a_short_ttl() {
    for (ms, kept) in [(100, 10), (1_000, 100), (5_000, 250), (60_000, 600)] {
        let ttl = Duration::from_millis(ms);
        assert_eq!(margin(ttl), Duration::from_millis(kept), "ttl {ms} ms");
    }
}

#[test]
fn a_ttl_is_100_ms_to_30_days() {
    assert!(Ttl::new(Duration::ZERO).is_err());
    assert!(Ttl::new(Duration::from_millis(99)).is_err());
    assert!(Ttl::new(Duration::from_secs(1000 * 365 * 24 * 3600)).is_err());
    assert!(Ttl::new(MAX_TTL).is_ok());
}

fn timing(ttl_ms: u64, beat: Option<u64>, grace: Option<u64>) -> Result<Timing, String> {
    let ms = |ms: Option<u64>| ms.map(Duration::from_millis);
    Timing::new(ttl(ttl_ms), ms(beat), ms(grace), DEFAULT_DB_TIMEOUT).map_err(|e| e.to_string())
}

#[test]
fn durations_that_do_not_fit_are_refused_in_terms_of_the_options_that_were_given() {
    let grace = timing(6_000, None, Some(6_000)).expect_err("grace as long as the ttl");
    assert_eq!(
        grace,
        format!("--grace 6s does not fit into --ttl 6s: {RULE} (give at most '5s 550ms')")
    );
    let beat = timing(6_000, Some(3_000), None).expect_err("one heartbeat only");
    assert_eq!(
        beat,
        format!("--heartbeat 3s does not fit into --ttl 6s: {RULE} (give at most '2s 825ms')")
    );
    let both = timing(60_000, Some(25_000), Some(10_000)).expect_err("both were given");
    assert_eq!(
        both,
        format!(
            "--heartbeat 25s and --grace 10s do not fit into --ttl 1m: {RULE} \
             (give a heartbeat of at most '24s 700ms', or a grace period of at most '9s 400ms')"
        )
    );
    let hopeless = timing(5_000, Some(5_000), Some(5_000)).expect_err("neither fits");
    assert!(hopeless.ends_with("(give a longer ttl, or neither of the two)"));
    assert!(timing(6_000, Some(0), None).is_err());
}

#[test]
fn the_largest_value_that_a_refusal_names_is_accepted_and_no_larger_one() {
    for ms in [100, 101, 333, 5_000, 60_000, 86_400_000] {
        for with_grace in [true, false] {
            let pick = |value| {
                if with_grace {
                    timing(ms, None, Some(value))
                } else {
                    timing(ms, Some(value), None)
                }
            };
            let refusal = pick(ms).expect_err("as long as the ttl");
            let (_, named) = refusal.split_once("at most ").expect("a value");
            let largest = humantime::parse_duration(named.trim_matches(['\'', ')']))
                .expect("a duration")
                .as_millis();
            let largest = u64::try_from(largest).expect("small");
            assert!(pick(largest).is_ok(), "{ms}: {refusal}");
            assert!(pick(largest + 1).is_err(), "{ms}: {refusal}");
        }
    }
}

#[test]
fn the_default_of_one_yields_to_the_other_that_was_given() {
    let t = timing(60_000, Some(25_000), None).expect("a grace of 9.4 s is left");
    assert_eq!(t.grace(), Duration::from_millis(9_400));
    assert_eq!(t.heartbeat, Duration::from_secs(25));
    let t = timing(60_000, None, Some(20_000)).expect("heartbeats of 19.7 s are left");
    assert_eq!(t.heartbeat, Duration::from_millis(19_700));
    assert_eq!(t.grace(), Duration::from_secs(20));
    let t = timing(60_000, None, Some(1_000)).expect("fits");
    assert_eq!(t.heartbeat, Duration::from_secs(20));
    let t = timing(60_000, Some(1_000), None).expect("fits");
    assert_eq!(t.grace(), Duration::from_secs(10));
}

#[test]
fn a_waiter_looks_exactly_at_the_expiry_and_otherwise_less_and_less_often() {
    let ms = Duration::from_millis;
    let (fresh, old, far) = (ms(299_999), ms(300_000), ms(3_600_000));
    assert_eq!(poll_pause(9, fresh, ms(7)), ms(7));
    assert_eq!(poll_pause(9, old, ms(0)), SHORTEST_POLL);
    assert!(poll_pause(1, fresh, far) <= ms(125));
    assert!((ms(375)..=ms(625)).contains(&poll_pause(30, fresh, far)));
    assert!((ms(1500)..=ms(2500)).contains(&poll_pause(30, old, far)));
}

#[test]
fn a_failure_is_retried_less_and_less_often() {
    let ms = Duration::from_millis;
    assert!((ms(75)..=ms(125)).contains(&retry_pause(1)));
    assert!((ms(1500)..=ms(2500)).contains(&retry_pause(30)));
}

#[test]
fn what_is_left_of_a_lease_counts_from_when_it_was_asked_for() {
    let sent = BootTime::from_nanos(1_000_000_000);
    let second = Duration::from_secs(1);
    assert_eq!(left(sent, second, sent), second);
    let later = sent + Duration::from_millis(300);
    assert_eq!(left(sent, second, later), Duration::from_millis(700));
    assert_eq!(left(sent, second, sent + second * 2), Duration::ZERO);
}
