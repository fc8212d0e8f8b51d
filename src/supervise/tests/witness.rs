//! One run, watched from the outside: after each event, and at its end, what must never happen is looked for.

use std::time::Duration;

use libc::{SIGCONT, SIGKILL, SIGTERM};

use super::super::{Action, Event, Finish, Report, RunExit, Supervisor, Word};
use super::{GRACE, TTL, at, supervisor};
use crate::clock::BootTime;
use crate::job::{Ended, Foreground, OnLoss};
use crate::lease::Loss;

/// A run, and what is known about it from the outside.
#[derive(Clone)]
pub(super) struct Witness {
    on_loss: OnLoss,
    supervisor: Supervisor,
    pub(super) now: BootTime,
    deadline: BootTime,
    leader_gone: bool,
    group_empty: bool,
    own_terms: u32,
    kill_due: Option<BootTime>,
    killed: bool,
    kill_reported: bool,
    lost: bool,
    failing: bool,
    finish: Option<Finish>,
    history: Vec<(BootTime, Event, Vec<Action>)>,
}

impl Witness {
    pub(super) fn new(on_loss: OnLoss) -> Self {
        Self {
            on_loss,
            supervisor: supervisor(on_loss),
            now: at(0),
            deadline: at(0) + TTL,
            leader_gone: false,
            group_empty: false,
            own_terms: 0,
            kill_due: None,
            killed: false,
            kill_reported: false,
            lost: false,
            failing: false,
            finish: None,
            history: Vec::new(),
        }
    }

    fn fail(&self, what: &str) -> ! {
        panic!("{what}\n{:?}\n{:#?}", self.on_loss, self.history)
    }

    fn must(&self, holds: bool, what: &str) {
        if !holds {
            self.fail(what);
        }
    }

    pub(super) fn feed(&mut self, step: Duration, event: Event) {
        self.now = self.now + step;
        let stops = self.on_loss == OnLoss::Stop;
        if let Event::Renewed(deadline) = event
            && !self.lost
        {
            self.deadline = deadline;
        }
        #[expect(
            clippy::wildcard_enum_match_arm,
            reason = "these two are about the job's end"
        )]
        match event {
            Event::JobExited(..) => self.leader_gone = true,
            Event::Leftovers(0) if self.leader_gone => self.group_empty = true,
            Event::Leftovers(_) => self.group_empty = false,
            _ => {}
        }
        let was_done = self.supervisor.is_done();
        let actions = self.supervisor.handle(self.now, event.clone());
        self.history
            .push((self.now, event.clone(), actions.clone()));
        self.must(!was_done || actions.is_empty(), "something follows the end");
        for (i, action) in actions.iter().enumerate() {
            self.see(&event, action, &actions, i);
        }
        if self.finish.is_none() && stops {
            let overdue = self.kill_due.is_some_and(|due| self.now >= due);
            // The events that begin a stop whose time is up already leave the KILL to the tick that is due at once.
            let at_once = self.supervisor.next_wakeup().is_some_and(|t| t <= self.now);
            self.must(!overdue || self.killed || at_once, "KILL is overdue");
            let untrusted = self.now >= self.deadline - GRACE;
            self.must(
                !untrusted || self.leader_gone || self.kill_due.is_some(),
                "the job works on without a lease",
            );
            self.must(
                self.now < self.deadline || self.lost,
                "the lease is trusted past its deadline",
            );
        }
        if let (Event::Tick, Some(next)) = (&event, self.supervisor.next_wakeup()) {
            self.must(next > self.now, "a tick asks for another one at once");
        }
    }

    fn see(&mut self, event: &Event, action: &Action, all: &[Action], i: usize) {
        let stops = self.on_loss == OnLoss::Stop;
        let stopping = self.own_terms > 0;
        match action {
            Action::Signal(SIGTERM) => {
                let announced =
                    i > 0 && matches!(all[i - 1], Action::TellWatchdog(Word::KillAt(_)));
                let own = announced || (!stops && matches!(event, Event::Leftovers(_)));
                if own {
                    self.own_terms += 1;
                    self.must(self.own_terms == 1, "a second TERM");
                    self.must(
                        all.get(i + 1) == Some(&Action::Signal(SIGCONT)),
                        "TERM without CONT",
                    );
                } else {
                    self.must(!stopping, "TERM is passed on into a stop");
                    self.must(*event == Event::Signal(SIGTERM), "TERM out of nowhere");
                }
            }
            Action::Signal(SIGKILL) => {
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
                    Word::Deadline(_) => self.must(!stopping, "a stop is taken back"),
                }
            }
            Action::GiveTerminal | Action::StopSelf { .. } | Action::WakeNeighbours => {
                self.must(!stopping, "job control for a job that should end");
                self.must(!self.leader_gone, "job control for a dead job");
            }
            Action::TakeTerminal { .. } => {}
            Action::CountLeftovers => self.must(self.leader_gone, "leftovers of a live job"),
            Action::Report(report) => self.heard(report, stops),
            Action::Finish(finish) => {
                self.must(self.finish.is_none(), "a second end");
                self.must(self.leader_gone, "an end before the job's");
                self.must(self.group_empty, "an end before the group's");
                self.must(i + 1 == all.len(), "something follows the end");
                self.must(finish.release != self.lost, "release exactly what is ours");
                let exit_is_lost = finish.exit == RunExit::Lost;
                self.must(exit_is_lost == (self.lost && stops), "76 exactly on a loss");
                self.finish = Some(*finish);
            }
        }
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
            Report::HeartbeatDied
            | Report::WatchdogDied
            | Report::Unprotected(_)
            | Report::Leftovers(_) => {}
            Report::Killed => {
                self.must(!self.kill_reported, "a KILL is reported once");
                self.kill_reported = true;
            }
        }
    }

    /// Lets the world take its course: the job ends, one process stays until KILL, and then the group is empty.
    pub(super) fn run_to_the_end(&mut self) {
        if !self.leader_gone {
            let end = Event::JobExited(Ended::Code(3), Foreground::Other);
            self.feed(Duration::ZERO, end);
        }
        for _ in 0..20 {
            if self.finish.is_some() {
                self.feed(TTL * 9, Event::Tick);
                self.feed(TTL, Event::Lost(Loss::NoRow));
                return;
            }
            let counts = |actions: &[Action]| actions.contains(&Action::CountLeftovers);
            let asked = self.history.last().is_some_and(|(_, _, a)| counts(a));
            if asked {
                let left = usize::from(!self.killed);
                self.feed(Duration::ZERO, Event::Leftovers(left));
                continue;
            }
            let Some(next) = self.supervisor.next_wakeup() else {
                // The count was answered by an event of the test's own, or is asked for no more.
                self.feed(Duration::ZERO, Event::Leftovers(0));
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
