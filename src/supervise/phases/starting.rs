//! From the grant to the running job.

use super::claiming::{ends_a_wait, suspend};
use super::guarding::Guarding;
use super::held_term::HeldTerm;
use super::state::{Phase, Supervisor};
use crate::clock::BootTime;
use crate::lease::Loss;
use crate::supervise::{
    Action, Event, Granted, JobEnd, JobPlan, NotStarted, Outcome, Purpose, Report, StartAnswer,
};

impl Supervisor {
    /// The lease was granted.
    pub(super) fn granted(
        &mut self,
        granted: Granted,
        now: BootTime,
        out: &mut Vec<Action>,
    ) -> Phase {
        out.push(Action::Report(Report::Claimed(granted.grant.clone())));
        if let Some(signal) = self.interrupted {
            // The COMMIT had been sent, so the lease is held although it is no longer wanted.
            let outcome = Outcome::Interrupted(signal);
            return self.end_unused(granted, now, outcome, out);
        }
        if now >= self.fresh_until(&granted) {
            // A claim can take long, for example because of a locked row. The job needs a lease with enough time left.
            out.push(Action::Renew(
                granted.grant.term.clone(),
                self.plan.db_timeout,
            ));
            return Phase::Settling(granted);
        }
        self.use_it(granted, out)
    }

    /// Until when a grant can be used without a renewal. A job must not start when a heartbeat is due already.
    fn fresh_until(&self, granted: &Granted) -> BootTime {
        match self.plan.purpose {
            Purpose::Claim => granted.deadline,
            Purpose::Job(job) => granted.sent + job.heartbeat,
        }
    }

    /// Until when a late grant can be used once it is renewed.
    fn usable_until(&self, renewed: &Granted) -> BootTime {
        match self.plan.purpose {
            Purpose::Claim => renewed.deadline,
            Purpose::Job(job) => renewed.deadline - job.grace,
        }
    }

    fn use_it(&self, granted: Granted, out: &mut Vec<Action>) -> Phase {
        match self.plan.purpose {
            Purpose::Claim => self.finish(Outcome::Granted(granted), out),
            Purpose::Job(_) => Self::arm(granted, out),
        }
    }

    /// Whether a grant that cannot be used may be released. A holder that was named explicitly may have had the lease
    /// before, and a job may be running under it.
    fn may_give_back(&self, granted: &Granted) -> bool {
        self.plan.holder_is_fresh || granted.grant.is_new
    }

    fn arm(granted: Granted, out: &mut Vec<Action>) -> Phase {
        out.push(Action::ArmWatchdog(granted.deadline));
        Phase::Starting(granted)
    }

    /// Handles an answer while a late grant is being renewed.
    pub(super) fn while_settling(
        &mut self,
        granted: Granted,
        now: BootTime,
        event: Event,
        out: &mut Vec<Action>,
    ) -> Phase {
        match event {
            Event::Renewed(mut renewed) => {
                // The term is still the one that the claim began.
                renewed.grant.is_new = granted.grant.is_new;
                if let Some(signal) = self.interrupted {
                    return self.end_unused(renewed, now, Outcome::Interrupted(signal), out);
                }
                if now >= self.usable_until(&renewed) {
                    out.push(Action::Report(Report::TooSlow));
                    return self.end_unused(renewed, now, Outcome::Unavailable, out);
                }
                return self.use_it(renewed, out);
            }
            // No one else has claimed it: only the time was too short. There is nothing to release.
            Event::Lost(Loss::Expired) => {
                out.push(Action::Report(Report::TooSlow));
                return self.finish(Outcome::Unavailable, out);
            }
            Event::Lost(loss) => {
                out.push(Action::Report(Report::LostBeforeUse(loss)));
                return self.finish(Outcome::Lost, out);
            }
            Event::RenewFailed(failure) => {
                out.push(Action::Report(Report::NotRenewedBeforeUse(failure)));
                return self.end_unused(granted, now, Outcome::Unavailable, out);
            }
            Event::Signal(signal) if ends_a_wait(signal) => {
                self.interrupted.get_or_insert(signal);
            }
            Event::Signal(signal) | Event::TerminalWanted(signal, _) => suspend(signal, out),
            Event::WatchdogDied
            | Event::WatchdogTold(_)
            | Event::Unprotected(_)
            | Event::StayedAwake(_)
            | Event::RenewalInDoubt
            | Event::Claim(_)
            | Event::Start(_)
            | Event::Release(_)
            | Event::NoHeartbeat(_)
            | Event::JobExited(..)
            | Event::JobStopped(..)
            | Event::JobContinued
            | Event::Leftovers(_)
            | Event::Tick => {}
        }
        Phase::Settling(granted)
    }

