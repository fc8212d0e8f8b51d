//! `lease history`, and what `status` and `release` know from it.

use nix::sys::signal::Signal;

use crate::support::rows::evicted;
use crate::support::{Lease, key, shared, until};
use crate::{claimed, database, lease, with_term, with_term_and};

fn json(args: &[&str]) -> Vec<serde_json::Value> {
    let out = lease(args).output().expect_code(0);
    serde_json::from_str(&out.stdout).expect("a JSON array")
}

fn run(key: &str, script: &str) -> Lease {
    lease(&["run", key, "--", "sh", "-c", script])
}

/// The last column, the newest run first.
fn ends(args: &[&str]) -> Vec<String> {
    let out = lease(args).output().expect_code(0).stdout;
    out.lines()
        .skip(1)
        .map(|line| {
            line.rsplit("  ")
                .next()
                .unwrap_or_default()
                .trim()
                .to_owned()
        })
        .collect()
}

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
fn overdue_is_silent_while_all_is_well_and_names_the_keys_that_are_not() {
    let (good, bad, never) = (key(), key(), key());
    run(&good, "exit 0").output().expect_code(0);
    run(&good, "exit 4").output().expect_code(4);
    run(&bad, "exit 5").output().expect_code(5);
    let out = lease(&["history", "--overdue", "1h", &good]).output();
    let out = out.expect_code(0);
    assert_eq!((out.stdout.as_str(), out.stderr.as_str()), ("", ""));
    let out = lease(&["history", "--overdue", "1h", &good, &bad, &never])
        .output()
        .expect_code(1)
        .stdout;
    assert!(!out.contains(&good), "{out}");
    let line = |key: &str| {
        let found = out.lines().find(|line| line.starts_with(key));
        found.map(str::to_owned).expect("a line")
    };
    assert!(line(&bad).contains("never") && line(&bad).contains("exit 5, "));
    assert!(line(&never).contains("it has never run"));
    until("the success is older than that", || {
        lease(&["history", "--overdue", "1ms", &good]).output().code == Some(1)
    });
}

#[test]
fn a_job_that_hangs_is_overdue_and_its_holder_is_named() {
    let key = key();
    let term = claimed(&key, &["--name", "web-1"]);
    let out = lease(&["history", "--overdue", "1h", &key])
        .output()
        .expect_code(1)
        .stdout;
    assert!(
        out.contains(&format!("{} has held it for ", term.holder)),
        "{out}"
    );
}

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
