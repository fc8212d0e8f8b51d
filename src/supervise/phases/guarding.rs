//! While the job, or something of it, is there.
//!
//! | stage | what it means | what ends it |
//! |---|---|---|
//! | running | the job runs and its lease is trusted | the job's end, or a reason to stop it |
//! | stopping | TERM and CONT were sent, KILL is due | the job's end |
//! | sweeping | the job is reaped; others of its group may be left | an empty group |
//! | done | nothing of the job is left | |

mod outside;

use std::time::Duration;

use libc::{SIGCONT, SIGINT, SIGKILL, SIGQUIT, SIGTERM};

use crate::clock::BootTime;
use crate::job::{Ended, Foreground, OnLoss};
use crate::supervise::{Action, Event, JobEnd, Outcome, Reason, Report, Word};

/// The first pause between two looks at the leftovers; it doubles up to [`LONGEST_LOOK`]. A group that dies at once
/// must not cost its run a noticeable time, one that takes its grace must not cost a scan of /proc every few
/// milliseconds.
const FIRST_LOOK: Duration = Duration::from_millis(2);
/// The longest pause between two looks at the leftovers.
const LONGEST_LOOK: Duration = Duration::from_millis(100);

/// A stop under way.
#[derive(Clone, Copy, Debug)]
struct Stop {
    /// When KILL is due.
    kill_at: BootTime,
    /// Whether KILL was sent.
    killed: bool,
}

/// What is left of the job after its first process.
#[derive(Clone, Copy, Debug)]
struct Sweep {
    ended: Ended,
    /// Whether the job died of a Ctrl-C or Ctrl-\ that nobody else has seen.
    interrupted: bool,
    /// The stop of what is left, or the one that the job itself was under.
    stop: Option<Stop>,
    /// When to count again; `None` while an answer is awaited.
    look_at: Option<BootTime>,
    pause: Duration,
}

#[derive(Clone, Copy, Debug)]
enum Stage {
    Running,
    Stopping(Stop),
    Sweeping(Sweep),
    Done,
}

/// Nothing of the job is left.
#[derive(Clone, Debug)]
pub(super) struct Finish {
    /// Whether to release the lease. False once it is lost.
    pub(super) release: bool,
    /// How far the job had come.
    pub(super) job_end: JobEnd,
    /// How to exit.
    pub(super) outcome: Outcome,
}

/// Why the exit is not the job's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    AsJob,
    Lost,
    Failed,
}

/// The decisions of one run, from the job's start to its end.
#[derive(Clone, Debug)]
pub(super) struct Guarding {
    grace: Duration,
    on_loss: OnLoss,
    deadline: BootTime,
    stage: Stage,
    fate: Fate,
    /// Whether the lease is still thought to be ours. Only ever goes from true to false.
    held: bool,
    /// The last failure of a row of failing renewals.
    failing: Option<String>,
    /// Whether INT or QUIT was passed on from this process: the job's death by it is then no sign of a Ctrl-C that only
    /// the job saw.
    passed_on_interrupt: bool,
    /// Whether the job's first process is stopped.
    stopped: bool,
    /// Whether the neighbours in a pipeline have the terminal now, because they wanted it last.
    neighbours_read: bool,
    /// Whether the next CONT is the one by which the neighbours were woken.
    own_cont: bool,
}

impl Guarding {
    /// The job has just been started.
    pub(super) const fn new(deadline: BootTime, grace: Duration, on_loss: OnLoss) -> Self {
        Self {
            grace,
            on_loss,
            deadline,
            stage: Stage::Running,
            fate: Fate::AsJob,
            held: true,
            failing: None,
            passed_on_interrupt: false,
            stopped: false,
            neighbours_read: false,
            own_cont: false,
        }
    }

    /// When [`Event::Tick`] has to be given at the latest; `None` while nothing depends on time.
    pub(super) fn next_wakeup(&self) -> Option<BootTime> {
        match self.stage {
            Stage::Running => self.enforces().then(|| self.deadline - self.grace),
            Stage::Stopping(stop) => (!stop.killed).then_some(stop.kill_at),
            Stage::Sweeping(sweep) => {
                let kill = sweep.stop.filter(|s| !s.killed).map(|s| s.kill_at);
                [sweep.look_at, kill].into_iter().flatten().min()
            }
            Stage::Done => None,
        }
    }

    const fn is_done(&self) -> bool {
        matches!(self.stage, Stage::Done)
    }

    /// Decides what `event`, seen at `now`, calls for. Answers how the run ends once nothing of the job is left.
    pub(super) fn handle(
        &mut self,
        now: BootTime,
        event: Event,
        out: &mut Vec<Action>,
    ) -> Option<Finish> {
        // The clock comes first: whatever is asked for, a job past its deadline is not given the terminal, continued or
        // signalled as if nothing had happened, and one found dead by a thawed `lease` was stopped by the watchdog. A
        // renewal is the one event that moves the deadline, so it is applied before the clock is looked at.
        if !matches!(event, Event::Renewed(_)) {
            self.look_at_the_clock(now, out);
        }
        match event {
            Event::JobExited(ended, foreground) => self.job_exited(ended, foreground, out),
            Event::JobStopped(signal, foreground) => {
                self.job_stopped(signal, foreground, out);
            }
            // Whoever continued it meant the job alone; if it was the terminal's user, `lease` got the same signal.
            Event::JobContinued => self.stopped = false,
            Event::Leftovers(count) => return self.leftovers(now, count, out),
            Event::Renewed(renewed) => {
                self.renewed(renewed.deadline, out);
                self.look_at_the_clock(now, out);
            }
            Event::RenewFailed(message) => self.renew_failed(message, out),
            Event::Lost(loss) => self.lose(now, Reason::Over(loss), out),
            Event::NoHeartbeat(message) => self.no_heartbeat(now, message, out),
            Event::Signal(signal) => self.signal(signal, out),
            Event::TerminalWanted(signal, foreground) => {
                self.terminal_wanted(signal, foreground, out);
            }
            Event::StayedAwake(signal) => self.stayed_awake(signal, out),
            Event::WatchdogDied => self.watchdog_died(out),
            Event::Unprotected(message) => self.unprotected(now, message, out),
            Event::Tick | Event::Claim(_) | Event::Start(_) | Event::Release(_) => {}
        }
        None
    }

