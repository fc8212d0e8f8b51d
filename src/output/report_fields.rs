//! The events of a run for programs: a name that does not change, and the fields of each. lease-run(1) lists them.

use std::time::Duration;

use serde_json::Value;

use crate::job::Ended;
use crate::lease::{Loss, Row, ServerTime};
use crate::record::Culprit;
use crate::supervise::{JobEnd, Reason, Report};

type Fields = Vec<(&'static str, Value)>;

/// The name of what a report is about, and its fields.
pub(super) fn event(report: &Report, culprit: Option<&Culprit>) -> (&'static str, Fields) {
    match report {
        Report::Waiting(row) => ("waiting", held(row)),
        Report::ClaimFailing { failure, .. } => ("claim_failing", because(failure)),
        Report::NotEager(failure) => ("not_eager", because(failure)),
        Report::CannotClaim {
            failure,
            is_unknown,
        } => {
            let mut fields = because(failure);
            fields.push(("unknown", (*is_unknown).into()));
            ("claim_failed", fields)
        }
        Report::Conflict(row, _) => ("busy", held(row)),
        Report::NotDue(success) => (
            "not_due",
            vec![
                ("succeeded_on", success.place.as_str().into()),
                ("succeeded_ago_ms", millis(success.ago)),
                ("due_in_ms", millis(success.due_in)),
            ],
        ),
        Report::HeldByOuterRun => ("held_by_outer_run", vec![]),
        Report::Claimed(grant) => ("claimed", vec![expires_at(grant.expires_at)]),
        Report::SlowClaim { took, heartbeat } => (
            "slow_claim",
            vec![
                ("took_ms", millis(*took)),
                ("heartbeat_ms", millis(*heartbeat)),
            ],
        ),
        Report::LostBeforeUse(loss) => ("lost", lost(loss, "not_started", culprit)),
        Report::NotRenewedBeforeUse(failure) => ("not_started", because(failure)),
        Report::TooSlow | Report::NotStarted(_) | Report::StartedTooLate => ("not_started", vec![]),
        Report::RenewFailing(failure) => ("renewal_failing", because(failure)),
        Report::RenewRecovered => ("renewal_recovered", vec![]),
        Report::Lost(reason) => ("lost", no_longer_held(reason, "stopped", culprit)),
        Report::LostRunningOn(reason) => ("lost", no_longer_held(reason, "runs_on", culprit)),
        Report::NoHeartbeat(failure) => ("heartbeat_failed", because(failure)),
        Report::WatchdogDied => ("watchdog_replaced", vec![]),
        Report::Unprotected(failure) => ("watchdog_failed", because(failure)),
        Report::Leftovers(left) => ("leftovers", vec![("processes", (*left).into())]),
        Report::Killed { left, .. } => ("leftovers_killed", vec![("processes", (*left).into())]),
        Report::Released => ("released", vec![]),
        Report::LostBeforeEnd(loss, end) => {
            let job = match end {
                JobEnd::NotStarted => "not_started",
                JobEnd::Ended(_) => "ended",
                JobEnd::Stopped(_) => "stopped",
            };
            ("lost", lost(loss, job, culprit))
        }
        Report::NotReleased(what) => {
            let mut fields = because(&what.failure);
            fields.push(("unknown", what.is_unknown.into()));
            fields.push(expires_at(what.expires_at));
            ("release_failed", fields)
        }
    }
}

/// The fields of how a job ended.
pub(super) fn job_end(end: JobEnd, took: Duration) -> Fields {
    let (word, ended) = match end {
        JobEnd::NotStarted => return vec![("job", "not_started".into())],
        JobEnd::Ended(ended) => ("ended", ended),
        JobEnd::Stopped(ended) => ("stopped", ended),
    };
    let (name, value): (_, Value) = match ended {
        Ended::Code(code) => ("exit_code", code.into()),
        Ended::Signal(signal) => ("exit_signal", signal.number().into()),
    };
    vec![
        ("job", word.into()),
        (name, value),
        ("took_ms", millis(took)),
    ]
}

/// When the lease expires, by the server's clock.
pub(super) fn expires_at(at: ServerTime) -> (&'static str, Value) {
    ("expires_at", at.to_string().into())
}

fn because(failure: &str) -> Fields {
    vec![("reason", failure.into())]
}

fn millis(time: Duration) -> Value {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX).into()
}

/// Who holds the lease; null if it is only cooling.
fn held(row: &Row) -> Fields {
    vec![
        ("held_by", row.holder().into()),
        ("held_fence", row.fence.get().into()),
        expires_at(row.expires_at),
    ]
}

fn no_longer_held(reason: &Reason, job: &'static str, culprit: Option<&Culprit>) -> Fields {
    match reason {
        Reason::Over(loss) => lost(loss, job, culprit),
        Reason::NotRenewed(failure) => vec![
            ("cause", "not_renewed".into()),
            ("job", job.into()),
            ("reason", failure.as_deref().into()),
        ],
    }
}

fn lost(loss: &Loss, job: &'static str, culprit: Option<&Culprit>) -> Fields {
    let (cause, row) = match loss {
        Loss::Taken(row) => ("taken", Some(row)),
        Loss::Mismatch { found, .. } => ("mismatch", Some(found)),
        Loss::Expired => ("expired", None),
        Loss::Released => ("released", None),
        Loss::NoRow => ("no_row", None),
        Loss::NoTable(_) => ("no_table", None),
    };
    let cause = if culprit.is_some() { "evicted" } else { cause };
    let mut fields: Fields = vec![("cause", cause.into()), ("job", job.into())];
    fields.extend(row.map(held).into_iter().flatten());
    if let Some(by) = culprit {
        fields.push(("evicted_by_role", by.role.as_deref().into()));
        fields.push(("evicted_by_host", by.host.as_deref().into()));
        fields.push(("evicted_by_pid", by.pid.into()));
    }
    fields
}
