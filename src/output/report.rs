//! What a run tells about the job and its lease.

use std::fmt::Write as _;

use super::loss;
use crate::supervise::{Reason, Report};

/// The words for a report, and whether they are said under `--quiet` too.
#[must_use]
pub fn report(report: &Report, key: &str) -> (String, bool) {
    match report {
        Report::RenewFailing(failure) => (
            format!("cannot renew {key}, trying again for as long as the lease lasts: {failure}"),
            false,
        ),
        Report::RenewRecovered => (format!("{key} is renewed again"), false),
        Report::Lost(why) => (format!("{}; the job is stopped", reason(why, key)), true),
        Report::LostRunningOn(why) => (
            format!(
                "{}; the job runs on without it (--on-loss continue)",
                reason(why, key)
            ),
            true,
        ),
        Report::HeartbeatDied => (
            format!(
                "the heartbeat of {key} has ended, which is a bug in lease: nothing renews the lease any more"
            ),
            true,
        ),
        Report::WatchdogDied => (
            format!("the watchdog of {key} was killed or stopped; another one takes its place"),
            false,
        ),
        Report::Unprotected(failure) => (
            format!(
                "no watchdog can be started, so the job of {key} can't be kept from outliving its lease: {failure}; stopping the job"
            ),
            true,
        ),
        Report::Leftovers(1) => (
            format!("the job of {key} has ended and left 1 process in its group; stopping it"),
            false,
        ),
        Report::Leftovers(count) => (
            format!(
                "the job of {key} has ended and left {count} processes in its group; stopping them"
            ),
            false,
        ),
        Report::Killed => (
            format!("what was left of the job of {key} was killed"),
            false,
        ),
    }
}

fn reason(reason: &Reason, key: &str) -> String {
    match reason {
        Reason::Over(why) => format!("{key} is lost: {}", loss(why)),
        Reason::NotRenewed(last) => {
            let mut text = format!("{key} is lost: it could not be renewed in time");
            match last {
                Some(failure) => {
                    let _ = write!(text, ": {failure}");
                }
                None => text.push_str(
                    ", since this process or its machine was stopped, or the database is slow",
                ),
            }
            text
        }
    }
}
