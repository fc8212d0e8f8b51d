//! The state machine behind [`Supervisor::handle`]: one phase, one file.

mod claiming;
mod guarding;
mod releasing;
mod starting;

use self::claiming::Claiming;
use self::guarding::Guarding;
use self::releasing::Releasing;
use super::{Action, Event, Granted, Outcome, Plan, Purpose};
use crate::clock::BootTime;
use crate::job::Signal;
use crate::lease::Loss;
use crate::timing::Ttl;

/// The term that is held, as it was last granted or renewed.
#[derive(Clone, Debug)]
struct HeldTerm {
    granted: Granted,
    /// Until when the lease stays by this machine's clock, and rather too late: counted from when the answer was seen.
    stays_until: BootTime,
    /// Whether a later renewal may have been applied without an answer.
    may_last_longer: bool,
}

impl HeldTerm {
    fn new(granted: Granted, seen: BootTime, ttl: Ttl) -> Self {
        Self {
            granted,
            stays_until: seen + ttl.get(),
            may_last_longer: false,
        }
    }

    /// A renewal has got no answer until `now`. A ttl is more than enough time for it to arrive.
    fn doubt(&mut self, now: BootTime, ttl: Ttl) {
        self.may_last_longer = true;
        self.stays_until = now + ttl.get() * 2;
    }

    /// Whether somebody else has claimed the key, and not before this term had expired. Both times are the server's, and
    /// of one form.
    fn may_be_followed_by(&self, loss: &Loss) -> bool {
        match loss {
            Loss::Taken(row) => row.acquired_at >= self.granted.grant.expires_at,
            Loss::Mismatch { .. }
            | Loss::Expired
            | Loss::Released
            | Loss::NoRow
            | Loss::NoTable(_) => false,
        }
    }
}

#[derive(Clone, Debug)]
enum Phase {
    Claiming(Claiming),
    /// A grant that came late is being renewed.
    Settling(Granted),
    Starting(Granted),
    Guarding(Guarding, HeldTerm),
    Releasing(Releasing),
    Done,
}

/// The decisions of one run, from its first claim to its exit; of `lease claim`, to the grant.
#[derive(Clone, Debug)]
pub struct Supervisor {
    plan: Plan,
    phase: Phase,
    /// The first signal that asked to end the wait.
    interrupted: Option<Signal>,
}

impl Supervisor {
    /// Nothing was asked yet: the first [`Event::Tick`] begins.
    #[must_use]
    pub fn new(plan: Plan, now: BootTime) -> Self {
        let claiming = Claiming::new(&plan, now);
        Self {
            plan,
            phase: Phase::Claiming(claiming),
            interrupted: None,
        }
    }

    /// When [`Event::Tick`] has to be given at the latest; `None` while nothing depends on time.
    #[must_use]
    pub fn next_wakeup(&self) -> Option<BootTime> {
        match &self.phase {
            Phase::Claiming(claiming) => claiming.next_wakeup(),
            Phase::Guarding(guarding, _) => guarding.next_wakeup(),
            Phase::Releasing(releasing) => Some(releasing.next_wakeup()),
            Phase::Settling(_) | Phase::Starting(_) | Phase::Done => None,
        }
    }

    /// Whether nothing more will follow.
    #[must_use]
    pub const fn is_done(&self) -> bool {
        matches!(self.phase, Phase::Done)
    }

    /// Decides what `event`, seen at `now`, calls for. An empty answer means: nothing.
    pub fn handle(&mut self, now: BootTime, event: Event) -> Vec<Action> {
        let mut out = Vec::new();
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
            // A claim for a script never comes further than its grant.
            (Phase::Starting(_) | Phase::Guarding(..), Purpose::Claim) | (Phase::Done, _) => {
                Phase::Done
            }
        };
        out
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
        out.push(Action::StopHeartbeat);
        out.push(Action::DismissWatchdog);
        if !finish.release {
            return self.finish(finish.outcome, out);
        }
        self.begin_release(held, hold, finish.job_end, finish.outcome, now, out)
    }

    fn ttl(&self) -> Ttl {
        self.plan.extension.ttl()
    }

    fn finish(&self, outcome: Outcome, out: &mut Vec<Action>) -> Phase {
        out.push(Action::Finish(outcome));
        Phase::Done
    }
}
