//! The loop itself: waits for an input, has the supervisor decide, and carries its actions out.

use std::collections::VecDeque;
use std::time::Duration;

use super::database::Operation;
use super::input::Input;
use super::state::EventLoop;
use crate::clock::BootTime;
use crate::heartbeat::Beat;
use crate::output::{self, WaitLine};
use crate::process::{self, Change, StopOutcome};
use crate::signals::Caught;
use crate::store::{Applied, Failure};
use crate::supervise::{Action, Event, Outcome, Report, WatchdogOrder};
use crate::text::os_error_text;

/// The longest sleep of the loop: the channel's timeout stands still while the machine is suspended.
const SLICE: Duration = Duration::from_secs(1);
/// How long the last messages may take to be written.
const LAST_MESSAGES: Duration = Duration::from_secs(1);

impl EventLoop {
    /// Runs to the end. Must be called by the main thread, which is the one that a stop signal stops.
    pub fn run(mut self) -> Outcome {
        let outcome = self.drive();
        self.dismiss_watchdog();
        self.wait_for_the_culprit();
        self.report_the_end(&outcome);
        self.stderr.finish(LAST_MESSAGES);
        outcome
    }

    fn drive(&mut self) -> Outcome {
        let mut events = VecDeque::new();
        loop {
            let told_by = self.held_back.as_ref().map(|held| held.until);
            let wake = [self.supervisor.next_wakeup(), told_by]
                .into_iter()
                .flatten()
                .map(BootTime::remaining)
                .fold(SLICE, Duration::min);
            if let Ok(input) = self.inputs.recv_timeout(wake) {
                self.read(input, &mut events);
            }
            self.report_without_a_culprit_in_time();
            // Also where one input follows another: whatever is due must not wait for a pause between them.
            events.push_back(Event::Tick);
            while let Some(event) = events.pop_front() {
                for action in self.supervisor.handle(BootTime::now(), event) {
                    if let Some(outcome) = self.carry_out(action, &mut events) {
                        return outcome;
                    }
                }
            }
        }
    }

    fn read(&mut self, input: Input, events: &mut VecDeque<Event>) {
        match input {
            Input::Caught(caught @ Caught::Signal(signal)) => {
                events.push_back(match caught.wants_terminal() {
                    Some(_) => Event::TerminalWanted(signal, self.foreground()),
                    None => Event::Signal(signal),
                });
            }
            Input::Caught(Caught::Child) => {
                while let Some(change) = process::reap(&mut self.children) {
                    events.push_back(match change {
                        Change::JobExited(ended) => {
                            self.job_has_ended();
                            Event::JobExited(ended, self.foreground())
                        }
                        Change::JobStopped(signal) => Event::JobStopped(signal, self.foreground()),
                        Change::JobContinued => Event::JobContinued,
                        Change::WatchdogDied => Event::WatchdogDied,
                    });
                }
            }
            Input::Answer(event) => events.push_back(event),
            Input::Evicted(culprit) => self.report_held_back(culprit.as_ref()),
            Input::Beat(Beat::Renewed(granted)) => {
                let key = self.claimant.key.as_str();
                self.stderr.write(&output::renewed(key, &granted.grant));
                events.push_back(Event::Renewed(granted));
            }
            Input::Beat(Beat::Failed(failure)) => {
                if failure.applied == Applied::Unknown {
                    events.push_back(Event::RenewalInDoubt);
                }
                events.push_back(Event::RenewFailed(why_not_renewed(&failure)))
            }
            Input::Beat(Beat::Lost(loss)) => events.push_back(Event::Lost(loss)),
        }
    }

    fn carry_out(&mut self, action: Action, events: &mut VecDeque<Event>) -> Option<Outcome> {
        match action {
            Action::Claim { limit, eager } => {
                self.database.ask(Operation::Claim { limit, eager });
            }
            Action::InterruptClaim => self.database.interrupt_claim(),
            Action::Renew(term, limit) => {
                self.term = Some(term.clone());
                self.database.ask(Operation::Renew(term, limit));
            }
            Action::Release {
                term,
                hold,
                limit,
                ended,
                ours_to,
            } => self.database.ask(Operation::Release {
                term,
                hold,
                limit,
                ended,
                ours_to,
            }),
            Action::StopSelf {
                signal,
                whole_group,
            } => {
                self.stderr.pause_wait();
                if process::stop_own_group(signal, whole_group) == StopOutcome::StayedAwake {
                    events.push_back(Event::StayedAwake(signal));
                }
            }
            Action::WakeNeighbours => process::wake_own_group(),
            // The line says it, if it can be seen.
            Action::Report(Report::Waiting(_)) if self.stderr.can_show_a_wait() => {}
            Action::Report(report) => self.report(report),
            Action::ShowWait {
                row,
                read_at,
                since,
            } => self.stderr.show_wait(WaitLine {
                row,
                read_at,
                since,
            }),
            Action::EndWait => self.stderr.end_wait(),
            Action::Finish(outcome) => return Some(outcome),
            Action::ArmWatchdog(deadline) => events.push_back(self.arm_watchdog(deadline)),
            Action::StartJob { term, not_after } => self.start_job(&term, not_after, events),
            Action::StartHeartbeat { term, sent, took } => {
                self.term = Some(term.clone());
                self.start_heartbeat(term, sent, took, events);
            }
            Action::StopHeartbeat => self.stop_heartbeat(events),
            Action::Signal(signal) => self.signal_job(signal),
            Action::TellWatchdog(order) => self.tell_watchdog(order, events),
            Action::ReplaceWatchdog(order) => {
                events.extend(match (self.replace_watchdog(order), order) {
                    (Ok(()), WatchdogOrder::Deadline(at)) => Some(Event::WatchdogTold(at)),
                    (Ok(()), WatchdogOrder::KillAt(_)) => None,
                    (Err(error), _) => Some(Event::Unprotected(os_error_text(&error))),
                });
            }
            Action::DismissWatchdog => self.dismiss_watchdog(),
            Action::TakeTerminal { restore_modes } => self.take_terminal(restore_modes),
            Action::GiveTerminal => self.give_terminal(),
            Action::LookAtLeftovers => events.push_back(self.look_at_leftovers()),
        }
        None
    }
}

/// Whether the database was not there or refused is what people ask first.
fn why_not_renewed(failure: &Failure) -> String {
    if failure.is_silence() {
        format!("the database could not be reached: {failure}")
    } else {
        failure.to_string()
    }
}
