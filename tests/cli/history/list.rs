//! Which runs are shown, and how.

use nix::sys::signal::Signal;

use super::read::{ends, json, run};
use crate::support::{key, shared};
use crate::{claimed, lease};

#[test]
fn the_runs_of_a_key_are_shown_newest_first_with_how_they_ended() {
    let key = key();
    run(&key, "exit 3").output().expect_code(3);
    run(&key, "kill -USR1 $$").output();
    run(&key, "exit 0").output().expect_code(0);
    let out = lease(&["history", &key]).output().expect_code(0).stdout;
    let head: Vec<&str> = out
        .lines()
        .next()
        .unwrap_or_default()
        .split_whitespace()
        .collect();
    assert_eq!(head, ["KEY", "STARTED", "TOOK", "HOLDER", "ENDED"]);
    let signal = format!("signal {}", Signal::SIGUSR1 as i32);
    assert_eq!(ends(&["history", &key]), ["exit 0", &signal, "exit 3"]);
    assert_eq!(ends(&["history", "--failed", &key]), [&signal, "exit 3"]);
    assert_eq!(ends(&["history", "--limit", "1", &key]), ["exit 0"]);
    assert_eq!(ends(&["history", "--since", "1h", &key]).len(), 3);
    assert_eq!(ends(&["history", &format!("{key}*")]).len(), 3);
    assert_eq!(ends(&["history", "--last", &key]), ["exit 0"]);
}

#[test]
fn a_run_as_json_says_who_ran_what_where() {
    let key = key();
    run(&key, "exit 7").output().expect_code(7);
    let runs = json(&["history", "--format", "json", &key]);
    assert_eq!(runs.len(), 1);
    let host = hostname::get().expect("a name");
    assert_eq!(runs[0]["host"], host.to_string_lossy().into_owned());
    assert_eq!(runs[0]["program"], "sh");
    assert_eq!(runs[0]["ended"], "released");
    assert_eq!(runs[0]["exit_code"], 7);
    assert_eq!(runs[0]["success"], false);
    assert!(runs[0]["took_ms"].is_number() && runs[0]["pid"].is_number());
    let started = runs[0]["acquired_at"].as_str().unwrap_or_default();
    assert!(started.ends_with('Z'), "{started}");
}

#[test]
fn a_run_that_goes_on_is_running_and_one_whose_holder_vanished_is_told_before_anybody_claims() {
    let key = key();
    claimed(&key, &[]);
    assert_eq!(ends(&["history", &key]), ["running"]);
    assert_eq!(ends(&["history", "--failed", &key]), [""; 0]);
    shared().psql(&format!(
        "UPDATE public.lease SET expires_at = clock_timestamp() WHERE key = {}",
        crate::literal(&key)
    ));
    let end = &ends(&["history", &key])[0];
    assert!(end.starts_with("vanished; expired "), "{end}");
    assert_eq!(ends(&["history", "--failed", &key]).len(), 1);
    let runs = json(&["history", "--format", "json", &key]);
    assert_eq!(runs[0]["ended"], "expired");
    assert_eq!(runs[0]["took_ms"], serde_json::Value::Null);
}

#[test]
fn a_holder_that_vanished_on_another_day_than_it_began_is_shown_with_that_day() {
    // A claim makes the table and the history at once. `init` makes one after the other, and tests beside this one would see it.
    claimed(&key(), &[]);
    let key = key();
    shared().psql(&format!(
        "INSERT INTO public.lease_history (key, fence, holder, acquired_at, ended_at, ended) VALUES
         ({key}, 1, 'h', '2026-11-27 06:31Z', '2026-11-27 07:00Z', 'expired'),
         ({key}, 2, 'h', '2026-11-28 06:31Z', '2026-11-30 06:31Z', 'expired')",
        key = crate::literal(&key)
    ));
    let out = lease(&["history", &key]).env("TZ", "UTC0").output();
    let told: Vec<&str> = out.stdout.lines().skip(1).collect();
    assert!(
        told[0].ends_with("vanished; expired 2026-11-30 06:31:00"),
        "{out:?}"
    );
    assert!(told[1].ends_with("vanished; expired 07:00:00"), "{out:?}");
}

#[test]
fn times_are_in_the_time_zone_of_the_person_who_asks() {
    let key = key();
    run(&key, "exit 0").output().expect_code(0);
    let hour = |zone: &str| -> i64 {
        let out = lease(&["history", &key])
            .env("TZ", zone)
            .output()
            .expect_code(0)
            .stdout;
        let line = out.lines().nth(1).expect("a run").to_owned();
        let clock = line.split_whitespace().nth(2).expect("a time");
        clock[..2].parse().expect("an hour")
    };
    let (here, there) = (hour("UTC0"), hour("<+03>-3"));
    assert_eq!((there - here).rem_euclid(24), 3);
}

#[test]
fn colour_is_for_terminals_only() {
    let key = key();
    run(&key, "exit 1").output().expect_code(1);
    let out = lease(&["history", &key]).output().expect_code(0).stdout;
    assert!(!out.contains('\u{1b}'), "{out:?}");
}

#[test]
fn status_shows_how_the_last_run_ended_and_when_the_last_success_was() {
    let key = key();
    run(&key, "exit 0").output().expect_code(0);
    run(&key, "exit 3").output().expect_code(3);
    let out = lease(&["status", &key]).output().expect_code(0).stdout;
    assert!(
        out.contains("exit 3, ") && out.trim_end().ends_with(" ago"),
        "{out}"
    );
    let leases = json(&["status", "--format", "json", &key]);
    assert_eq!(leases[0]["last_run"]["exit_code"], 3);
    let success = leases[0]["last_success"].as_str().expect("a time");
    let failed = leases[0]["last_run"]["acquired_at"].as_str();
    assert!(Some(success) <= failed, "{success} {failed:?}");
}

#[test]
fn a_time_zone_that_this_machine_does_not_know_is_told_once_and_times_are_in_utc() {
    let key = key();
    run(&key, "exit 0").output().expect_code(0);
    for kind in [&[][..], &["--last"], &["--chart"]] {
        let call = |zone: &str| {
            let out = lease(&["history", &key]).args(kind).env("TZ", zone);
            out.output().expect_code(0)
        };
        let out = call("Mars/Phobos");
        assert!(out.stdout.contains(&key), "{out}");
        assert_eq!(
            out.stderr,
            "lease: this machine does not know the time zone \"Mars/Phobos\" of TZ; times are in UTC (check its name, \
             and that tzdata is installed)\n"
        );
        for known in ["UTC", "UTC0", "<+03>-3", ""] {
            assert_eq!(call(known).stderr, "", "{known}");
        }
    }
    let quiet = lease(&["-q", "history", &key]).env("TZ", "Mars/Phobos");
    assert_eq!(quiet.output().expect_code(0).stderr, "");
    // JSON is in UTC anyway.
    let json = lease(&["history", "--format", "json", &key]).env("TZ", "Mars/Phobos");
    assert_eq!(json.output().expect_code(0).stderr, "");
}
