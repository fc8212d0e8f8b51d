//! What is known about a job while it, or something of it, is there.

use std::time::Duration;

use super::stop::Stop;
use super::sweep::Sweep;
use crate::clock::BootTime;
use crate::job::OnLoss;
use crate::supervise::{JobEnd, Outcome};

/// The decisions of one run, from the job's start to its end.
#[derive(Clone, Debug)]
pub(in crate::supervise::phases) struct Guarding {
    pub(super) grace: Duration,
    pub(super) on_loss: OnLoss,
    /// The deadline that the watchdog is known to have. It begins a stop by that one, whatever has been granted since.
    pub(super) deadline: BootTime,
    /// A later one that it is being told.
    pub(super) renewed: Option<BootTime>,
    pub(super) stage: Stage,
    pub(super) fate: Fate,
    /// Whether the lease is still thought to be ours. Only ever goes from true to false.
    pub(super) held: bool,
    /// The last failure of a row of failing renewals.
    pub(super) failing: Option<String>,
    /// Whether INT or QUIT was passed on from this process: the job's death by it is then no sign of a Ctrl-C that only
    /// the job saw.
    pub(super) passed_on_interrupt: bool,
    /// Whether the job's first process is stopped.
    pub(super) stopped: bool,
    /// Whether the neighbours in a pipeline have the terminal now, because they wanted it last.
    pub(super) neighbours_read: bool,
    /// Whether the next CONT is the one by which the neighbours were woken.
    pub(super) own_cont: bool,
}

impl Guarding {
    /// The job has just been started.
    pub(in crate::supervise::phases) const fn new(
        deadline: BootTime,
        grace: Duration,
        on_loss: OnLoss,
    ) -> Self {
        Self {
            grace,
            on_loss,
            deadline,
            renewed: None,
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

    /// When [`Event::Tick`](crate::supervise::Event::Tick) has to be given at the latest; `None` while nothing depends on time.
    pub(in crate::supervise::phases) fn next_wakeup(&self) -> Option<BootTime> {
        match self.stage {
            Stage::Running => self.enforces().then(|| self.deadline - self.grace),
            Stage::Stopping(stop) => (!stop.killed).then_some(stop.kill_at),
            Stage::Sweeping(sweep) => sweep.next_wakeup(),
            Stage::Done => None,
        }
    }

    pub(super) const fn is_done(&self) -> bool {
        matches!(self.stage, Stage::Done)
    }

    /// Whether a lost lease stops the job.
    pub(super) const fn enforces(&self) -> bool {
        match self.on_loss {
            OnLoss::Stop => true,
            OnLoss::Continue => false,
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Stage {
    Running,
    Stopping(Stop),
    Sweeping(Sweep),
    Done,
}

/// Why the exit is not the job's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    AsJob,
    Lost,
    Failed,
}

/// Nothing of the job is left.
#[derive(Clone, Debug)]
pub(in crate::supervise::phases) struct Finish {
    /// Whether to release the lease. False once it is lost.
    pub(in crate::supervise::phases) release: bool,
    /// How far the job had come.
    pub(in crate::supervise::phases) job_end: JobEnd,
    /// How to exit.
    pub(in crate::supervise::phases) outcome: Outcome,
}
