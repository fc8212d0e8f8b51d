//! What README.md prints for others to copy.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use pglease::timing::{self, Timing, Ttl};

use crate::database;
use crate::support::programs::find;
use crate::support::{Lease, keeper, key, programs, shared, skip};

/// The lines of a file that the README shows below a comment with its path.
fn shown(path: &str) -> String {
    let readme = concat!(env!("CARGO_MANIFEST_DIR"), "/README.md");
    let readme = std::fs::read_to_string(readme).expect("README.md");
    let (_, rest) = readme
        .split_once(&format!("    # {path}\n"))
        .unwrap_or_else(|| panic!("README.md does not show {path}"));
    let lines = rest
        .lines()
        .take_while(|line| line.starts_with("    ") || line.is_empty())
        .take_while(|line| !line.starts_with("    # /"));
    lines
        .map(|line| format!("{}\n", line.trim_start()))
        .collect()
}

#[test]
fn systemd_finds_nothing_wrong_with_the_unit_and_the_timer() {
    let Some(analyze) = find("systemd-analyze") else {
        return skip("systemd-analyze");
    };
    let dir = keeper::dir("units");
    let paths = ["service", "timer"].map(|kind| {
        let name = format!("report.{kind}");
        // The program must be installed for this to pass.
        let unit = shown(&format!("/etc/systemd/system/{name}")).replace(
            "=/usr/local/bin/lease ",
            &format!("={} ", programs::lease()),
        );
        let path = dir.join(name);
        std::fs::write(&path, unit).expect("a file");
        path
    });
    let out = Command::new(analyze)
        .args(["verify", "--man=no"])
        .args(paths)
        .output()
        .expect("systemd-analyze runs");
    let said = String::from_utf8_lossy(&out.stderr);
    assert!(out.status.success() && said.is_empty(), "{said}");
}

#[test]
fn the_command_of_the_unit_is_one_that_lease_takes() {
    let unit = shown("/etc/systemd/system/report.service");
    let (_, command) = unit.split_once("ExecStart=").expect("a command");
    let words: Vec<&str> = command.lines().next().expect("a line").split(' ').collect();
    assert_eq!(Path::new(words[0]).file_name(), Some("lease".as_ref()));
    let key = key();
    let words = words[1..].iter().map(|word| match *word {
        "nightly" => key.as_str(),
        "/usr/local/bin/report" => "true",
        other => other,
    });
    Lease::new(words).on(shared()).output().expect_code(0);
    let late = Lease::new(["run", "-q", &key, "false"])
        .on(shared())
        .output();
    let unit_ignores = unit.contains("\nSuccessExitStatus=75\n");
    assert!(unit_ignores && late.code == Some(75), "{late}");
}

/// The value of a field in the CronJob's pod template.
fn of_the_pod(field: &str) -> String {
    let pod = shown("in the CronJob, below jobTemplate.spec.template.spec");
    let start = format!("{field}: ");
    let value = pod.lines().find_map(|line| line.strip_prefix(&start));
    value.unwrap_or_else(|| panic!("no {field}")).to_owned()
}

#[test]
fn a_skipped_run_of_the_cronjob_is_a_success_that_kubernetes_does_not_retry() {
    let command: Vec<String> =
        serde_json::from_str(&of_the_pod("command")).expect("a list of texts");
    assert_eq!(command[0], "lease");
    let key = key();
    let words = |job: &'static str| {
        let (key, command) = (key.clone(), command.clone());
        command.into_iter().skip(1).map(move |word| match &*word {
            "nightly" => key.clone(),
            "/usr/local/bin/report" => job.to_owned(),
            _ => word,
        })
    };
    Lease::new(words("true"))
        .on(shared())
        .output()
        .expect_code(0);
    let late = Lease::new(words("false")).on(shared()).output();
    let late = late.expect_code(0);
    assert!(late.stderr.contains("--hold-at-least"), "{late}");
}

