//! One event at a time: the clock, the lease, and the stop of the job.

use super::state::{Fate, Finish, Guarding, Stage};
use super::stop::Stop;
use super::sweep::Sweep;
use crate::clock::BootTime;
use crate::job::{Ended, Foreground, Signal};
use crate::supervise::{Action, Event, Reason, Report, WatchdogOrder};

impl Guarding {
    /// Decides what `event`, seen at `now`, calls for. Answers how the run ends once nothing of the job is left.
    pub(in crate::supervise::phases) fn handle(
        &mut self,
        now: BootTime,
        event: Event,
        out: &mut Vec<Action>,
    ) -> Option<Finish> {
        // Before the clock, which may send the KILL or ask for another look: an answer is one to the look before that.
        let looked_after_kill = self.has_asked_after_kill();
        // The clock comes first: whatever is asked for, a job past its deadline is not given the terminal, continued or
        // signalled as if nothing had happened, and one found dead by a thawed `lease` was stopped by the watchdog. A
        // renewal that is seen, or passed on, after the time to stop has come is too late: the watchdog may have begun.
        self.look_at_the_clock(now, out);
        match event {
            Event::JobExited(ended, foreground) => self.job_exited(ended, foreground, out),
            Event::JobStopped(signal, foreground) => {
                self.job_stopped(signal, foreground, out);
            }
            // Whoever continued it meant the job alone; if it was the terminal's user, `lease` got the same signal.
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
            // The grace has to fit between the last moment of trust and the deadline.
            Stage::Running => self.deadline - self.grace,
            // What is being stopped already has until its KILL, which is never after the deadline.
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

    /// The lease is no longer ours: once, and for good.
    fn lose(&mut self, now: BootTime, reason: Reason, out: &mut Vec<Action>) {
        if !self.held || self.is_done() {
            return;
        }
        self.held = false;
        if self.enforces() {
            // Also where the job has ended by itself but left others behind: its lease ended before all of it did.
            self.fate = Fate::Lost;
            self.begin_stop(now, out);
            out.push(Action::Report(Report::Lost(reason)));
        } else {
            out.push(Action::Report(Report::LostRunningOn(reason)));
        }
    }

    /// TERM, CONT, and KILL at the end of the grace; nothing if that is under way already.
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
            // Before the TERM, so that the watchdog, whose own stop is about to begin, does not send another one.
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
        // A job that a signal ended had no chance to set the terminal right; bash(1) does it then, too.
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
        // A first look at what the job has left may take long, and nothing is being stopped before its answer.
        let is_being_stopped = match self.stage {
            Stage::Running => false,
            Stage::Sweeping(sweep) => sweep.stop.is_some(),
            Stage::Stopping(_) | Stage::Done => true,
        };
        if self.enforces() && !is_being_stopped {
            self.renewed = Some(deadline);
            out.push(Action::TellWatchdog(WatchdogOrder::Deadline(deadline)));
        } else {
            // A renewal keeps the lease for as long as the stop takes; it does not take the stop back.
            self.deadline = deadline;
        }
        if self.failing.take().is_some() {
            out.push(Action::Report(Report::RenewRecovered));
        }
    }

    fn watchdog_told(&mut self, deadline: BootTime) {
        // If it is lost, the watchdog may have begun to stop the job before it was told.
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
