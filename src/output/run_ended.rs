//! The steps of a run that no report is about: a renewal, and its end.

use std::time::Duration;

use super::message::{Level, Message};
use super::report_fields::{expires_at, job_end};
use super::span;
use crate::job::Ended;
use crate::lease::Grant;
use crate::supervise::{JobEnd, Outcome, Reason};

/// How the job of a run ended, and how long it took. `loss` is why the job was stopped, if that was for its lease.
#[must_use]
pub fn run_ended(
    key: &str,
    end: JobEnd,
    took: Duration,
    loss: Option<&Reason>,
    outcome: &Outcome,
) -> Message {
    let message = Message::new(
        Level::Step,
        "run_ended",
        text(key, end, took, loss, outcome),
    );
    job_end(end, took)
        .into_iter()
        .fold(message, |message, (name, value)| message.with(name, value))
}

/// The renewal of a lease.
#[must_use]
pub fn renewed(key: &str, grant: &Grant) -> Message {
    let text = format!("renewed {key} until {}", grant.expires_at);
    let (name, value) = expires_at(grant.expires_at);
    Message::new(Level::Step, "renewed", text).with(name, value)
}

fn text(
    key: &str,
    end: JobEnd,
    took: Duration,
    loss: Option<&Reason>,
    outcome: &Outcome,
) -> String {
    let after = span(i64::try_from(took.as_millis()).ok());
    match end {
        JobEnd::NotStarted => format!("{key}: the job was not started"),
        JobEnd::Ended(ended) => {
            let but = if *outcome == Outcome::Lost {
                ", but its lease was lost before"
            } else {
                ""
            };
            match ended {
                Ended::Code(code) => {
                    format!("{key}: the job ended with exit code {code} after {after}{but}")
                }
                Ended::Signal(signal) => {
                    format!("{key}: the job was ended by signal {signal} after {after}{but}")
                }
            }
        }
        JobEnd::Stopped(ended) => {
            let why = match loss {
                Some(Reason::Over(_)) => ", because its lease was lost",
                // It may still be held: the job is stopped before the expiry.
                Some(Reason::NotRenewed(_)) => ", because its lease was not renewed in time",
                None => "",
            };
            let end = match ended {
                Ended::Code(code) => format!("exit code {code}"),
                Ended::Signal(signal) => format!("signal {signal}"),
            };
            format!("{key}: the job was stopped after {after}{why} ({end})")
        }
    }
}
