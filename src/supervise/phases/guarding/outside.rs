//! Events that do not concern the lease: job control, signals, and the loss of the heartbeat or the watchdog.

use super::state::{Fate, Guarding, Stage};
use super::stop::Stop;
use crate::clock::BootTime;
use crate::job::{Foreground, Signal};
use crate::supervise::{Action, Report, WatchdogOrder};

impl Guarding {
    pub(super) fn job_stopped(
        &mut self,
        signal: Signal,
        foreground: Foreground,
        out: &mut Vec<Action>,
    ) {
        self.stopped = true;
        match self.stage {
            Stage::Running => match (signal, foreground) {
                // It tried to use the terminal, and this process can give it.
                (Signal::TTIN | Signal::TTOU, Foreground::Own) => {
                    self.neighbours_read = false;
                    out.push(Action::GiveTerminal);
                    out.push(Action::Signal(Signal::CONT));
                }
                // Job control: the shell must see that its job has stopped. The terminal would have stopped the job's
                // neighbours too if they were in the same group.
                (Signal::TTIN | Signal::TTOU, Foreground::Job | Foreground::Other)
                | (Signal::TSTP, Foreground::Job) => stop_self(signal, true, out),
                // Whatever the signal was, nothing reads what the user types. Without `lease`, the shell would have
                // taken the terminal back.
                (_, Foreground::Job) => stop_self(Signal::TSTP, true, out),
                // The signal was sent to this job alone, or the terminal has signalled the neighbours as well.
                (Signal::TSTP, Foreground::Own | Foreground::Other) => {
                    stop_self(signal, false, out)
                }
                // A person or a tool has sent STOP to that process alone. If this process stopped too, the heartbeats
                // would end, although the job is about to be continued.
                (_, Foreground::Own | Foreground::Other) => {}
            },
            // It was stopped again after the CONT, so it could not act on its TERM.
            Stage::Stopping(Stop { killed: false, .. }) => out.push(Action::Signal(Signal::CONT)),
            Stage::Stopping(_) | Stage::Sweeping(_) | Stage::Done => {}
        }
    }

    /// The kernel does not stop an orphaned group by TSTP, TTIN or TTOU, because no shell would continue it. Without
    /// `lease`, the job would be in that group. So the job is continued. A job that tried to read the terminal from the
    /// background would only be stopped again. It gets HUP and CONT, which the kernel sends to a stopped group that
    /// becomes orphaned (POSIX, _Exit()).
    pub(super) fn stayed_awake(&mut self, signal: Signal, out: &mut Vec<Action>) {
        match self.stage {
            Stage::Running => {
                out.push(Action::GiveTerminal);
                if matches!(signal, Signal::TTIN | Signal::TTOU) {
                    out.push(Action::Signal(Signal::HUP));
                }
                out.push(Action::Signal(Signal::CONT));
            }
            Stage::Stopping(_) | Stage::Sweeping(_) | Stage::Done => {}
        }
    }

    /// The lease can no longer be renewed, so the job could at best run until its deadline. It is stopped now, while
    /// there is time for an orderly end and a release.
    pub(super) fn no_heartbeat(&mut self, now: BootTime, message: String, out: &mut Vec<Action>) {
        match self.stage {
            Stage::Running if self.enforces() => {
                self.fate = Fate::Failed;
                self.begin_stop(now, out);
                out.push(Action::Report(Report::NoHeartbeat(message)));
            }
            Stage::Running if self.held => out.push(Action::Report(Report::NoHeartbeat(message))),
            Stage::Running | Stage::Stopping(_) | Stage::Sweeping(_) | Stage::Done => {}
        }
    }

