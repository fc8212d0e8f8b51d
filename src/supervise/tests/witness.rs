//! One run, watched from the outside: after each event, and at its end, what must never happen is looked for.

use std::rc::Rc;
use std::time::Duration;

use super::super::{
    Action, ClaimAnswer, Event, NotStarted, Outcome, ReleaseAnswer, Report, StartAnswer,
    Supervisor, Word,
};
use super::{GRACE, TTL, alive, at, for_a_job, granted, plan};
use crate::clock::BootTime;
use crate::job::{Ended, Foreground, Leftovers, OnLoss, Signal};
use crate::lease::Release;
use crate::timing::Wait;

/// What the world does when a job is to be started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Starts {
    Works,
    HasNoWatchdog,
    FindsNoCommand,
    ComesTooLate,
}

/// What was asked for and is not answered yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Awaited {
    Nothing,
    Claim,
    Renewal,
    Armed,
    Started,
    Release,
}

/// An event, what it called for, and what was before: shared by all witnesses that come from one.
struct Entry {
    at: BootTime,
    event: Event,
    actions: Vec<Action>,
    before: Option<Rc<Entry>>,
}

/// A run, and what is known about it from the outside.
#[derive(Clone)]
pub(super) struct Witness {
    on_loss: OnLoss,
    starts: Starts,
    supervisor: Supervisor,
    pub(super) now: BootTime,
    awaited: Awaited,
    interrupted: bool,
    ours: bool,
    deadline: BootTime,
    /// A deadline that the watchdog is to be told, and how long that takes.
    to_be_told: Option<BootTime>,
    pub(super) told_after: Duration,
    /// The deadline that it has, and whether it had begun to stop the job when it heard of a later one.
    watchdog_knows: BootTime,
    stopped_by_watchdog: bool,
    started: bool,
    leader_gone: bool,
    /// Whether it is proven that nothing of the group acts any more.
    group_over: bool,
    /// Whether the last look was asked for after a KILL.
    looked_after_kill: bool,
    /// Since when looks after the KILL have found nothing that could be alive, without proving it.
    nobody_since: Option<BootTime>,
    heartbeat: bool,
    dismissed: bool,
    release_asked: bool,
    own_terms: u32,
    kill_due: Option<BootTime>,
    killed: bool,
    kill_reported: bool,
    lost: bool,
    failing: bool,
    outcome: Option<Outcome>,
    history: Option<Rc<Entry>>,
}

