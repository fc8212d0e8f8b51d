//! What is known about a job from its start until nothing of it is left.

use std::time::Duration;

use super::stop::Stop;
use super::sweep::Sweep;
use crate::clock::BootTime;
use crate::job::OnLoss;
use crate::supervise::{JobEnd, Outcome};

/// The state of one run, from the start of the job until nothing of it is left.
#[derive(Clone, Debug)]
pub(in crate::supervise::phases) struct Guarding {
    pub(super) grace: Duration,
    pub(super) on_loss: OnLoss,
    /// The deadline that the watchdog is known to have. The watchdog keeps that one, even if later renewals were
    /// granted.
    pub(super) deadline: BootTime,
    /// A later deadline that is being sent to it.
    pub(super) renewed: Option<BootTime>,
    pub(super) stage: Stage,
    pub(super) fate: Fate,
    /// Whether the lease is still believed to be held. It only changes from true to false.
    pub(super) held: bool,
    /// The last failure, while renewals fail.
    pub(super) failing: Option<String>,
    /// Whether INT or QUIT was passed on by this process. If so, the job's death by it does not mean a Ctrl-C that only
    /// the job got.
    pub(super) passed_on_interrupt: bool,
    /// Whether the job's first process is stopped.
    pub(super) stopped: bool,
    /// Whether the neighbours in a pipeline have the terminal now.
    pub(super) neighbours_read: bool,
    /// Whether the next CONT is the one with which this process continued the neighbours.
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

    /// When [`Event::Tick`](crate::supervise::Event::Tick) must be given at the latest; `None` while nothing depends on
    /// time.
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

/// Why the exit code is not the job's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    AsJob,
    Lost,
    Failed,
}

/// Nothing of the job is left.
#[derive(Clone, Debug)]
pub(in crate::supervise::phases) struct Finish {
    /// Whether to release the lease; false once it is lost.
    pub(in crate::supervise::phases) release: bool,
    /// How far the job had come.
    pub(in crate::supervise::phases) job_end: JobEnd,
    /// How to exit.
    pub(in crate::supervise::phases) outcome: Outcome,
}
