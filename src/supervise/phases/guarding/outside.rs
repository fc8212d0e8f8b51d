//! What comes from outside the lease: job control, signals, and the loss of a helper.

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
                // It wants the terminal, and we have it to give.
                (Signal::TTIN | Signal::TTOU, Foreground::Own) => {
                    self.neighbours_read = false;
                    out.push(Action::GiveTerminal);
                    out.push(Action::Signal(Signal::CONT));
                }
                // Job control: the shell has to see that its job has stopped.
                // As the terminal would have stopped the job's neighbours, had they been in one group with it.
                (Signal::TTIN | Signal::TTOU, Foreground::Job | Foreground::Other)
                | (Signal::TSTP, Foreground::Job) => stop_self(signal, true, out),
                // Whatever it was, the terminal's user has nobody to type to; a shell would have come back.
                (_, Foreground::Job) => stop_self(Signal::TSTP, true, out),
                // Somebody means this job, or the terminal has signalled the neighbours as well.
                (Signal::TSTP, Foreground::Own | Foreground::Other) => {
                    stop_self(signal, false, out)
                }
                // STOP comes from a person or a tool who means that process. Following it would end the heartbeats of a
                // job that is about to be continued.
                (_, Foreground::Own | Foreground::Other) => {}
            },
            // Stopped again after the CONT: it could not act on its TERM.
            Stage::Stopping(Stop { killed: false, .. }) => out.push(Action::Signal(Signal::CONT)),
            Stage::Stopping(_) | Stage::Sweeping(_) | Stage::Done => {}
        }
    }

    /// The kernel does not stop an orphaned group by TSTP, TTIN or TTOU, since nobody would continue it; a job started
    /// without `lease` would have been in that group. So the job goes on as well. One that wanted to read the terminal
    /// from the background would only be stopped again: it gets what the kernel sends to a stopped group that becomes
    /// orphaned, HUP and CONT (POSIX, _Exit()).
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

    /// Nothing renews any more, so the job could at best run until its deadline. It is stopped now, while there is time
    /// for an orderly end and a release.
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

    /// A neighbour in a pipeline (`lease run k -- job | less`) reads the terminal while the job has it, so the kernel has
    /// stopped the group, all but this process. The neighbour gets the terminal; a job that wants it too is stopped by the
    /// kernel in its turn, and gets it back.
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
            // A shell has the terminal, and has to see that its job has stopped.
            (Stage::Running, Foreground::Other) => stop_self(signal, false, out),
            // It has the terminal by now.
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
                    // The shell's `fg` has made this group the foreground one; its `bg` has not.
                    Signal::CONT if !self.neighbours_read => out.push(Action::GiveTerminal),
                    _ => {}
                }
                // What the job makes of it is the job's affair: a second INT is passed on like the first one.
                out.push(Action::Signal(signal));
                // A stopped process acts on it only once it is continued; timeout(1) does the same.
                if self.stopped && matches!(signal, Signal::TERM | Signal::HUP) {
                    out.push(Action::Signal(Signal::CONT));
                }
            }
            Stage::Stopping(stop) => match signal {
                Signal::INT | Signal::TERM => stop.kill_the_job(out),
                // It would only keep the job from ending.
                Signal::TSTP | Signal::TTIN | Signal::TTOU | Signal::STOP => {}
                _ => out.push(Action::Signal(signal)),
            },
            Stage::Sweeping(sweep) => match signal {
                Signal::INT | Signal::TERM => sweep.kill(now, out),
                // The job itself is gone; what is left is being stopped already.
                _ => {}
            },
            Stage::Done => {}
        }
    }

    /// The watchdog is there for the moment when this process can't act; without it the promise would not hold. Stopping
    /// a healthy job for it would be harsher than needed, since another one can take its place at once.
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

/// While this process is stopped nothing renews, and past the deadline the watchdog stops the job.
fn stop_self(signal: Signal, whole_group: bool, out: &mut Vec<Action>) {
    out.push(Action::TakeTerminal {
        restore_modes: false,
    });
    out.push(Action::StopSelf {
        signal,
        whole_group,
    });
}
