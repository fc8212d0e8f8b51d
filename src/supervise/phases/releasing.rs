//! From the end of the job, or from a grant that is not used, to the exit.

use std::time::Duration;

use super::claiming::ends_a_wait;
use super::held_term::HeldTerm;
use super::state::{Phase, Releasing, Supervisor};
use crate::clock::BootTime;
use crate::exit::Exit;
use crate::job::{Ended, OnLoss};
use crate::lease::{Loss, Release};
use crate::supervise::{
    Action, Event, JobEnd, JobPlan, NotReleased, Outcome, Purpose, ReleaseAnswer, Report,
};
use crate::timing::{LAST_LOOK, RELEASE_PATIENCE, retry_pause};

impl Releasing {
    pub(super) fn next_wakeup(&self) -> BootTime {
        let leave = self.asked_to_leave.then_some(self.patient_until);
        // An answer normally comes within the limit of its try. This handles one that does not.
        let given_up = self.until + LAST_LOOK;
        [self.next_at, leave]
            .into_iter()
            .flatten()
            .fold(given_up, BootTime::min)
    }

    fn try_now(&mut self, now: BootTime, out: &mut Vec<Action>) {
        self.next_at = None;
        self.is_under_way = true;
        out.push(Action::Release {
            term: self.held.granted.grant.term.clone(),
            hold: self.hold,
            limit: self.until.since(now),
            ended: match self.job_end {
                JobEnd::Ended(ended) | JobEnd::Stopped(ended) => Some(ended),
                JobEnd::NotStarted => not_started(&self.outcome),
            },
            ours_to: match self.job_end {
                JobEnd::Ended(_) if self.was_certain => Some(self.held.granted.grant.expires_at),
                JobEnd::Ended(_) | JobEnd::Stopped(_) | JobEnd::NotStarted => None,
            },
        });
    }
}

/// What the history shows of a command that could not be started: the exit code that tells so.
const fn not_started(outcome: &Outcome) -> Option<Ended> {
    match outcome {
        Outcome::NotFound => Some(Ended::Code(Exit::NotFound.code())),
        Outcome::CannotExecute => Some(Ended::Code(Exit::CannotExecute.code())),
        Outcome::Failed => Some(Ended::Code(Exit::Failed.code())),
        Outcome::Granted(_)
        | Outcome::AsJob { .. }
        | Outcome::Interrupted(_)
        | Outcome::Conflict
        | Outcome::Unavailable
        | Outcome::Lost => None,
    }
}

impl Supervisor {
    pub(super) fn begin_release(
        &mut self,
        held: HeldTerm,
        hold: Duration,
        job_end: JobEnd,
        outcome: Outcome,
        now: BootTime,
        out: &mut Vec<Action>,
    ) -> Phase {
        let mut releasing = Releasing {
            hold,
            job_end,
            outcome,
            is_unknown: false,
            failures: 0,
            failure: None,
            was_certain: now < held.granted.deadline,
            held,
            // Also after the expiry: the history is to know how the job ended.
            until: now + self.plan.db_timeout,
            patient_until: now + RELEASE_PATIENCE,
            asked_to_leave: false,
            next_at: None,
            is_under_way: false,
        };
        releasing.try_now(now, out);
        Phase::Releasing(releasing)
    }

