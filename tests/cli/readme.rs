//! What README.md prints for others to copy.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use pglease::timing::{self, Timing, Ttl};

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
