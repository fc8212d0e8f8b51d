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
    /// Whether it began when the job had to be dead already. Then the watchdog has killed it, and not this process, which
    /// was stopped until now.
    pub(super) late: bool,
}

impl Stop {
    /// KILL, once, and what is said about it. Answers whether this was the time.
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

    /// KILL for a job whose first process is not reaped yet.
    pub(super) fn kill_the_job(&mut self, out: &mut Vec<Action>) {
        let report = Report::Killed {
            left: None,
            forking: false,
        };
        self.kill(Some(report), out);
    }
}
