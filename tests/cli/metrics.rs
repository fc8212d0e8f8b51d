//! `lease status --format openmetrics`.

use crate::support::programs::find;
use crate::support::{Lease, key, shared, skip};
use crate::{claimed, database, lease, literal, with_term_and};

fn metrics(args: &[&str]) -> String {
    let out = lease(&["status", "--format", "openmetrics"]).args(args);
    out.output().expect_code(0).stdout
}

/// The samples of a key without its label, in the order of the output.
fn samples(key: &str, args: &[&str]) -> Vec<(String, f64)> {
    let label = format!("{{key=\"{key}\"}} ");
    metrics(args)
        .lines()
        .filter_map(|line| line.split_once(&label))
        .map(|(name, value)| (name.to_owned(), value.parse().expect("a number")))
        .collect()
}

#[test]
fn promtool_finds_nothing_wrong_with_the_gauges_of_any_state_and_any_key() {
    let Some(promtool) = find("promtool") else {
        return skip("promtool");
    };
    let prefix = key();
    for odd in ["plain", "\"", "\\", "a\nb", "\\n", "\t\u{1b}\r", "é{}=,# "] {
        let key = format!("{prefix}/{odd}");
        lease(&["run", &key, "--", "true"]).output().expect_code(0);
    }
    claimed(&format!("{prefix}/held"), &[]);
    let cooling = claimed(&format!("{prefix}/cooling"), &[]);
    with_term_and(&["release", "--hold-at-least", "1h"], &cooling)
        .output()
        .expect_code(0);
    shared().psql(&format!(
        "INSERT INTO public.lease VALUES ({}, 'h', 1, '-infinity', 'infinity')",
        literal(&format!("{prefix}/infinity"))
    ));
    let text = metrics(&[&format!("{prefix}*")]);
    let checked = Lease::program(&promtool)
        .args(["check", "metrics"])
        .input(text.clone())
        .output()
        .expect_code(0);
    assert_eq!((checked.stdout, checked.stderr), Default::default());
    assert_eq!(text.matches("\nlease_held{").count(), 10, "{text}");
    assert!(text.ends_with("# EOF\n"), "{text}");
    assert!(
        text.contains(&format!("{{key=\"{prefix}/a\\nb\"}}")),
        "{text}"
    );
    assert!(
        text.contains(&format!("{{key=\"{prefix}/\\\\n\"}}")),
        "{text}"
    );
    assert!(
        text.contains(&format!(
            "lease_expires_timestamp_seconds{{key=\"{prefix}/infinity\"}} +Inf\n"
        )),
        "{text}"
    );
    assert!(!text.contains("inf}") && !text.contains("NaN"), "{text}");
}

#[test]
fn a_gauge_without_a_known_value_has_no_sample() {
    let (ran, held, never) = (key(), key(), key());
    let names = |key: &str| -> Vec<String> {
        let samples = samples(key, &[key]);
        samples.into_iter().map(|(name, _)| name).collect()
    };
    assert_eq!(names(&never), ["lease_held", "lease_cooling"]);
    lease(&["run", &ran, "--", "sh", "-c", "exit 3"])
        .output()
        .expect_code(3);
    assert_eq!(
        names(&ran),
        [
            "lease_held",
            "lease_cooling",
            "lease_last_run_start_timestamp_seconds",
            "lease_last_run_duration_seconds",
            "lease_last_run_exit_code"
        ]
    );
    claimed(&held, &[]);
    assert_eq!(
        names(&held),
        [
            "lease_held",
            "lease_cooling",
            "lease_expires_timestamp_seconds",
            "lease_acquired_timestamp_seconds",
            "lease_last_run_start_timestamp_seconds"
        ]
    );
}