#[test]
fn kubernetes_waits_for_longer_than_lease_takes_to_stop_a_job_and_to_release() {
    let seconds = of_the_pod("terminationGracePeriodSeconds");
    let waits = Duration::from_secs(seconds.parse().expect("a number"));
    let ttl = Ttl::new(timing::DEFAULT_TTL).expect("the default");
    let limit = timing::DEFAULT_DB_TIMEOUT;
    let defaults = Timing::new(ttl, None, None, limit).expect("they fit");
    assert!(waits > defaults.grace() + limit, "{waits:?}");
}

/// What the README shows below a command.
fn answer_to(command: &str) -> String {
    let readme = concat!(env!("CARGO_MANIFEST_DIR"), "/README.md");
    let readme = std::fs::read_to_string(readme).expect("README.md");
    let (_, rest) = readme
        .split_once(&format!("$ {command}\n"))
        .unwrap_or_else(|| panic!("README.md does not show {command}"));
    let lines = rest.lines().map_while(|line| line.strip_prefix("    "));
    lines.map(|line| format!("{line}\n")).collect()
}

#[test]
fn the_history_that_the_readme_shows_is_what_lease_prints() {
    let name = database(shared());
    let url = shared().url_for("postgres", &name);
    let call = |args: &[&str]| Lease::new(args).url(&url).env("TZ", "UTC").output();
    call(&["init"]).expect_code(0);
    shared().psql_in(
        &name,
        "INSERT INTO public.lease_history (key, fence, holder, acquired_at, ended_at, ended, exit_code) VALUES
         ('nightly', 1, 'web-2-77aa01b2c3d4', '2026-12-01 04:00:00Z', '2026-12-01 05:02:00Z', 'released', 3),
         ('nightly', 2, 'web-1-5f0c9a1e77b2', '2026-12-02 04:00:01Z', '2026-12-02 04:12:05Z', 'released', 0)",
    );
    assert_eq!(
        call(&["history", "nightly"]).expect_code(0).stdout,
        answer_to("lease history nightly")
    );
}

/// The fields of each line, with a dot for each duration: time passes while a test runs.
fn without_durations(text: &str) -> Vec<Vec<&str>> {
    let is_duration = |field: &str| {
        let mut parts = field.split(' ');
        parts.all(|part| part.trim_matches(|c: char| c.is_ascii_digit()).len() == 1)
    };
    let field = |field| if is_duration(field) { "." } else { field };
    text.lines()
        .map(|line| {
            line.split("  ")
                .map(str::trim)
                .filter(|f| !f.is_empty())
                .map(field)
                .collect()
        })
        .collect()
}

#[test]
fn the_states_and_the_refusal_that_the_readme_shows_are_what_lease_prints() {
    let name = database(shared());
    let call = |args: &[&str]| {
        let url = shared().url_for("postgres", &name);
        Lease::new(args).url(url).output()
    };
    call(&["init"]).expect_code(0);
    shared().psql_in(
        &name,
        "INSERT INTO public.lease (key, holder, fence, acquired_at, expires_at) VALUES
         ('nightly', 'web-1-5f0c9a1e77b2', 1796098343884123, now() - interval '12m 4s', now() + interval '1 day')",
    );
    let status = call(&["status"]).expect_code(0).stdout;
    let shown = answer_to("lease status");
    assert_eq!(without_durations(&status), without_durations(&shown));

    let refusal = call(&["run", "nightly", "--", "/usr/local/bin/report"]);
    let start = |text: &str| {
        let (start, rest) = text.split_once(" expires in ").expect("an expiry");
        let (_, end) = rest.split_once(" unless ").expect("a condition");
        format!("{start} {end}")
    };
    let readme = include_str!("../../README.md");
    let shown = readme
        .lines()
        .find_map(|line| line.strip_prefix("    lease: nightly is held"));
    let shown = format!("lease: nightly is held{}\n", shown.expect("a refusal"));
    assert_eq!(start(&refusal.expect_code(75).stderr), start(&shown));
}
