//! The messages of a run or a claim about the lease and the job.

use std::fmt::Write as _;

use super::message::{Level, Message};
use super::report_fields::event;
use super::{escape, held_by, loss_by, whole_seconds};
use crate::job::Ended;
use crate::lease::Loss;
use crate::record::Culprit;
use crate::supervise::{JobEnd, NotReleased, Plan, Purpose, Reason, Report};
use crate::timing::{Wait, human};

/// A report as a message. `culprit` is who has evicted the holder, if that is known.
#[must_use]
pub fn report(report: &Report, key: &str, plan: &Plan, culprit: Option<&Culprit>) -> Message {
    let (text, level) = text(report, key, plan, culprit);
    let (event, fields) = event(report, culprit);
    fields.into_iter().fold(
        Message::new(level, event, text),
        |message, (name, value)| message.with(name, value),
    )
}

/// The text of a report, and how much it matters. `culprit` is who has evicted the holder, if that is known.
fn text(report: &Report, key: &str, plan: &Plan, culprit: Option<&Culprit>) -> (String, Level) {
    match report {
        Report::Waiting(row) => (format!("waiting: {}", held_by(row)), Level::Info),
        Report::ClaimFailing { failure, retry_for } => (
            match (plan.waits(), retry_for) {
                (false, Some(time)) => {
                    format!(
                        "cannot claim {key}: {failure}; retrying for up to {}",
                        human(*time)
                    )
                }
                (true, _) | (_, None) => format!("waiting: cannot claim {key}: {failure}"),
            },
            Level::Info,
        ),
        Report::NotEager(failure) => (
            format!(
                "waiting: --eager cannot keep a connection: {failure}; looking less often instead"
            ),
            Level::Info,
        ),
        Report::CannotClaim {
            failure,
            is_unknown,
        } => (cannot_claim(key, failure, *is_unknown, plan), Level::Error),
        Report::Conflict(row, wait) => {
            let held = held_by(row);
            let text = match wait {
                Some(Wait::For(limit)) if !limit.is_zero() => {
                    format!("gave up after {}: {held}", human(*limit))
                }
                Some(Wait::For(_) | Wait::Forever) | None => held,
            };
            (text, Level::Info)
        }
        Report::NotDue(success) => (
            format!(
                "{key} succeeded {} ago on {}: not due for another {}",
                human(whole_seconds(success.ago)),
                escape(&success.place),
                human(whole_seconds(success.due_in))
            ),
            Level::Info,
        ),
        Report::HeldByOuterRun => (
            format!(
                "cannot claim {key}: it is held by the run or script that started this command"
            ),
            Level::Error,
        ),
        Report::Claimed(grant) => (
            if plan.holder_is_fresh || grant.is_new {
                format!(
                    "claimed {key} until {}, fence {}",
                    grant.expires_at, grant.term.fence
                )
            } else {
                format!(
                    "extended {key} until {}, fence {}; {} held it already",
                    grant.expires_at,
                    grant.term.fence,
                    plan.holder.as_str()
                )
            },
            Level::Step,
        ),
        Report::LostBeforeUse(why) => (
            format!(
                "{key} was lost {}: {}",
                before_use(plan),
                loss_by(why, culprit)
            ),
            Level::Error,
        ),
        Report::NotRenewedBeforeUse(failure) => (
            match plan.purpose {
                Purpose::Claim => format!(
                    "cannot claim {key}: the lease had almost expired when the answer came, and it cannot be renewed: {failure}"
                ),
                Purpose::Job(_) => {
                    format!("cannot renew {key}: {failure}; the job was not started")
                }
            },
            Level::Error,
        ),
        Report::SlowClaim { took, heartbeat } => (
            format!(
                "claiming {key} took {}, longer than the heartbeat of {}; renewals may be too slow (give a longer --ttl or --heartbeat)",
                human(*took),
                human(*heartbeat)
            ),
            Level::Info,
        ),
        Report::TooSlow => (too_slow(key, plan), Level::Error),
        Report::NotStarted(text) => (text.clone(), Level::Error),
        Report::StartedTooLate => (
            format!(
                "the lease of {key} had almost expired when the job was about to start; the job was not started (was lease stopped, or is the machine overloaded?)"
            ),
            Level::Error,
        ),
        Report::Released => (format!("released {key}"), Level::Step),
        Report::LostBeforeEnd(why, end) => (
            format!(
                "{key} was lost {}: {}",
                before(*end, plan),
                lost_by(why, culprit)
            ),
            Level::Error,
        ),
        Report::NotReleased(what) => (given_up(key, what), Level::Error),
        Report::RenewFailing(failure) => (
            format!("cannot renew {key}: {failure}; retrying until the lease expires"),
            Level::Info,
        ),
        Report::RenewRecovered => (format!("{key} is renewed again"), Level::Info),
        Report::Lost(why) => (
            format!("{}; the job is stopped", reason(why, key, culprit)),
            Level::Error,
        ),
        Report::LostRunningOn(why) => (
            format!(
                "{}; the job runs on without it (--on-loss continue)",
                reason(why, key, culprit)
            ),
            Level::Error,
        ),
        Report::NoHeartbeat(failure) => (
            format!("cannot start the heartbeat of {key}: {failure}; nothing renews the lease"),
            Level::Error,
        ),
        Report::WatchdogDied => (
            format!("the watchdog of {key} was killed or stopped; starting another one"),
            Level::Info,
        ),
        Report::Unprotected(failure) => (
            format!(
                "cannot start a watchdog for {key}: {failure}; the job does not run without one"
            ),
            Level::Error,
        ),
        Report::Leftovers(left) => (
            format!(
                "the job of {key} has ended and left {} in its process group; stopping {}",
                processes(*left),
                if *left == Some(1) { "it" } else { "them" }
            ),
            Level::Info,
        ),
        Report::Killed { left, forking } => (
            format!(
                "the rest of the job of {key} was killed{}",
                match (left, forking) {
                    (None, false) => String::new(),
                    (Some(_), false) => format!(": {}", processes(*left)),
                    (_, true) => format!(": {}, which kept starting others", processes(*left)),
                }
            ),
            Level::Info,
        ),
    }
}

