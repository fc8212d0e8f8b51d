//! What can be known about a run from the outside, and what each event adds to it.

use std::rc::Rc;
use std::time::Duration;

use super::super::{GRACE, at, for_a_job, plan};
use crate::clock::BootTime;
use crate::job::{Leftovers, OnLoss, Signal};
use crate::supervise::{Action, ClaimAnswer, Event, Outcome, StartAnswer, Supervisor};
use crate::timing::Wait;

/// What happens when the run starts a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::supervise::tests) enum Starts {
    Works,
    HasNoWatchdog,
    FindsNoCommand,
    ComesTooLate,
}

/// The requests that are not answered yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Awaited {
    Nothing,
    Claim,
    Renewal,
    Armed,
    Started,
    Release,
}

/// An event, the actions that followed, and what came before. Witnesses that were cloned from the same one share it.
pub(super) struct Entry {
    pub(super) at: BootTime,
    pub(super) event: Event,
    pub(super) actions: Vec<Action>,
    pub(super) before: Option<Rc<Entry>>,
}

/// A run, and what can be known about it from the outside.
#[derive(Clone)]
pub(in crate::supervise::tests) struct Witness {
    pub(super) on_loss: OnLoss,
    pub(super) starts: Starts,
    pub(super) supervisor: Supervisor,
    pub(in crate::supervise::tests) now: BootTime,
    pub(super) awaited: Awaited,
    pub(super) interrupted: bool,
    /// Whether it is shown whom the claim waits for.
    pub(super) shows_wait: bool,
    pub(super) ours: bool,
    pub(super) deadline: BootTime,
    /// A deadline that is being sent to the watchdog, and how long that takes.
    pub(super) to_be_told: Option<BootTime>,
    pub(in crate::supervise::tests) told_after: Duration,
    /// The deadline that it has, and whether it had begun to stop the job when a later one arrived.
    pub(super) watchdog_knows: BootTime,
    pub(super) stopped_by_watchdog: bool,
    pub(super) started: bool,
    pub(super) leader_gone: bool,
    /// Whether it is proven that nothing of the group acts any more.
    pub(super) group_over: bool,
    /// Whether the last look was requested after a KILL.
    pub(super) looked_after_kill: bool,
    /// Since when looks after the KILL have found nothing that could be alive, if that is not a proof.
    pub(super) nobody_since: Option<BootTime>,
    pub(super) heartbeat: bool,
    pub(super) dismissed: bool,
    pub(super) release_asked: bool,
    pub(super) own_terms: u32,
    pub(super) kill_due: Option<BootTime>,
    pub(super) killed: bool,
    pub(super) kill_reported: bool,
    pub(super) lost: bool,
    pub(super) failing: bool,
    pub(super) outcome: Option<Outcome>,
    pub(super) history: Option<Rc<Entry>>,
}

impl Witness {
    /// A run before its first claim.
    pub(in crate::supervise::tests) fn new(
        on_loss: OnLoss,
        starts: Starts,
        wait: Option<Wait>,
    ) -> Self {
        Self {
            on_loss,
            starts,
            supervisor: Supervisor::new(plan(for_a_job(on_loss), wait), at(0)),
            now: at(0),
            awaited: Awaited::Nothing,
            interrupted: false,
            shows_wait: false,
            ours: false,
            deadline: at(0),
            to_be_told: None,
            told_after: Duration::ZERO,
            watchdog_knows: at(0),
            stopped_by_watchdog: false,
            started: false,
            leader_gone: false,
            group_over: false,
            looked_after_kill: false,
            nobody_since: None,
            heartbeat: false,
            dismissed: false,
            release_asked: false,
            own_terms: 0,
            kill_due: None,
            killed: false,
            kill_reported: false,
            lost: false,
            failing: false,
            outcome: None,
            history: None,
        }
    }

    pub(super) fn fail(&self, what: &str) -> ! {
        let mut history = Vec::new();
        let mut entry = self.history.as_deref();
        while let Some(this) = entry {
            history.push((this.at, &this.event, &this.actions));
            entry = this.before.as_deref();
        }
        history.reverse();
        panic!("{what}\n{:?}\n{history:#?}", self.on_loss)
    }

    pub(super) fn must(&self, holds: bool, what: &str) {
        if !holds {
            self.fail(what);
        }
    }

    /// Records what an event says, before the supervisor gets it.
    pub(super) fn learn(&mut self, event: &Event) {
        match event {
            Event::Claim(answer) => {
                self.awaited = Awaited::Nothing;
                if let ClaimAnswer::Granted(granted) = answer {
                    (self.ours, self.deadline) = (true, granted.deadline);
                }
            }
            Event::Renewed(renewed) => {
                if self.awaited == Awaited::Renewal {
                    self.awaited = Awaited::Nothing;
                }
                if !self.lost {
                    self.deadline = renewed.deadline;
                }
            }
            Event::RenewFailed(_) | Event::Lost(_) if self.awaited == Awaited::Renewal => {
                self.awaited = Awaited::Nothing;
                self.lost |= matches!(event, Event::Lost(_));
            }
            Event::Release(_) | Event::Start(_) => {
                self.awaited = Awaited::Nothing;
                self.started |= *event == Event::Start(StartAnswer::Started);
            }
            Event::Unprotected(_) if self.awaited == Awaited::Armed => {
                self.awaited = Awaited::Nothing;
            }
            Event::Signal(Signal::INT | Signal::TERM | Signal::HUP | Signal::QUIT)
                if !self.started =>
            {
                self.interrupted = true;
            }
            Event::WatchdogTold(deadline) => {
                self.to_be_told = None;
                if self.now < self.watchdog_knows - GRACE {
                    self.watchdog_knows = *deadline;
                } else {
                    // It had begun to stop the job before the order arrived.
                    self.stopped_by_watchdog |= !self.leader_gone && self.own_terms == 0;
                }
            }
            Event::JobExited(..) => self.leader_gone = true,
            Event::Leftovers(found) => self.group_over = self.leader_gone && self.is_over(*found),
            Event::RenewFailed(_)
            | Event::RenewalInDoubt
            | Event::Lost(_)
            | Event::Unprotected(_)
            | Event::Signal(_)
            | Event::JobStopped(..)
            | Event::JobContinued
            | Event::NoHeartbeat(_)
            | Event::TerminalWanted(..)
            | Event::StayedAwake(_)
            | Event::WatchdogDied
            | Event::Tick => {}
        }
    }

    fn is_over(&mut self, found: Leftovers) -> bool {
        match found {
            Leftovers::Empty => true,
            Leftovers::OnlyZombies { reached: true } => self.looked_after_kill,
            Leftovers::OnlyZombies { reached: false } | Leftovers::Unknown { reached: true } => {
                if !self.looked_after_kill {
                    return false;
                }
                let since = *self.nobody_since.get_or_insert(self.now);
                self.now.since(since) >= Duration::from_secs(1)
            }
            Leftovers::Alive { .. } | Leftovers::Unknown { reached: false } => {
                self.nobody_since = None;
                false
            }
        }
    }
}
