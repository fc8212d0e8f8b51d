//! From the first claim to the grant, or to the end of the wait.

use super::state::{Claiming, Phase, Supervisor};
use crate::clock::BootTime;
use crate::job::Signal;
use crate::lease::Row;
use crate::supervise::{Action, ClaimAnswer, Event, OperationFailure, Outcome, Plan, Report};
use crate::timing::{LAST_LOOK, eager_pause, poll_pause, retry_pause};

impl Claiming {
    pub(super) const fn next_wakeup(&self) -> Option<BootTime> {
        self.next_at
    }

    fn try_now(&mut self, plan: &Plan, now: BootTime, out: &mut Vec<Action>) {
        self.next_at = None;
        self.looks += 1;
        let left = self.retry_until.map(|until| until.since(now));
        let limit = match left {
            // A claim that was sent must get its answer, so the last one may take a second beyond the wait.
            Some(left) if plan.waits() => left.max(LAST_LOOK),
            Some(left) => left,
            None => plan.db_timeout,
        }
        .min(plan.db_timeout);
        self.asked_at = now;
        out.push(Action::Claim {
            limit,
            eager: self.eager,
        });
    }

    /// Sleeps, but not beyond `until`, because the last try comes at the end of the wait.
    fn try_again(&mut self, now: BootTime, pause: std::time::Duration, until: Option<BootTime>) {
        let at = now + pause;
        self.next_at = Some(until.map_or(at, |until| at.min(until)));
    }
}

impl Supervisor {
    pub(super) fn while_claiming(
        &mut self,
        mut claiming: Claiming,
        now: BootTime,
        event: Event,
        out: &mut Vec<Action>,
    ) -> Phase {
        match event {
            Event::Claim(ClaimAnswer::Granted(granted)) => {
                return self.granted(granted, now, out);
            }
            Event::Claim(ClaimAnswer::Held(row, read_at)) => {
                return self.held(claiming, row, read_at, now, out);
            }
            Event::Claim(ClaimAnswer::NotDue(success)) => {
                // This also ends a wait for the run that has now succeeded: there is nothing left to do.
                if let Some(signal) = self.interrupted {
                    return self.finish(Outcome::Interrupted(signal), out);
                }
                out.push(Action::Report(Report::NotDue(success)));
                return self.finish(Outcome::Conflict, out);
            }
            Event::Claim(ClaimAnswer::Failed(failure)) => {
                return self.claim_failed(claiming, failure, now, out);
            }
            Event::Signal(signal) if ends_a_wait(signal) => {
                self.interrupted.get_or_insert(signal);
                if claiming.next_at.is_none() {
                    // Its answer decides, because the COMMIT may have been sent.
                    out.push(Action::InterruptClaim);
                } else {
                    return self.give_up_wait(claiming, signal, out);
                }
            }
            Event::Signal(signal) | Event::TerminalWanted(signal, _) => suspend(signal, out),
            Event::Tick => {
                if claiming.next_at.is_some_and(|at| now >= at) {
                    claiming.try_now(&self.plan, now, out);
                }
            }
            // A dead watchdog is replaced when there is a job to watch.
            Event::WatchdogDied
            | Event::WatchdogTold(_)
            | Event::Unprotected(_)
            | Event::StayedAwake(_)
            | Event::Start(_)
            | Event::Release(_)
            | Event::Renewed(_)
            | Event::RenewFailed(_)
            | Event::RenewalInDoubt
            | Event::Lost(_)
            | Event::NoHeartbeat(_)
            | Event::JobExited(..)
            | Event::JobStopped(..)
            | Event::JobContinued
            | Event::Leftovers(_) => {}
        }
        Phase::Claiming(claiming)
    }

