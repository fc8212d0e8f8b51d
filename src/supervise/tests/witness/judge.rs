//! What must never happen, whatever the order of the events.

use super::super::GRACE;
use super::knowledge::{Awaited, Starts, Witness};
use crate::job::{OnLoss, Signal};
use crate::lease::Release;
use crate::supervise::{Action, Event, Outcome, ReleaseAnswer, Report, StartAnswer, WatchdogOrder};

impl Witness {
    /// Checks the actions that followed an event.
    pub(super) fn judge(&mut self, event: &Event, actions: &[Action], was_done: bool) {
        let stops = self.on_loss == OnLoss::Stop;
        self.must(!was_done || actions.is_empty(), "something follows the end");
        for (i, action) in actions.iter().enumerate() {
            self.see(event, action, actions, i);
        }
        if self.started && !self.dismissed && stops {
            let overdue = self.kill_due.is_some_and(|due| self.now >= due);
            // An event may begin a stop whose time is already up. It leaves the KILL to the tick that is due at once.
            let at_once = self.supervisor.next_wakeup().is_some_and(|t| t <= self.now);
            self.must(!overdue || self.killed || at_once, "KILL is overdue");
            // The child itself keeps the limit for the start: it checks the clock before it becomes the job.
            let running = *event != Event::Start(StartAnswer::Started);
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
        if let (Event::Tick, Some(next)) = (event, self.supervisor.next_wakeup()) {
            self.must(next > self.now, "a tick asks for another one at once");
        }
    }

    /// Only one request may be pending at a time.
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
                    i > 0 && matches!(all[i - 1], Action::TellWatchdog(WatchdogOrder::KillAt(_)));
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
            Action::TellWatchdog(order) | Action::ReplaceWatchdog(order) => {
                self.must(stops, "an order to a watchdog that is not there");
                match order {
                    WatchdogOrder::KillAt(due) => {
                        self.must(*due <= self.deadline, "KILL after the deadline");
                        self.must(
                            self.kill_due.is_none_or(|before| before == *due),
                            "KILL was moved",
                        );
                        self.kill_due = Some(*due);
                    }
                    WatchdogOrder::Deadline(deadline) => {
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
            Action::ShowWait { .. } => {
                self.must(!self.ours, "a wait for what is ours");
                self.shows_wait = true;
            }
            Action::EndWait => {
                self.must(self.shows_wait, "the end of no wait");
                self.shows_wait = false;
            }
            Action::Report(report) => self.heard(report, stops),
            Action::Claim { .. } => {
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
                self.must(!self.shows_wait, "a job under the line of a wait");
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
        self.must(!self.shows_wait, "a wait is shown for ever");
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
            | Report::NotEager(_)
            | Report::CannotClaim { .. }
            | Report::Conflict(..)
            | Report::NotDue(_)
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
}