    /// A neighbour in a pipeline (`lease run k -- job | less`) has tried to read the terminal while the job has it. So
    /// the kernel has stopped the group, except this process. The neighbour gets the terminal. If the job tries to use
    /// it then, the kernel stops the job, and the job gets it back.
    pub(super) fn terminal_wanted(
        &mut self,
        signal: Signal,
        foreground: Foreground,
        out: &mut Vec<Action>,
    ) {
        match (self.stage, foreground) {
            (Stage::Running, Foreground::Job) => {
                self.neighbours_read = true;
                self.own_cont = true;
                out.push(Action::TakeTerminal {
                    restore_modes: false,
                });
                out.push(Action::WakeNeighbours);
            }
            // A shell has the terminal, and must see that its job has stopped.
            (Stage::Running, Foreground::Other) => stop_self(signal, false, out),
            // This process has the terminal by now.
            (Stage::Running, Foreground::Own) => {}
            (Stage::Stopping(_) | Stage::Sweeping(_) | Stage::Done, _) => {}
        }
    }

    pub(super) fn signal(&mut self, now: BootTime, signal: Signal, out: &mut Vec<Action>) {
        if signal == Signal::CONT && std::mem::take(&mut self.own_cont) {
            return;
        }
        match &mut self.stage {
            Stage::Running => {
                match signal {
                    Signal::INT | Signal::QUIT => self.passed_on_interrupt = true,
                    // The shell's `fg` puts this group in the foreground; its `bg` does not.
                    Signal::CONT if !self.neighbours_read => out.push(Action::GiveTerminal),
                    _ => {}
                }
                // The job decides what to do about it. A second INT is passed on like the first one.
                out.push(Action::Signal(signal));
                // A stopped process acts on it only once it is continued. timeout(1) does the same.
                if self.stopped && matches!(signal, Signal::TERM | Signal::HUP) {
                    out.push(Action::Signal(Signal::CONT));
                }
            }
            Stage::Stopping(stop) => match signal {
                Signal::INT | Signal::TERM => stop.kill_the_job(out),
                // It is not passed on, because it would only keep the job from ending.
                Signal::TSTP | Signal::TTIN | Signal::TTOU | Signal::STOP => {}
                _ => out.push(Action::Signal(signal)),
            },
            Stage::Sweeping(sweep) => match signal {
                Signal::INT | Signal::TERM => sweep.kill(now, out),
                // The job itself has ended, and what is left is being stopped already.
                _ => {}
            },
            Stage::Done => {}
        }
    }

    /// Without a watchdog, nothing stops the job if this process cannot act. A new one is started at once. Stopping a
    /// healthy job instead would be harsher than needed.
    pub(super) fn watchdog_died(&mut self, out: &mut Vec<Action>) {
        if !self.enforces() {
            return;
        }
        let stop = match self.stage {
            Stage::Running => None,
            Stage::Stopping(stop) => Some(stop),
            Stage::Sweeping(sweep) => sweep.stop,
            Stage::Done => return,
        };
        let deadline = self.renewed.unwrap_or(self.deadline);
        let order = stop.map_or(WatchdogOrder::Deadline(deadline), |s| {
            WatchdogOrder::KillAt(s.kill_at)
        });
        out.push(Action::ReplaceWatchdog(order));
        out.push(Action::Report(Report::WatchdogDied));
    }

    pub(super) fn unprotected(&mut self, now: BootTime, message: String, out: &mut Vec<Action>) {
        match self.stage {
            Stage::Running if self.enforces() => {
                self.fate = Fate::Failed;
                self.begin_stop(now, out);
                out.push(Action::Report(Report::Unprotected(message)));
            }
            Stage::Running | Stage::Stopping(_) | Stage::Sweeping(_) | Stage::Done => {}
        }
    }
}

/// While this process is stopped, the lease is not renewed, and at the deadline the watchdog stops the job.
fn stop_self(signal: Signal, whole_group: bool, out: &mut Vec<Action>) {
    out.push(Action::TakeTerminal {
        restore_modes: false,
    });
    out.push(Action::StopSelf {
        signal,
        whole_group,
    });
}
