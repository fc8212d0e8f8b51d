//! Handles one event at a time: the clock, the lease, and the stop of the job.

use super::state::{Fate, Finish, Guarding, Stage};
use super::stop::Stop;
use super::sweep::Sweep;
use crate::clock::BootTime;
use crate::job::{Ended, Foreground, Signal};
use crate::supervise::{Action, Event, Reason, Report, WatchdogOrder};

impl Guarding {
    /// Decides what to do about `event`, seen at `now`. Returns how the run ends once nothing of the job is left.
    pub(in crate::supervise::phases) fn handle(
        &mut self,
        now: BootTime,
        event: Event,
        out: &mut Vec<Action>,
    ) -> Option<Finish> {
        // Handled before the clock, which may send the KILL or request another look. This answer belongs to the earlier
        // look.
        let looked_after_kill = self.has_asked_after_kill();
        // The clock comes first. A job past its deadline must not be given the terminal, continued or signalled as if
        // nothing had happened. If a resumed `lease` finds its job dead, the watchdog has stopped it. A renewal that is
        // seen or sent to the watchdog after the time to stop is too late: the watchdog may have begun.
        self.look_at_the_clock(now, out);
        match event {
            Event::JobExited(ended, foreground) => self.job_exited(ended, foreground, out),
            Event::JobStopped(signal, foreground) => {
                self.job_stopped(signal, foreground, out);
            }
            // The CONT was meant for the job alone. If it came from the terminal's user, `lease` got the same signal.
            Event::JobContinued => self.stopped = false,
            Event::Leftovers(found) => {
                return self.leftovers(now, found, looked_after_kill, out);
            }
            Event::Renewed(renewed) => self.renewed(renewed.deadline, out),
            Event::WatchdogTold(deadline) => self.watchdog_told(deadline),
            Event::RenewFailed(message) => self.renew_failed(message, out),
            Event::Lost(loss) => self.lose(now, Reason::Over(loss), out),
            Event::NoHeartbeat(message) => self.no_heartbeat(now, message, out),
            Event::Signal(signal) => self.signal(now, signal, out),
            Event::TerminalWanted(signal, foreground) => {
                self.terminal_wanted(signal, foreground, out);
            }
            Event::StayedAwake(signal) => self.stayed_awake(signal, out),
            Event::WatchdogDied => self.watchdog_died(out),
            Event::Unprotected(message) => self.unprotected(now, message, out),
            Event::Tick
            | Event::RenewalInDoubt
            | Event::Claim(_)
            | Event::Start(_)
            | Event::Release(_) => {}
        }
        None
    }

    fn look_at_the_clock(&mut self, now: BootTime, out: &mut Vec<Action>) {
        let trusted_until = match self.stage {
            // The grace period must fit between the time to stop and the deadline.
            Stage::Running => self.deadline - self.grace,
            // A job that is being stopped already has time until its KILL, which is never after the deadline.
            Stage::Stopping(_) | Stage::Sweeping(_) => self.deadline,
            Stage::Done => return,
        };
        if self.enforces() && self.held && now >= trusted_until {
            let last = self.failing.take();
            self.lose(now, Reason::NotRenewed(last), out);
        }
        match &mut self.stage {
            Stage::Stopping(stop) if now >= stop.kill_at => stop.kill_the_job(out),
            Stage::Sweeping(sweep) => sweep.look_at_the_clock(now, out),
            Stage::Running | Stage::Stopping(_) | Stage::Done => {}
        }
    }

    /// Records that the lease is lost. This happens at most once.
    fn lose(&mut self, now: BootTime, reason: Reason, out: &mut Vec<Action>) {
        if !self.held || self.is_done() {
            return;
        }
        self.held = false;
        if self.enforces() {
            // This also applies if the job has ended by itself but left processes behind: the lease ended before all of
            // them did.
            self.fate = Fate::Lost;
            self.begin_stop(now, out);
            out.push(Action::Report(Report::Lost(reason)));
        } else {
            out.push(Action::Report(Report::LostRunningOn(reason)));
        }
    }

    /// Sends TERM and CONT, and plans the KILL for the end of the grace period. Does nothing if a stop is under way
    /// already.
    pub(super) fn begin_stop(&mut self, now: BootTime, out: &mut Vec<Action>) {
        let kill_at = if self.enforces() {
            (now + self.grace).min(self.deadline)
        } else {
            now + self.grace
        };
        let stop = Stop {
            kill_at,
            killed: false,
            late: self.enforces() && now >= self.deadline,
        };
        match &mut self.stage {
            Stage::Running => self.stage = Stage::Stopping(stop),
            Stage::Sweeping(sweep) if sweep.stop.is_none() => sweep.stop = Some(stop),
            Stage::Stopping(_) | Stage::Sweeping(_) | Stage::Done => return,
        }
        if self.enforces() {
            // Sent before the TERM: the watchdog may be about to begin its own stop, and must not send a second TERM.
            out.push(Action::TellWatchdog(WatchdogOrder::KillAt(kill_at)));
        }
        out.push(Action::Signal(Signal::TERM));
        // A stopped process acts on TERM only once it is continued.
        out.push(Action::Signal(Signal::CONT));
    }

    fn job_exited(&mut self, ended: Ended, foreground: Foreground, out: &mut Vec<Action>) {
        let stop = match self.stage {
            Stage::Running => None,
            Stage::Stopping(stop) => Some(stop),
            Stage::Sweeping(_) | Stage::Done => return,
        };
        // A job that was ended by a signal could not restore the terminal's modes. bash(1) restores them then, too.
        out.push(Action::TakeTerminal {
            restore_modes: matches!(ended, Ended::Signal(_)),
        });
        let interrupted = foreground == Foreground::Job
            && !self.passed_on_interrupt
            && matches!(ended, Ended::Signal(Signal::INT | Signal::QUIT));
        self.stage = Stage::Sweeping(Sweep::begin(ended, interrupted, stop, out));
    }

    fn renewed(&mut self, deadline: BootTime, out: &mut Vec<Action>) {
        if !self.held || self.is_done() {
            return;
        }
        // The first look at what the job has left may take long, and nothing is being stopped before its answer.
        let is_being_stopped = match self.stage {
            Stage::Running => false,
            Stage::Sweeping(sweep) => sweep.stop.is_some(),
            Stage::Stopping(_) | Stage::Done => true,
        };
        if self.enforces() && !is_being_stopped {
            self.renewed = Some(deadline);
            out.push(Action::TellWatchdog(WatchdogOrder::Deadline(deadline)));
        } else {
            // A renewal keeps the lease while the job is being stopped. It does not cancel the stop.
            self.deadline = deadline;
        }
        if self.failing.take().is_some() {
            out.push(Action::Report(Report::RenewRecovered));
        }
    }

    fn watchdog_told(&mut self, deadline: BootTime) {
        // If the lease is lost, the watchdog may have begun to stop the job before it got the new deadline.
        if self.held {
            self.deadline = deadline;
            self.renewed = None;
        }
    }

    fn renew_failed(&mut self, message: String, out: &mut Vec<Action>) {
        if !self.held || self.is_done() {
            return;
        }
        if self.failing.replace(message.clone()).is_none() {
            out.push(Action::Report(Report::RenewFailing(message)));
        }
    }
}