fn cannot_claim(key: &str, failure: &str, is_unknown: bool, plan: &Plan) -> String {
    if !is_unknown {
        return format!("cannot claim {key}: {failure}");
    }
    let as_before = if plan.extension.keeps_more() {
        ", or until its old expiry"
    } else {
        ""
    };
    format!(
        "it is unknown whether {key} was claimed: {failure}; if it was, {} holds it for at most {}{as_before}",
        plan.holder.as_str(),
        human(plan.extension.ttl().get()),
    )
}

fn too_slow(key: &str, plan: &Plan) -> String {
    let ttl = human(plan.extension.ttl().get());
    let slow = format!("the database is too slow for --ttl {ttl}");
    match plan.purpose {
        Purpose::Claim => format!(
            "cannot claim {key}: {slow}: the lease had almost expired when it was granted (give a longer --ttl)"
        ),
        Purpose::Job(_) => format!(
            "{slow}: the lease of {key} had almost expired when it was granted; the job was not started"
        ),
    }
}

fn before_use(plan: &Plan) -> &'static str {
    match plan.purpose {
        Purpose::Claim => "before it could be printed",
        Purpose::Job(_) => "before the job was started",
    }
}

fn before(end: JobEnd, plan: &Plan) -> String {
    match end {
        JobEnd::NotStarted => before_use(plan).to_owned(),
        JobEnd::Ended(Ended::Code(code)) => format!("before the job ended with code {code}"),
        JobEnd::Ended(Ended::Signal(signal)) => format!("before signal {signal} ended the job"),
        JobEnd::Stopped(_) => "before the job ended".to_owned(),
    }
}

fn given_up(key: &str, what: &NotReleased) -> String {
    let without = if what.hold.is_zero() {
        String::new()
    } else {
        format!(", without --hold-at-least {}", human(what.hold))
    };
    let expires = if what.has_expired {
        "expired"
    } else {
        "expires"
    };
    let later = if what.may_last_longer {
        " or later"
    } else {
        ""
    };
    let expiry = format!("{expires} at {}{later}{without}", what.expires_at);
    not_released(key, what.is_unknown, &what.failure, &expiry)
}

/// The message for a release that failed or may have failed. `expiry` is what happens to the lease then: `expires at ...`.
#[must_use]
pub fn not_released(key: &str, is_unknown: bool, failure: &str, expiry: &str) -> String {
    if is_unknown {
        format!("it is unknown whether {key} was released: {failure}; if not, the lease {expiry}")
    } else {
        format!("cannot release {key}: {failure}; the lease {expiry}")
    }
}

fn processes(count: Option<usize>) -> String {
    match count {
        Some(1) => "1 process".to_owned(),
        Some(count) => format!("{count} processes"),
        None => "processes".to_owned(),
    }
}

/// Why the term of a run has ended.
fn lost_by(why: &Loss, culprit: Option<&Culprit>) -> String {
    let by = if *why == Loss::Released && culprit.is_none() {
        ", by force or by the job itself"
    } else {
        ""
    };
    format!("{}{by}", loss_by(why, culprit))
}

fn reason(reason: &Reason, key: &str, culprit: Option<&Culprit>) -> String {
    match reason {
        Reason::Over(why) => format!("{key} is lost: {}", lost_by(why, culprit)),
        Reason::NotRenewed(last) => {
            // Not "has expired": the job is stopped before the expiry.
            let mut text = format!("{key} could not be renewed in time");
            match last {
                Some(failure) => {
                    let _ = write!(text, ": {failure}");
                }
                None => {
                    text.push_str(" (was lease or the machine stopped, or is the database slow?)")
                }
            }
            text
        }
    }
}
