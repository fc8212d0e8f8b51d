//! A stop of the job, and its KILL.

use crate::clock::BootTime;
use crate::job::Signal;
use crate::supervise::{Action, Report};

/// A stop under way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stop {
    /// When KILL is due.
    pub(super) kill_at: BootTime,
    /// Whether KILL was sent.
    pub(super) killed: bool,
    /// Whether it began after the deadline. That happens if this process was stopped until now, and the watchdog has
    /// killed the job.
    pub(super) late: bool,
}

impl Stop {
    /// Sends KILL, once. It is reported unless the watchdog has killed the job already. Returns whether this call sent
    /// it.
    pub(super) fn kill(&mut self, report: Option<Report>, out: &mut Vec<Action>) -> bool {
        if self.killed {
            return false;
        }
        self.killed = true;
        out.push(Action::Signal(Signal::KILL));
        if !self.late {
            out.extend(report.map(Action::Report));
        }
        true
    }

    /// Sends KILL to a job whose first process is not reaped yet.
    pub(super) fn kill_the_job(&mut self, out: &mut Vec<Action>) {
        let report = Report::Killed {
            left: None,
            forking: false,
        };
        self.kill(Some(report), out);
    }
}