    fn held(
        &mut self,
        mut claiming: Claiming,
        row: Row,
        read_at: BootTime,
        now: BootTime,
        out: &mut Vec<Action>,
    ) -> Phase {
        claiming.is_unknown = false;
        claiming.told_failure = false;
        claiming.failure = None;
        if let Some(signal) = self.interrupted {
            return self.finish(Outcome::Interrupted(signal), out);
        }
        if row.holder().is_some() && row.holder() == self.plan.outer_holder.as_deref() {
            // That run holds the lease until this process has ended.
            out.push(Action::Report(Report::HeldByOuterRun));
            return self.finish(Outcome::Conflict, out);
        }
        if claiming.wait_until.is_some_and(|until| now >= until) {
            out.push(Action::Report(Report::Conflict(row, self.plan.wait)));
            return self.finish(Outcome::Conflict, out);
        }
        let frees_in = row.expires_in().saturating_sub(now.since(read_at));
        let holder = row.holder().map(str::to_owned);
        if claiming.told_holder.as_ref() != Some(&holder) {
            claiming.told_holder = Some(holder);
            claiming.looks = 1;
            out.push(Action::Report(Report::Waiting(row.clone())));
        }
        if !claiming
            .shown
            .as_ref()
            .is_some_and(|shown| shown.is_unchanged_in(&row))
        {
            claiming.shown = Some(row.clone());
            out.push(Action::ShowWait {
                row,
                read_at,
                since: claiming.since,
            });
        }
        let pause = if claiming.eager {
            eager_pause(now.since(claiming.asked_at), frees_in)
        } else {
            poll_pause(claiming.looks, now.since(claiming.since), frees_in)
        };
        claiming.try_again(now, pause, claiming.wait_until);
        Phase::Claiming(claiming)
    }

    fn claim_failed(
        &mut self,
        mut claiming: Claiming,
        mut failure: OperationFailure,
        now: BootTime,
        out: &mut Vec<Action>,
    ) -> Phase {
        claiming.is_unknown |= failure.is_unknown;
        failure.is_unknown = claiming.is_unknown;
        if failure.is_transient
            && let Some(signal) = self.interrupted
        {
            claiming.failure = Some(failure);
            return self.give_up_wait(claiming, signal, out);
        }
        let until = claiming.retry_until;
        let pause = retry_pause(claiming.looks);
        // Without a wait, the next try must fit into the time limit of one operation, with enough time to get an
        // answer. A try that is cut short would only replace a useful error with "no answer". A wait ends with a last
        // try.
        let ends = match until {
            None => false,
            Some(until) if self.plan.waits() => now >= until,
            Some(until) => now + pause + self.plan.db_timeout / 4 >= until,
        };
        if !failure.is_transient || ends {
            return self.cannot_claim(failure, out);
        }
        if claiming.shown.take().is_some() {
            // Nobody knows any more who holds the lease.
            out.push(Action::EndWait);
        }
        if failure.is_scarce && std::mem::take(&mut claiming.eager) {
            out.push(Action::Report(Report::NotEager(failure.message.clone())));
        } else if !claiming.told_failure {
            claiming.told_failure = true;
            out.push(Action::Report(Report::ClaimFailing {
                failure: failure.message.clone(),
                retry_for: (!self.plan.waits()).then_some(self.plan.db_timeout),
            }));
        }
        claiming.failure = Some(failure);
        claiming.try_again(now, pause, until);
        Phase::Claiming(claiming)
    }

    /// A signal has ended the wait, and no claim is under way.
    fn give_up_wait(&mut self, claiming: Claiming, signal: Signal, out: &mut Vec<Action>) -> Phase {
        match claiming.failure {
            Some(failure) if failure.is_unknown => self.cannot_claim(failure, out),
            Some(_) | None => self.finish(Outcome::Interrupted(signal), out),
        }
    }

    fn cannot_claim(&mut self, failure: OperationFailure, out: &mut Vec<Action>) -> Phase {
        out.push(Action::Report(Report::CannotClaim {
            failure: failure.message,
            is_unknown: failure.is_unknown,
        }));
        self.finish(Outcome::Unavailable, out)
    }
}

/// Whether a signal ends a wait before a job runs: TERM, INT, HUP and QUIT. By default they end a process, and people
/// and service managers use them for this.
pub(super) const fn ends_a_wait(signal: Signal) -> bool {
    matches!(
        signal,
        Signal::HUP | Signal::INT | Signal::QUIT | Signal::TERM
    )
}

/// Stops this process by a stop signal, while there is no job. If no shell could continue it, it is not stopped.
pub(super) fn suspend(signal: Signal, out: &mut Vec<Action>) {
    if matches!(signal, Signal::TSTP | Signal::TTIN | Signal::TTOU) {
        out.push(Action::StopSelf {
            signal,
            whole_group: false,
        });
    }
}
