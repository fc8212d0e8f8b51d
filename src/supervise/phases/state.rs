//! What a run knows, in each phase.

use std::time::Duration;

use super::guarding::Guarding;
use super::held_term::HeldTerm;
use crate::clock::BootTime;
use crate::job::Signal;
use crate::lease::Row;
use crate::supervise::{Action, Granted, JobEnd, OperationFailure, Outcome, Plan};
use crate::timing::{Ttl, Wait};

/// Decides for one run, from its first claim to its exit, or for `lease claim`, until the grant.
#[derive(Clone, Debug)]
pub struct Supervisor {
    pub(super) plan: Plan,
    pub(super) phase: Phase,
    /// The first signal that asked to end the wait.
    pub(super) interrupted: Option<Signal>,
    /// The progress of the job.
    pub(super) job_end: JobEnd,
}

impl Supervisor {
    /// Nothing was requested yet: the first [`Event::Tick`](crate::supervise::Event::Tick) begins.
    #[must_use]
    pub fn new(plan: Plan, now: BootTime) -> Self {
        let claiming = Claiming::new(&plan, now);
        Self {
            plan,
            phase: Phase::Claiming(claiming),
            interrupted: None,
            job_end: JobEnd::NotStarted,
        }
    }

    /// The exit of the run, once it is done.
    #[must_use]
    pub const fn job_end(&self) -> JobEnd {
        self.job_end
    }

    pub(super) fn ttl(&self) -> Ttl {
        self.plan.extension.ttl()
    }

    pub(super) fn finish(&self, outcome: Outcome, out: &mut Vec<Action>) -> Phase {
        out.push(Action::Finish(outcome));
        Phase::Done
    }
}

#[derive(Clone, Debug)]
pub(super) enum Phase {
    Claiming(Claiming),
    /// A late grant is being renewed.
    Settling(Granted),
    Starting(Granted),
    Guarding(Guarding, HeldTerm),
    Releasing(Releasing),
    Done,
}

/// What a claim knows between two tries.
#[derive(Clone, Debug)]
pub(super) struct Claiming {
    /// Until when to wait for another holder; `None` for ever.
    pub(super) wait_until: Option<BootTime>,
    /// Until when a failing claim is retried; `None` for ever. Without a wait, this is the time limit of one operation:
    /// a database restart of five seconds must not make a nightly job miss its run. A wait is not made longer by this.
    pub(super) retry_until: Option<BootTime>,
    /// Whether an earlier claim got no answer and may have been applied. Another claim by the same holder settles this.
    pub(super) is_unknown: bool,
    /// The number of tries since the last change of the holder.
    pub(super) looks: u32,
    /// When the first claim was due.
    pub(super) since: BootTime,
    /// The holder that the last "waiting" message named.
    pub(super) told_holder: Option<Option<String>>,
    /// Whether failing claims were reported.
    pub(super) told_failure: bool,
    /// The last failure, if the last try failed.
    pub(super) failure: Option<OperationFailure>,
    /// When to try again; `None` while an answer is awaited.
    pub(super) next_at: Option<BootTime>,
    /// Whether it still looks eagerly.
    pub(super) eager: bool,
    /// When the last try was sent.
    pub(super) asked_at: BootTime,
    /// The row of the lease that is waited for, if it is shown.
    pub(super) shown: Option<Row>,
}

impl Claiming {
    pub(super) fn new(plan: &Plan, now: BootTime) -> Self {
        let wait_until = match plan.wait {
            None => Some(now),
            Some(Wait::For(limit)) => Some(now + limit),
            Some(Wait::Forever) => None,
        };
        Self {
            wait_until,
            retry_until: if plan.waits() {
                wait_until
            } else {
                Some(now + plan.db_timeout)
            },
            is_unknown: false,
            looks: 0,
            since: now,
            told_holder: None,
            told_failure: false,
            failure: None,
            next_at: Some(now),
            eager: plan.eager && plan.waits(),
            asked_at: now,
            shown: None,
        }
    }
}

/// A release that continues until the database has answered, or until its time is up.
#[derive(Clone, Debug)]
pub(super) struct Releasing {
    pub(super) held: HeldTerm,
    pub(super) hold: Duration,
    pub(super) job_end: JobEnd,
    /// How to exit if the release finds nothing wrong.
    pub(super) outcome: Outcome,
    /// Whether an earlier try got no answer and may have been applied. Of the run's own tries, only this can have ended
    /// the term.
    pub(super) is_unknown: bool,
    pub(super) failures: u32,
    /// The last failure.
    pub(super) failure: Option<OperationFailure>,
    /// Whether the term had certainly not expired when the release began.
    pub(super) was_certain: bool,
    /// When the last try must be over.
    pub(super) until: BootTime,
    /// Until when the release continues in spite of a signal that asks to end.
    pub(super) patient_until: BootTime,
    /// Whether a signal has asked to end.
    pub(super) asked_to_leave: bool,
    /// When to try again, if a try has failed.
    pub(super) next_at: Option<BootTime>,
    /// Whether an answer is awaited.
    pub(super) is_under_way: bool,
}