impl Witness {
    /// Before the first claim.
    pub(super) fn new(on_loss: OnLoss, starts: Starts, wait: Option<Wait>) -> Self {
        Self {
            on_loss,
            starts,
            supervisor: Supervisor::new(plan(for_a_job(on_loss), wait), at(0)),
            now: at(0),
            awaited: Awaited::Nothing,
            interrupted: false,
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

    /// With the job just started.
    pub(super) fn running(on_loss: OnLoss) -> Self {
        let mut witness = Self::new(on_loss, Starts::Works, None);
        witness.feed(Duration::ZERO, Event::Tick);
        let grant = ClaimAnswer::Granted(granted(at(0) + TTL));
        witness.feed(Duration::ZERO, Event::Claim(grant));
        witness.must(witness.started, "a good grant starts the job");
        witness
    }

    fn fail(&self, what: &str) -> ! {
        let mut history = Vec::new();
        let mut entry = self.history.as_deref();
        while let Some(this) = entry {
            history.push((this.at, &this.event, &this.actions));
            entry = this.before.as_deref();
        }
        history.reverse();
        panic!("{what}\n{:?}\n{history:#?}", self.on_loss)
    }

    fn must(&self, holds: bool, what: &str) {
        if !holds {
            self.fail(what);
        }
    }

    /// Whether the world can say this now: nothing is answered that was not asked for.
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

    /// The same after these events, each so long after the one before.
    pub(super) fn fed(mut self, row: impl IntoIterator<Item = (Duration, Event)>) -> Self {
        for (step, event) in row {
            self.feed(step, event);
        }
        self
    }

    /// Lets something happen, if it can happen now; answers whether it can.
    pub(super) fn feed(&mut self, step: Duration, event: Event) -> bool {
        if !self.is_possible(&event) {
            return false;
        }
        self.now = self.now + step;
        self.tell(event);
        // What the loop answers before it looks at anything else.
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
        let stops = self.on_loss == OnLoss::Stop;
        match &event {
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
                self.started |= event == Event::Start(StartAnswer::Started);
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
                    // It had begun before it heard that.
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
        let was_done = self.supervisor.is_done();
        let actions = self.supervisor.handle(self.now, event.clone());
        self.history = Some(Rc::new(Entry {
            at: self.now,
            event: event.clone(),
            actions: actions.clone(),
            before: self.history.take(),
        }));
        self.must(!was_done || actions.is_empty(), "something follows the end");
        for (i, action) in actions.iter().enumerate() {
            self.see(&event, action, &actions, i);
        }
        if self.started && !self.dismissed && stops {
            let overdue = self.kill_due.is_some_and(|due| self.now >= due);
            // The events that begin a stop whose time is up already leave the KILL to the tick that is due at once.
            let at_once = self.supervisor.next_wakeup().is_some_and(|t| t <= self.now);
            self.must(!overdue || self.killed || at_once, "KILL is overdue");
            // The moment of the start itself is kept by the child, which looks at the clock before it becomes the job.
            let running = event != Event::Start(StartAnswer::Started);
            let untrusted = running && self.now >= self.deadline - GRACE;
            self.must(
                !untrusted || self.leader_gone || self.kill_due.is_some(),
                "the job works on without a lease",
            );
            self.must(
                !running || self.now < self.deadline || self.lost,
                "the lease is trusted past its deadline",
            );
        }
        if let (Event::Tick, Some(next)) = (&event, self.supervisor.next_wakeup()) {
            self.must(next > self.now, "a tick asks for another one at once");
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

    /// One question at a time.
    fn ask(&mut self, what: Awaited) {
        self.must(self.awaited == Awaited::Nothing, "two questions at once");
        self.awaited = what;
    }

    fn see(&mut self, event: &Event, action: &Action, all: &[Action], i: usize) {
        let stops = self.on_loss == OnLoss::Stop;
        let stopping = self.own_terms > 0;
        match action {
            Action::Signal(Signal::TERM) => {
                let announced =
                    i > 0 && matches!(all[i - 1], Action::TellWatchdog(Word::KillAt(_)));
                let own = announced || (!stops && matches!(event, Event::Leftovers(_)));
                if own {
                    self.own_terms += 1;
                    self.must(self.own_terms == 1, "a second TERM");
                    self.must(
                        all.get(i + 1) == Some(&Action::Signal(Signal::CONT)),
                        "TERM without CONT",
                    );
                } else {
                    self.must(!stopping, "TERM is passed on into a stop");
                    self.must(*event == Event::Signal(Signal::TERM), "TERM out of nowhere");
                }
            }
            Action::Signal(Signal::KILL) => {
                self.must(stopping, "KILL without TERM");
                self.killed = true;
            }
            Action::Signal(_) => {}
            Action::TellWatchdog(word) | Action::ReplaceWatchdog(word) => {
                self.must(stops, "a word to a watchdog that is not there");
                match word {
                    Word::KillAt(due) => {
                        self.must(*due <= self.deadline, "KILL after the deadline");
                        self.must(
                            self.kill_due.is_none_or(|before| before == *due),
                            "KILL was moved",
                        );
                        self.kill_due = Some(*due);
                    }
                    Word::Deadline(deadline) => {
                        self.must(!stopping, "a stop is taken back");
                        self.to_be_told = Some(*deadline);
                    }
                }
            }
            Action::GiveTerminal | Action::StopSelf { .. } | Action::WakeNeighbours => {
                self.must(!stopping, "job control for a job that should end");
                self.must(!self.leader_gone, "job control for a dead job");
            }
            Action::TakeTerminal { .. } => {}
            Action::LookAtLeftovers => {
                self.must(self.leader_gone, "leftovers of a live job");
                self.looked_after_kill = self.killed;
            }
            Action::Report(report) => self.heard(report, stops),
            Action::Claim(_) => {
                self.must(!self.ours, "a claim of what is ours");
                self.must(!self.interrupted, "a claim after an interrupt");
                self.ask(Awaited::Claim);
            }
            Action::InterruptClaim => {
                self.must(self.awaited == Awaited::Claim, "no claim to be interrupted");
            }
            Action::Renew(..) => {
                self.must(self.ours && !self.started, "not the heartbeat's affair");
                self.ask(Awaited::Renewal);
            }
            Action::ArmWatchdog(deadline) => {
                self.must(*deadline == self.deadline, "another deadline");
                self.watchdog_knows = *deadline;
                self.ask(Awaited::Armed);
            }
            Action::StartJob { not_after, .. } => {
                self.must(self.ours && !self.lost, "a job without a lease");
                self.must(!self.interrupted, "a job after an interrupt");
                self.must(
                    *not_after == self.deadline - GRACE,
                    "a job that starts late",
                );
                self.ask(Awaited::Started);
            }
            Action::StartHeartbeat { .. } => self.heartbeat = true,
            Action::StopHeartbeat => self.heartbeat = false,
            Action::DismissWatchdog => {
                self.must(!self.started || self.group_over, "a goodbye before the end");
                self.dismissed = true;
            }
            Action::Release { .. } => {
                self.must(self.ours && !self.lost, "a release of what is not ours");
                self.must(!self.started || self.group_over, "a release before the end");
                self.must(!self.heartbeat, "a heartbeat may follow the release");
                self.must(self.dismissed, "a watchdog of nothing");
                self.release_asked = true;
                self.ask(Awaited::Release);
            }
            Action::Finish(outcome) => self.finished(event, outcome, all, i),
        }
    }

    fn finished(&mut self, event: &Event, outcome: &Outcome, all: &[Action], i: usize) {
        self.must(self.outcome.is_none(), "a second end");
        self.must(i + 1 == all.len(), "something follows the end");
        self.must(
            !self.started || (self.leader_gone && self.group_over),
            "an end before the job's",
        );
        self.must(
            self.release_asked == (self.ours && !self.lost),
            "release exactly what is ours",
        );
        let stops = self.on_loss == OnLoss::Stop;
        let found_lost = matches!(
            event,
            Event::Release(ReleaseAnswer::Answered(
                Release::AlreadyReleased | Release::Lost(_)
            ))
        );
        match outcome {
            Outcome::AsJob { .. } => {
                self.must(!self.stopped_by_watchdog, "the job's end was not its own");
                self.must(
                    self.started && !(self.lost && stops),
                    "the job's end hides a loss",
                );
            }
            Outcome::Lost => self.must(
                self.lost || found_lost || self.starts == Starts::ComesTooLate,
                "76 without a loss",
            ),
            Outcome::Interrupted(_) => {
                self.must(
                    self.interrupted && !self.started,
                    "nobody has interrupted it",
                );
            }
            Outcome::Conflict => self.must(!self.ours, "our own lease is in the way"),
            Outcome::Unavailable => self.must(!self.started, "69 after the job"),
            Outcome::NotFound => self.must(!self.started, "127 after the job"),
            Outcome::Failed => {}
            Outcome::Granted(_) | Outcome::CannotExecute => self.fail("nobody asked for that"),
        }
        self.outcome = Some(outcome.clone());
    }

    fn heard(&mut self, report: &Report, stops: bool) {
        match report {
            Report::Lost(_) => {
                self.must(!self.lost && stops, "a loss is reported once");
                self.lost = true;
            }
            Report::LostRunningOn(_) => {
                self.must(!self.lost && !stops, "a loss is reported once");
                self.lost = true;
            }
            Report::RenewFailing(_) => {
                self.must(!self.failing, "a failure is reported once");
                self.failing = true;
            }
            Report::RenewRecovered => {
                self.must(self.failing, "nothing to recover from");
                self.failing = false;
            }
            Report::NoHeartbeat(_)
            | Report::WatchdogDied
            | Report::Unprotected(_)
            | Report::Leftovers(_)
            | Report::Waiting(_)
            | Report::ClaimFailing { .. }
            | Report::CannotClaim { .. }
            | Report::Conflict(..)
            | Report::HeldByOuterRun
            | Report::Claimed(_)
            | Report::LostBeforeUse(_)
            | Report::NotRenewedBeforeUse(_)
            | Report::TooSlow
            | Report::SlowClaim { .. }
            | Report::NotStarted(_)
            | Report::StartedTooLate
            | Report::Released
            | Report::LostBeforeEnd(..)
            | Report::NotReleased(_) => {}
            Report::Killed { .. } => {
                self.must(!self.kill_reported, "a KILL is reported once");
                self.kill_reported = true;
            }
        }
    }

    /// Lets the world take its course: the database answers, the job ends, one process stays until KILL, and from then on
    /// looks find this.
    pub(super) fn run_to_the_end(&mut self, found: Leftovers) {
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
                // The look was answered by an event of the test's own, or is asked for no more.
                self.feed(Duration::ZERO, Event::Leftovers(Leftovers::Empty));
                continue;
            };
            // A loop that was held up: the looks at the leftovers in between add nothing.
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