    /// The watchdog is being armed, then the job is started. Both are answered before any other event is handled.
    pub(super) fn while_starting(
        &mut self,
        job: JobPlan,
        granted: Granted,
        now: BootTime,
        event: Event,
        out: &mut Vec<Action>,
    ) -> Phase {
        match event {
            Event::Start(StartAnswer::Armed) => {
                out.push(Action::StartJob {
                    term: granted.grant.term.clone(),
                    not_after: granted.deadline - job.grace,
                });
            }
            Event::Start(StartAnswer::Started) => {
                let Granted { sent, took, .. } = granted;
                let term = granted.grant.term.clone();
                out.push(Action::StartHeartbeat { term, sent, took });
                let heartbeat = job.heartbeat;
                if took > heartbeat {
                    out.push(Action::Report(Report::SlowClaim { took, heartbeat }));
                }
                let guarding = Guarding::new(granted.deadline, job.grace, job.on_loss);
                return Phase::Guarding(guarding, HeldTerm::new(granted, now, self.ttl()));
            }
            Event::Start(StartAnswer::NotStarted(why)) => {
                let (report, outcome) = match why {
                    NotStarted::NotFound(text) => (Report::NotStarted(text), Outcome::NotFound),
                    NotStarted::CannotExecute(text) => {
                        (Report::NotStarted(text), Outcome::CannotExecute)
                    }
                    NotStarted::Failed(text) => (Report::NotStarted(text), Outcome::Failed),
                    NotStarted::TooLate => (Report::StartedTooLate, Outcome::Lost),
                };
                out.push(Action::Report(report));
                return self.release_unused(granted, now, outcome, out);
            }
            Event::Unprotected(failure) => {
                out.push(Action::Report(Report::Unprotected(failure)));
                return self.release_unused(granted, now, Outcome::Failed, out);
            }
            Event::Signal(_)
            | Event::TerminalWanted(..)
            | Event::WatchdogDied
            | Event::WatchdogTold(_)
            | Event::StayedAwake(_)
            | Event::Claim(_)
            | Event::Release(_)
            | Event::Renewed(_)
            | Event::RenewFailed(_)
            | Event::RenewalInDoubt
            | Event::Lost(_)
            | Event::NoHeartbeat(_)
            | Event::JobExited(..)
            | Event::JobStopped(..)
            | Event::JobContinued
            | Event::Leftovers(_)
            | Event::Tick => {}
        }
        Phase::Starting(granted)
    }

    /// This grant is not used: the lease is released, unless its holder may rely on it.
    fn end_unused(
        &mut self,
        granted: Granted,
        now: BootTime,
        outcome: Outcome,
        out: &mut Vec<Action>,
    ) -> Phase {
        if self.may_give_back(&granted) {
            self.release_unused(granted, now, outcome, out)
        } else {
            self.finish(outcome, out)
        }
    }

    /// No job will run under this grant, so the lease is released at once.
    fn release_unused(
        &mut self,
        granted: Granted,
        now: BootTime,
        outcome: Outcome,
        out: &mut Vec<Action>,
    ) -> Phase {
        out.push(Action::DismissWatchdog);
        let held = HeldTerm::new(granted, now, self.ttl());
        self.begin_release(
            held,
            std::time::Duration::ZERO,
            JobEnd::NotStarted,
            outcome,
            now,
            out,
        )
    }
}
