//! What a run needs in addition to its claim.

use std::ffi::OsString;
use std::io;
use std::time::Duration;

use crate::clock::BootTime;
use crate::heartbeat::Heartbeat;
use crate::job::OnLoss;
use crate::output;
use crate::process::{Job, Terminal};
use crate::supervise::Reason;
use crate::text::PreparedLine;
use crate::timing::Timing;
use crate::watchdog::Watchdog;

/// The command, its limits, and what belongs to the running job.
pub struct JobControl {
    pub(super) command: Vec<OsString>,
    pub(super) timing: Timing,
    pub(super) on_loss: OnLoss,
    pub(super) watchdog: Option<Watchdog>,
    /// The message of a watchdog after it has stopped the job.
    pub(super) watchdog_line: PreparedLine,
    pub(super) terminal: Option<Terminal>,
    pub(super) job: Option<Job>,
    pub(super) heartbeat: Option<Heartbeat>,
    /// When the job was started.
    pub(super) started: Option<BootTime>,
    /// How long its first process ran.
    pub(super) took: Option<Duration>,
    /// Why it was stopped, if that was for its lease.
    pub(super) loss: Option<Reason>,
    /// Whether the message that the job can't be signalled was written.
    pub(super) out_of_reach: bool,
}

impl JobControl {
    /// Forks the watchdog, if a lost lease stops the job. This must come first in the process, while there is one thread
    /// and no connection that the watchdog could inherit.
    ///
    /// # Errors
    /// When the watchdog can't be started.
    pub fn new(
        key: &str,
        command: Vec<OsString>,
        timing: Timing,
        on_loss: OnLoss,
    ) -> io::Result<Self> {
        let watchdog_line = output::watchdog_line(key);
        let watchdog = match on_loss {
            OnLoss::Stop => Some(Watchdog::start(timing.grace(), &watchdog_line)?),
            OnLoss::Continue => None,
        };
        Ok(Self {
            command,
            timing,
            on_loss,
            watchdog,
            watchdog_line,
            terminal: None,
            job: None,
            heartbeat: None,
            started: None,
            took: None,
            loss: None,
            out_of_reach: false,
        })
    }

    pub(super) fn watchdog_pid(&self) -> Option<libc::pid_t> {
        self.watchdog.as_ref().map(Watchdog::pid)
    }
}
