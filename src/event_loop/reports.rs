//! What the loop tells people, and the one thing that it looks up for it: who has evicted the holder.

use super::input::Input;
use super::state::{EventLoop, HeldBack};
use crate::clock::BootTime;
use crate::lease::Loss;
use crate::output;
use crate::record::Culprit;
use crate::supervise::{Outcome, Reason, Report};
use crate::timing::EVICTION_LOOK;

impl EventLoop {
    /// Writes a report. One about a term that somebody may have ended is held back until the history has told who it was,
    /// and those after it as well: by then the job is being stopped, or has ended.
    pub(super) fn report(&mut self, report: Report) {
        if let Report::Claimed(grant) = &report {
            output::log_fence(grant.term.fence);
        }
        if let (Report::Lost(reason), Some(control)) = (&report, &mut self.job) {
            control.loss = Some(reason.clone());
        }
        if let Some(held) = &mut self.held_back {
            held.reports.push(report);
            return;
        }
        match (&self.term, loss(&report)) {
            (Some(term), Some(loss)) if loss.may_be_an_eviction() => {
                self.database.ask_who_evicted(term.clone());
                self.held_back = Some(HeldBack {
                    until: BootTime::now() + EVICTION_LOOK,
                    reports: vec![report],
                });
            }
            (Some(_) | None, _) => self.write(&report, None),
        }
    }

    /// Writes the reports that were held back.
    pub(super) fn report_held_back(&mut self, culprit: Option<&Culprit>) {
        for report in self.held_back.take().into_iter().flat_map(|h| h.reports) {
            self.write(&report, culprit);
        }
    }

    /// Writes the reports that were held back for long enough.
    pub(super) fn report_without_a_culprit_in_time(&mut self) {
        if self
            .held_back
            .as_ref()
            .is_some_and(|h| h.until.has_passed())
        {
            self.report_held_back(None);
        }
    }

    /// Writes the reports that are held back still, at the end. Nothing is left of the job, and nobody waits for its lease.
    pub(super) fn wait_for_the_culprit(&mut self) {
        while let Some(held) = &self.held_back {
            match self.inputs.recv_timeout(held.until.remaining()) {
                Ok(Input::Evicted(culprit)) => self.report_held_back(culprit.as_ref()),
                Ok(Input::Caught(_) | Input::Answer(_) | Input::Beat(_)) => {
                    self.report_without_a_culprit_in_time();
                }
                Err(_) => self.report_held_back(None),
            }
        }
    }

    /// Says how the job of a run ended.
    pub(super) fn report_the_end(&self, outcome: &Outcome) {
        let Some(control) = &self.job else { return };
        self.stderr.write(&output::run_ended(
            self.claimant.key.as_str(),
            self.supervisor.job_end(),
            control.took.unwrap_or_default(),
            control.loss.as_ref(),
            outcome,
        ));
    }

    fn write(&self, report: &Report, culprit: Option<&Culprit>) {
        let key = self.claimant.key.as_str();
        self.stderr
            .write(&output::report(report, key, &self.plan, culprit));
    }
}

/// The loss that a report is about, as the database has told it.
const fn loss(report: &Report) -> Option<&Loss> {
    match report {
        Report::LostBeforeUse(loss)
        | Report::LostBeforeEnd(loss, _)
        | Report::Lost(Reason::Over(loss))
        | Report::LostRunningOn(Reason::Over(loss)) => Some(loss),
        Report::Lost(Reason::NotRenewed(_))
        | Report::LostRunningOn(Reason::NotRenewed(_))
        | Report::Waiting(_)
        | Report::ClaimFailing { .. }
        | Report::NotEager(_)
        | Report::CannotClaim { .. }
        | Report::Conflict(..)
        | Report::NotDue(_)
        | Report::HeldByOuterRun
        | Report::Claimed(_)
        | Report::SlowClaim { .. }
        | Report::NotRenewedBeforeUse(_)
        | Report::TooSlow
        | Report::NotStarted(_)
        | Report::StartedTooLate
        | Report::RenewFailing(_)
        | Report::RenewRecovered
        | Report::NoHeartbeat(_)
        | Report::WatchdogDied
        | Report::Unprotected(_)
        | Report::Leftovers(_)
        | Report::Killed { .. }
        | Report::Released
        | Report::NotReleased(_) => None,
    }
}