    /// Whether a lost lease stops the job.
    const fn enforces(&self) -> bool {
        match self.on_loss {
            OnLoss::Stop => true,
            OnLoss::Continue => false,
        }
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
            Stage::Stopping(stop) => kill_when_due(stop, now, out),
            Stage::Sweeping(sweep) => {
                if let Some(stop) = &mut sweep.stop {
                    kill_when_due(stop, now, out);
                }
                if sweep.look_at.is_some_and(|at| now >= at) {
                    sweep.look_at = None;
                    out.push(Action::CountLeftovers);
                }
            }
            Stage::Running | Stage::Done => {}
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
    fn begin_stop(&mut self, now: BootTime, out: &mut Vec<Action>) {
        let kill_at = if self.enforces() {
            (now + self.grace).min(self.deadline)
        } else {
            now + self.grace
        };
        let stop = Stop {
            kill_at,
            killed: false,
        };
        match &mut self.stage {
            Stage::Running => self.stage = Stage::Stopping(stop),
            Stage::Sweeping(sweep) if sweep.stop.is_none() => sweep.stop = Some(stop),
            Stage::Stopping(_) | Stage::Sweeping(_) | Stage::Done => return,
        }
        if self.enforces() {
            // Before the TERM, so that the watchdog, whose own stop is about to begin, does not send another one.
            out.push(Action::TellWatchdog(Word::KillAt(kill_at)));
        }
        out.push(Action::Signal(SIGTERM));
        // A stopped process acts on TERM only once it is continued.
        out.push(Action::Signal(SIGCONT));
    }

    fn job_exited(&mut self, ended: Ended, foreground: Foreground, out: &mut Vec<Action>) {
        let stop = match self.stage {
            Stage::Running => None,
            Stage::Stopping(stop) => Some(stop),
            Stage::Sweeping(_) | Stage::Done => return,
        };
        self.stage = Stage::Sweeping(Sweep {
            ended,
            interrupted: foreground == Foreground::Job
                && !self.passed_on_interrupt
                && matches!(ended, Ended::Signal(SIGINT | SIGQUIT)),
            stop,
            look_at: None,
            pause: FIRST_LOOK,
        });
        // A job that a signal ended had no chance to set the terminal right; bash(1) does it then, too.
        out.push(Action::TakeTerminal {
            restore_modes: matches!(ended, Ended::Signal(_)),
        });
        out.push(Action::CountLeftovers);
    }

    fn leftovers(&mut self, now: BootTime, count: usize, out: &mut Vec<Action>) -> Option<Finish> {
        let Stage::Sweeping(sweep) = &mut self.stage else {
            return None;
        };
        if count == 0 {
            let sweep = *sweep;
            return Some(self.finish(sweep));
        }
        sweep.look_at = Some(now + sweep.pause);
        sweep.pause = (sweep.pause * 2).min(LONGEST_LOOK);
        match sweep.stop {
            Some(Stop { killed: true, .. }) => out.push(Action::Signal(SIGKILL)),
            Some(Stop { killed: false, .. }) => {}
            None => {
                self.begin_stop(now, out);
                out.push(Action::Report(Report::Leftovers(count)));
            }
        }
        None
    }

    fn finish(&mut self, sweep: Sweep) -> Finish {
        self.stage = Stage::Done;
        let (job_end, outcome) = match self.fate {
            Fate::AsJob => (
                JobEnd::Ended(sweep.ended),
                Outcome::AsJob {
                    ended: sweep.ended,
                    whole_group: sweep.interrupted,
                },
            ),
            Fate::Lost => (JobEnd::Stopped, Outcome::Lost),
            Fate::Failed => (JobEnd::Stopped, Outcome::Failed),
        };
        Finish {
            release: self.held,
            job_end,
            outcome,
        }
    }

    fn renewed(&mut self, deadline: BootTime, out: &mut Vec<Action>) {
        if !self.held || self.is_done() {
            return;
        }
        self.deadline = deadline;
        match self.stage {
            Stage::Running => {
                if self.enforces() {
                    out.push(Action::TellWatchdog(Word::Deadline(deadline)));
                }
            }
            // A renewal keeps the lease for as long as the stop takes; it does not take the stop back.
            Stage::Stopping(_) | Stage::Sweeping(_) | Stage::Done => {}
        }
        if self.failing.take().is_some() {
            out.push(Action::Report(Report::RenewRecovered));
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

fn kill_when_due(stop: &mut Stop, now: BootTime, out: &mut Vec<Action>) {
    if now >= stop.kill_at {
        kill_now(stop, out);
    }
}

fn kill_now(stop: &mut Stop, out: &mut Vec<Action>) {
    if !stop.killed {
        stop.killed = true;
        out.push(Action::Signal(SIGKILL));
        out.push(Action::Report(Report::Killed));
    }
}
