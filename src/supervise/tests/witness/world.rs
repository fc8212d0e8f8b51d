//! The events that can happen, and when.

use std::rc::Rc;
use std::time::Duration;

use super::super::{GRACE, TTL, alive, at, granted};
use super::knowledge::{Awaited, Entry, Starts, Witness};
use crate::job::{Ended, Foreground, Leftovers, OnLoss, Signal};
use crate::lease::Release;
use crate::supervise::{Action, ClaimAnswer, Event, NotStarted, ReleaseAnswer, StartAnswer};

impl Witness {
    /// A run whose job has just been started.
    pub(in crate::supervise::tests) fn running(on_loss: OnLoss) -> Self {
        let mut witness = Self::new(on_loss, Starts::Works, None);
        witness.feed(Duration::ZERO, Event::Tick);
        let grant = ClaimAnswer::Granted(granted(at(0) + TTL));
        witness.feed(Duration::ZERO, Event::Claim(grant));
        witness.must(witness.started, "a good grant starts the job");
        witness
    }

    /// Whether this event can happen now: an answer needs a request.
    fn is_possible(&self, event: &Event) -> bool {
        match event {
            Event::Claim(_) => self.awaited == Awaited::Claim,
            Event::Release(_) => self.awaited == Awaited::Release,
            Event::Start(_) => matches!(self.awaited, Awaited::Armed | Awaited::Started),
            Event::Renewed(_) | Event::RenewFailed(_) | Event::Lost(_) => {
                self.heartbeat || self.awaited == Awaited::Renewal
            }
            Event::NoHeartbeat(_) => self.heartbeat,
            Event::JobExited(..) => self.started && !self.leader_gone,
            Event::JobStopped(..) | Event::JobContinued | Event::Leftovers(_) => {
                self.started && !self.dismissed
            }
            Event::Signal(_)
            | Event::TerminalWanted(..)
            | Event::StayedAwake(_)
            | Event::WatchdogDied
            | Event::Unprotected(_)
            | Event::RenewalInDoubt
            | Event::Tick => true,
            Event::WatchdogTold(_) => self.to_be_told.is_some(),
        }
    }

    /// The same run after these events, each with its time since the one before.
    pub(in crate::supervise::tests) fn fed(
        mut self,
        row: impl IntoIterator<Item = (Duration, Event)>,
    ) -> Self {
        for (step, event) in row {
            self.feed(step, event);
        }
        self
    }

    /// Lets an event happen, if it can happen now. Returns whether it can.
    pub(in crate::supervise::tests) fn feed(&mut self, step: Duration, event: Event) -> bool {
        if !self.is_possible(&event) {
            return false;
        }
        self.now = self.now + step;
        self.tell(event);
        // The loop answers these before it handles any other event.
        loop {
            if let Some(deadline) = self.to_be_told {
                self.now = self.now + self.told_after;
                self.tell(Event::WatchdogTold(deadline));
                continue;
            }
            let answer = match (self.awaited, self.starts) {
                (Awaited::Armed, Starts::HasNoWatchdog) => Event::Unprotected("no pipe".to_owned()),
                (Awaited::Armed, _) => Event::Start(StartAnswer::Armed),
                (Awaited::Started, Starts::FindsNoCommand) => Event::Start(
                    StartAnswer::NotStarted(NotStarted::NotFound("cannot run x".to_owned())),
                ),
                (Awaited::Started, Starts::ComesTooLate) => {
                    Event::Start(StartAnswer::NotStarted(NotStarted::TooLate))
                }
                (Awaited::Started, _) => Event::Start(StartAnswer::Started),
                (Awaited::Nothing | Awaited::Claim | Awaited::Renewal | Awaited::Release, _) => {
                    return true;
                }
            };
            self.tell(answer);
        }
    }

    fn tell(&mut self, event: Event) {
        self.learn(&event);
        let was_done = self.supervisor.is_done();
        let actions = self.supervisor.handle(self.now, event.clone());
        self.history = Some(Rc::new(Entry {
            at: self.now,
            event: event.clone(),
            actions: actions.clone(),
            before: self.history.take(),
        }));
        self.judge(&event, &actions, was_done);
    }

    /// Runs to the end: the database answers, the job ends, one process stays until KILL, and from then on looks find
    /// `found`.
    pub(in crate::supervise::tests) fn run_to_the_end(&mut self, found: Leftovers) {
        for _ in 0..60 {
            if self.outcome.is_some() {
                self.feed(TTL * 9, Event::Tick);
                self.feed(TTL, Event::Signal(Signal::HUP));
                return;
            }
            match self.awaited {
                Awaited::Claim => {
                    let answer = ClaimAnswer::Granted(granted(self.now + TTL));
                    self.feed(Duration::ZERO, Event::Claim(answer));
                    continue;
                }
                Awaited::Renewal => {
                    self.feed(Duration::ZERO, Event::Renewed(granted(self.now + TTL)));
                    continue;
                }
                Awaited::Release => {
                    let answer = ReleaseAnswer::Answered(Release::Released);
                    self.feed(Duration::ZERO, Event::Release(answer));
                    continue;
                }
                Awaited::Nothing | Awaited::Armed | Awaited::Started => {}
            }
            if self.started && !self.leader_gone {
                let end = Event::JobExited(Ended::Code(3), Foreground::Other);
                self.feed(Duration::ZERO, end);
                continue;
            }
            let asks = |actions: &[Action]| actions.contains(&Action::LookAtLeftovers);
            let asked = self.history.as_ref().is_some_and(|e| asks(&e.actions));
            if asked {
                let found = if self.killed { found } else { alive(1) };
                self.feed(Duration::ZERO, Event::Leftovers(found));
                continue;
            }
            let Some(next) = self.supervisor.next_wakeup() else {
                // The look was answered by an event of the test itself, or is no longer requested.
                self.feed(Duration::ZERO, Event::Leftovers(Leftovers::Empty));
                continue;
            };
            // The loop was delayed. The looks at the leftovers in between add nothing.
            let step = if self.leader_gone {
                GRACE
            } else {
                Duration::ZERO
            };
            self.feed(next.since(self.now).max(step), Event::Tick);
        }
        self.fail("no end");
    }
}
