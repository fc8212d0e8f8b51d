//! While the job runs: events in, actions out.

use std::collections::VecDeque;
use std::sync::mpsc::RecvTimeoutError;

use super::{Guard, Running, SLICE};
use crate::acquire::Input;
use crate::clock::BootTime;
use crate::heartbeat::Beat;
use crate::output;
use crate::process::{self, Change, StopOutcome};
use crate::signals::Caught;
use crate::store::Failure;
use crate::supervise::{Action, Event, Finish, Report};

impl Guard {
    /// Feeds events in and carries actions out until nothing of the job is left.
    pub(super) fn supervise(&mut self, running: &mut Running) -> Finish {
        loop {
            let wake = running
                .supervisor
                .next_wakeup()
                .map_or(SLICE, |at| at.remaining().min(SLICE));
            let mut events = VecDeque::new();
            match self.inputs.recv_timeout(wake) {
                Ok(input) => self.read(input, running, &mut events),
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
                    events.push_back(Event::Tick)
                }
            }
            while let Some(event) = events.pop_front() {
                for action in running.supervisor.handle(BootTime::now(), event) {
                    if let Some(finish) = self.carry_out(action, running, &mut events) {
                        return finish;
                    }
                }
            }
        }
    }

    fn read(&mut self, input: Input, running: &mut Running, events: &mut VecDeque<Event>) {
        match input {
            Input::Caught(caught @ Caught::Signal(signal)) => {
                events.push_back(match caught.wants_terminal() {
                    Some(_) => Event::TerminalWanted(signal, running.foreground()),
                    None => Event::Signal(signal),
                });
            }
            Input::Caught(Caught::Child) => {
                while let Some(change) = process::reap(&mut self.children) {
                    events.push_back(match change {
                        Change::JobExited(ended) => Event::JobExited(ended, running.foreground()),
                        Change::JobStopped(signal) => {
                            Event::JobStopped(signal, running.foreground())
                        }
                        Change::JobContinued => Event::JobContinued,
                        Change::WatchdogDied => Event::WatchdogDied,
                    });
                }
            }
            Input::Beat(Beat::Renewed { at, expires_at }) => {
                self.speaker.step(format!(
                    "renewed {} until {expires_at}",
                    running.lease.key.as_str()
                ));
                running.expires_at = expires_at;
                running.stays_until = BootTime::now() + self.timing.ttl().get();
                events.push_back(Event::Renewed(self.timing.deadline(at)));
            }
            Input::Beat(Beat::Failed(failure)) => {
                events.push_back(Event::RenewFailed(why_not_renewed(&failure)));
            }
            Input::Beat(Beat::Lost(loss)) => events.push_back(Event::Lost(loss)),
            Input::Beat(Beat::Died) => events.push_back(Event::HeartbeatDied),
            Input::Waiting(_) | Input::Acquired(_) => {}
        }
    }

    fn carry_out(
        &mut self,
        action: Action,
        running: &mut Running,
        events: &mut VecDeque<Event>,
    ) -> Option<Finish> {
        match action {
            Action::Signal(signal) => {
                if signal == libc::SIGTERM {
                    // A job that the watchdog had stopped before this process woke up is not killed by it.
                    running.was_there_to_stop = running.job.group().count() > 0;
                }
                if let Err(error) = running.job.group().signal(signal)
                    && error.raw_os_error() == Some(libc::EPERM)
                    && !running.out_of_reach
                {
                    running.out_of_reach = true;
                    self.speaker.error(format!("the job of {} can't be signalled: it runs as another user, so lease can't stop it", running.lease.key.as_str()));
                }
            }
            Action::TellWatchdog(word) => {
                let told = self.watchdog.as_mut().map(|w| w.tell(word));
                if !matches!(told, Some(Ok(()))) {
                    events.push_back(Event::WatchdogDied);
                }
            }
            Action::ReplaceWatchdog(word) => {
                if let Err(error) = self.replace_watchdog(Some(&running.job), word) {
                    events.push_back(Event::Unprotected(output::io_error(&error)));
                }
            }
            Action::TakeTerminal { restore_modes } => {
                if let Some(terminal) = &running.terminal {
                    terminal.take_back(restore_modes);
                }
            }
            Action::GiveTerminal => {
                if let Some(terminal) = &mut running.terminal {
                    terminal.give();
                }
            }
            Action::StopSelf {
                signal,
                whole_group,
            } => {
                if process::stop_own_group(signal, whole_group) == StopOutcome::StayedAwake {
                    events.push_back(Event::StayedAwake(signal));
                }
            }
            Action::WakeNeighbours => process::wake_own_group(),
            Action::CountLeftovers => {
                events.push_back(Event::Leftovers(running.job.group().count()))
            }
            Action::Report(Report::Killed) if !running.was_there_to_stop => {}
            Action::Report(report) => {
                let (words, always) = output::report(&report, running.lease.key.as_str());
                if always {
                    self.speaker.error(words)
                } else {
                    self.speaker.info(words)
                }
            }
            Action::Finish(finish) => return Some(finish),
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
