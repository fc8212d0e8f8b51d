//! Handles one event at a time, in the phase of the run.

use super::guarding::Guarding;
use super::held_term::HeldTerm;
use super::state::{Phase, Supervisor};
use crate::clock::BootTime;
use crate::supervise::{Action, Event, Purpose};

impl Supervisor {
    /// When [`Event::Tick`] must be given at the latest; `None` while nothing depends on time.
    #[must_use]
    pub fn next_wakeup(&self) -> Option<BootTime> {
        match &self.phase {
            Phase::Claiming(claiming) => claiming.next_wakeup(),
            Phase::Guarding(guarding, _) => guarding.next_wakeup(),
            Phase::Releasing(releasing) => Some(releasing.next_wakeup()),
            Phase::Settling(_) | Phase::Starting(_) | Phase::Done => None,
        }
    }

    /// Whether the run is over.
    #[must_use]
    pub const fn is_done(&self) -> bool {
        matches!(self.phase, Phase::Done)
    }

    /// Decides what to do about `event`, seen at `now`. The result may be empty.
    pub fn handle(&mut self, now: BootTime, event: Event) -> Vec<Action> {
        let mut out = Vec::new();
        let shows_wait = self.shows_wait();
        let phase = std::mem::replace(&mut self.phase, Phase::Done);
        self.phase = match (phase, self.plan.purpose) {
            (Phase::Claiming(claiming), _) => self.while_claiming(claiming, now, event, &mut out),
            (Phase::Settling(granted), _) => self.while_settling(granted, now, event, &mut out),
            (Phase::Starting(granted), Purpose::Job(job)) => {
                self.while_starting(job, granted, now, event, &mut out)
            }
            (Phase::Guarding(guarding, held), Purpose::Job(job)) => {
                self.while_guarding(guarding, held, job.hold, now, event, &mut out)
            }
            (Phase::Releasing(releasing), _) => {
                self.while_releasing(releasing, now, event, &mut out)
            }
            // A claim for a script never gets beyond its grant.
            (Phase::Starting(_) | Phase::Guarding(..), Purpose::Claim) | (Phase::Done, _) => {
                Phase::Done
            }
        };
        if shows_wait && !matches!(self.phase, Phase::Claiming(_)) {
            out.insert(0, Action::EndWait);
        }
        out
    }

    /// Whether it is shown whom the claim waits for.
    const fn shows_wait(&self) -> bool {
        match &self.phase {
            Phase::Claiming(claiming) => claiming.shown.is_some(),
            Phase::Settling(_)
            | Phase::Starting(_)
            | Phase::Guarding(..)
            | Phase::Releasing(_)
            | Phase::Done => false,
        }
    }

    fn while_guarding(
        &mut self,
        mut guarding: Guarding,
        mut held: HeldTerm,
        hold: std::time::Duration,
        now: BootTime,
        event: Event,
        out: &mut Vec<Action>,
    ) -> Phase {
        if let Event::Renewed(renewed) = &event {
            held = HeldTerm::new(renewed.clone(), now, self.ttl());
        }
        if event == Event::RenewalInDoubt {
            held.doubt(now, self.ttl());
        }
        let Some(finish) = guarding.handle(now, event, out) else {
            return Phase::Guarding(guarding, held);
        };
        self.job_end = finish.job_end;
        out.push(Action::StopHeartbeat);
        out.push(Action::DismissWatchdog);
        if !finish.release {
            return self.finish(finish.outcome, out);
        }
        self.begin_release(held, hold, finish.job_end, finish.outcome, now, out)
    }
}
