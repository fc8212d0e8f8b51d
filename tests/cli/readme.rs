//! What README.md prints for others to copy.

use std::path::Path;
use std::process::Command;

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
        // The program has to be there to pass.
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