#[test]
fn the_gauges_are_what_the_tables_say_in_seconds() {
    let key = key();
    let table = format!(
        "DELETE FROM public.lease WHERE key = {k};
         DELETE FROM public.lease_history WHERE key = {k};
         INSERT INTO public.lease VALUES ({k}, '', 7, to_timestamp(1700000000), to_timestamp(1700000000.5));
         INSERT INTO public.lease_history (key, fence, holder, acquired_at, ended_at, ended, exit_code, exit_signal)
         VALUES ({k}, 6, 'h', to_timestamp(1600000000), to_timestamp(1600000001.25), 'released', 0, NULL),
                ({k}, 7, 'h', to_timestamp(1700000000.123456), to_timestamp(1700000002.623456), 'released', NULL, 9);",
        k = literal(&key)
    );
    // The first claim creates the tables.
    claimed(&key, &[]);
    shared().psql(&table);
    let expected = [
        ("lease_held", 0.0),
        ("lease_cooling", 0.0),
        ("lease_last_success_timestamp_seconds", 1_600_000_001.25),
        (
            "lease_last_run_start_timestamp_seconds",
            1_700_000_000.123_456,
        ),
        ("lease_last_run_duration_seconds", 2.5),
        ("lease_last_run_exit_code", 137.0),
    ]
    .map(|(name, value)| (name.to_owned(), value));
    assert_eq!(samples(&key, &[&key]), expected);
    // A free key is there without being asked for: its last success is what a monitor wants to know.
    assert_eq!(samples(&key, &[]), expected);
}

#[test]
fn the_exit_code_is_the_same_as_with_other_formats_and_watch_is_refused() {
    let (held, free) = (key(), key());
    claimed(&held, &[]);
    let exit = |key: &str| {
        lease(&[
            "status",
            "--exit-code",
            "--format",
            "openmetrics",
            "--",
            key,
        ])
        .output()
    };
    let out = exit(&held).expect_code(0);
    assert!(out.stdout.contains("lease_held{"), "{out}");
    exit(&free).expect_code(1);
    let out = lease(&["status", "--watch", "--format", "openmetrics"])
        .output()
        .expect_code(2);
    assert_eq!(
        out.stderr,
        "lease: --watch cannot be used with --format openmetrics (see `lease status --help`)\n"
    );
}

#[test]
fn a_database_without_leases_has_gauges_without_samples() {
    let url = shared().url_for("postgres", &database(shared()));
    let out = Lease::new(["status", "--format", "openmetrics"])
        .url(&url)
        .output()
        .expect_code(0);
    assert!(
        out.stdout.lines().all(|line| line.starts_with('#')),
        "{out}"
    );
    assert!(out.stdout.ends_with("# EOF\n"), "{out}");
}

#[test]
fn a_named_key_without_a_row_shows_its_last_run_in_every_format() {
    let (gone, never) = (key(), key());
    lease(&["run", &gone, "--", "sh", "-c", "exit 3"])
        .output()
        .expect_code(3);
    shared().psql(&format!(
        "DELETE FROM public.lease WHERE key = {}",
        literal(&gone)
    ));
    let (g, n) = (gone.as_str(), never.as_str());
    for args in [&[g, n][..], &[n, g], &[g, n, "x*y"]] {
        let out = lease(&["status"]).args(args).output().expect_code(0).stdout;
        let line = |key: &str| {
            out.lines()
                .find(|line| line.starts_with(key))
                .expect("a line")
        };
        assert!(line(&gone).contains("exit 3, "), "{out}");
        assert!(line(&never).trim_end().ends_with(" -"), "{out}");
        let json = lease(&["status", "--format", "json"]).args(args).output();
        let json: serde_json::Value =
            serde_json::from_str(&json.expect_code(0).stdout).expect("JSON");
        let of = |key: &str| {
            json.as_array()
                .expect("an array")
                .iter()
                .find(|l| l["key"] == key)
        };
        let found = of(&gone).expect("an object");
        assert_eq!(
            (&found["state"], &found["last_run"]["exit_code"]),
            (&"free".into(), &3.into())
        );
        assert!(of(&never).expect("an object")["last_run"].is_null());
    }
    let code = ("lease_last_run_exit_code".to_owned(), 3.0);
    assert!(samples(&gone, &[&gone]).contains(&code));
}
