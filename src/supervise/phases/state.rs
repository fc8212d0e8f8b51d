//! What a run knows, in each phase.

use std::time::Duration;

use super::guarding::Guarding;
use super::held_term::HeldTerm;
use crate::clock::BootTime;
use crate::job::Signal;
use crate::supervise::{Action, Granted, JobEnd, OperationFailure, Outcome, Plan};
use crate::timing::{Ttl, Wait};

/// The decisions of one run, from its first claim to its exit; of `lease claim`, to the grant.
#[derive(Clone, Debug)]
pub struct Supervisor {
    pub(super) plan: Plan,
    pub(super) phase: Phase,
    /// The first signal that asked to end the wait.
    pub(super) interrupted: Option<Signal>,
    /// How far the job has come.
    pub(super) job_end: JobEnd,
}

impl Supervisor {
    /// Nothing was asked yet: the first [`Event::Tick`](crate::supervise::Event::Tick) begins.
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

    /// How the job has ended, once the run is done.
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
    /// A grant that came late is being renewed.
    Settling(Granted),
    Starting(Granted),
    Guarding(Guarding, HeldTerm),
    Releasing(Releasing),
    Done,
}

/// What a claim knows between two tries.
#[derive(Clone, Debug)]
pub(super) struct Claiming {
    /// Until when somebody else is waited for; `None` for ever.
    pub(super) wait_until: Option<BootTime>,
    /// Until when a failing database is tried again; `None` for ever. A restart of five seconds must not cost the night's run
    /// of a claim that does not wait, so that one has the time of one operation; a wait is not made longer.
    pub(super) retry_until: Option<BootTime>,
    /// Whether an earlier claim may have been applied without an answer. Asking again as the same holder settles it.
    pub(super) is_unknown: bool,
    /// How many tries there were since the last change of the holder.
    pub(super) looks: u32,
    /// Whose lease it was said to wait for.
    pub(super) told_holder: Option<Option<String>>,
    /// Whether it was said that claims fail.
    pub(super) told_failure: bool,
    /// The last failure, if the last try failed.
    pub(super) failure: Option<OperationFailure>,
    /// When to try again; `None` while an answer is awaited.
    pub(super) next_at: Option<BootTime>,
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
            told_holder: None,
            told_failure: false,
            failure: None,
            next_at: Some(now),
        }
    }
}

/// A release that goes on until the database has answered, or its time is up.
#[derive(Clone, Debug)]
pub(super) struct Releasing {
    pub(super) held: HeldTerm,
    pub(super) hold: Duration,
    pub(super) job_end: JobEnd,
    /// How to exit if nothing turns out to be wrong.
    pub(super) outcome: Outcome,
    /// Whether an earlier try may have been applied without an answer. A try that was certainly not applied says nothing
    /// about who ended the term.
    pub(super) is_unknown: bool,
    pub(super) failures: u32,
    /// The last failure.
    pub(super) failure: Option<OperationFailure>,
    /// Whether the term was certain to be unexpired when the release began.
    pub(super) was_certain: bool,
    /// When the last try has to be over.
    pub(super) until: BootTime,
    /// Until when a signal that asks to leave is not heeded.
    pub(super) patient_until: BootTime,
    /// Whether a signal has asked to leave.
    pub(super) asked_to_leave: bool,
    /// When to try again, if a try has failed.
    pub(super) next_at: Option<BootTime>,
    /// Whether an answer is awaited.
    pub(super) is_under_way: bool,
}