    pub(super) fn while_releasing(
        &mut self,
        mut releasing: Releasing,
        now: BootTime,
        event: Event,
        out: &mut Vec<Action>,
    ) -> Phase {
        if matches!(event, Event::Release(_)) {
            releasing.is_under_way = false;
        }
        match event {
            Event::Release(ReleaseAnswer::Answered(answer)) => {
                return self.release_answered(releasing, answer, now, out);
            }
            Event::Release(ReleaseAnswer::Failed(failure)) => {
                releasing.failures += 1;
                releasing.is_unknown |= failure.is_unknown;
                let again = now + retry_pause(releasing.failures);
                let ends = !failure.is_transient || again >= releasing.until;
                releasing.failure = Some(failure);
                if ends {
                    return self.not_released(releasing, None, now, out);
                }
                releasing.next_at = Some(again);
            }
            // It was under way when the heartbeat was stopped.
            Event::Renewed(renewed) => {
                releasing.held = HeldTerm::new(renewed, now, self.ttl());
            }
            Event::RenewalInDoubt => releasing.held.doubt(now, self.ttl()),
            Event::Signal(signal) if ends_a_wait(signal) => releasing.asked_to_leave = true,
            Event::Tick
            | Event::Signal(_)
            | Event::TerminalWanted(..)
            | Event::WatchdogDied
            | Event::WatchdogTold(_)
            | Event::Unprotected(_)
            | Event::StayedAwake(_)
            | Event::Claim(_)
            | Event::Start(_)
            | Event::RenewFailed(_)
            | Event::Lost(_)
            | Event::NoHeartbeat(_)
            | Event::JobExited(..)
            | Event::JobStopped(..)
            | Event::JobContinued
            | Event::Leftovers(_) => {}
        }
        if releasing.asked_to_leave && now >= releasing.patient_until {
            return self.not_released(releasing, Some("interrupted"), now, out);
        }
        if now >= releasing.until + LAST_LOOK {
            let why = "the database did not answer in time";
            return self.not_released(releasing, Some(why), now, out);
        }
        if releasing.next_at.is_some_and(|at| now >= at) {
            releasing.try_now(now, out);
        }
        Phase::Releasing(releasing)
    }

    fn release_answered(
        &mut self,
        mut releasing: Releasing,
        answer: Release,
        now: BootTime,
        out: &mut Vec<Action>,
    ) -> Phase {
        let loss = match answer {
            // An earlier try whose answer was lost has released the term, after the job had ended. Any later change
            // came after that.
            Release::AlreadyReleased | Release::Expired(_) | Release::Lost(_)
                if releasing.is_unknown =>
            {
                None
            }
            Release::Released => None,
            // The job had ended in time, and only its release was late, unless the expiry was changed by someone else.
            Release::Expired(at) if at >= releasing.held.granted.grant.expires_at => None,
            Release::Expired(_) => Some(Loss::Expired),
            // This run had not sent a release before, so the term was ended by someone else.
            Release::AlreadyReleased => Some(Loss::Released),
            Release::Lost(loss) => {
                let expired_since = releasing.was_certain && now >= releasing.held.granted.deadline;
                if expired_since && releasing.held.may_be_followed_by(&loss) {
                    releasing.failure = None;
                    let why = "the database answered only after the lease had expired";
                    return self.not_released(releasing, Some(why), now, out);
                }
                Some(loss)
            }
        };
        let Some(loss) = loss else {
            out.push(Action::Report(Report::Released));
            return self.finish(releasing.outcome, out);
        };
        out.push(Action::Report(Report::LostBeforeEnd(
            loss,
            releasing.job_end,
        )));
        let outcome = match (releasing.outcome, self.plan.purpose) {
            (
                Outcome::AsJob { .. },
                Purpose::Job(JobPlan {
                    on_loss: OnLoss::Stop,
                    ..
                }),
            ) => Outcome::Lost,
            (other, _) => other,
        };
        self.finish(outcome, out)
    }

    /// Gives up. The reported reason is `why`, or else the last failure.
    fn not_released(
        &mut self,
        releasing: Releasing,
        why: Option<&str>,
        now: BootTime,
        out: &mut Vec<Action>,
    ) -> Phase {
        // A pending try may still be applied.
        let is_unknown = releasing.is_unknown || releasing.is_under_way;
        let failure = match (why, releasing.failure) {
            (Some(why), _) => why.to_owned(),
            (None, Some(failure)) => failure.message,
            (None, None) => String::new(),
        };
        out.push(Action::Report(Report::NotReleased(NotReleased {
            failure,
            is_unknown,
            expires_at: releasing.held.granted.grant.expires_at,
            may_last_longer: releasing.held.may_last_longer,
            has_expired: now >= releasing.held.stays_until,
            hold: releasing.hold,
        })));
        self.finish(releasing.outcome, out)
    }
}
