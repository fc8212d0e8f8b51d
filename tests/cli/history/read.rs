//! Makes runs and reads the history.

use crate::lease;
use crate::support::Lease;

pub(super) fn json(args: &[&str]) -> Vec<serde_json::Value> {
    let out = lease(args).output().expect_code(0);
    serde_json::from_str(&out.stdout).expect("a JSON array")
}

pub(super) fn run(key: &str, script: &str) -> Lease {
    lease(&["run", key, "--", "sh", "-c", script])
}

/// The last column, the newest run first.
pub(super) fn ends(args: &[&str]) -> Vec<String> {
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
