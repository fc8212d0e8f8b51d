//! After the end of the job's first process: what it has left in its group, until nothing of that acts any more.

use std::time::Duration;

use super::stop::Stop;
use crate::clock::BootTime;
use crate::job::{Ended, Leftovers};
use crate::supervise::{Action, Report};

/// The first pause between two looks at the leftovers. It doubles up to [`LONGEST_LOOK`]. A group that dies at once
/// must not delay the run noticeably. A group that needs its grace period must not cost a scan of /proc every few
/// milliseconds.
const FIRST_LOOK: Duration = Duration::from_millis(2);
/// The longest pause between two looks at the leftovers.
const LONGEST_LOOK: Duration = Duration::from_millis(100);
/// How long the looks after the KILL must find no live process, if one look is not a proof.
const SETTLED: Duration = Duration::from_secs(1);

/// What is known about the next look.
#[derive(Clone, Copy, Debug)]
enum Look {
    Due(BootTime),
    /// The answer is awaited. Only a look that was requested after the KILL can prove anything.
    Asked {
        after_kill: bool,
    },
}

/// What is left of the job after the end of its first process.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sweep {
    pub(super) ended: Ended,
    /// Whether the job died of a Ctrl-C or Ctrl-\ that only the job got.
    pub(super) interrupted: bool,
    /// The stop of what is left, or the stop that began while the job still ran.
    pub(super) stop: Option<Stop>,
    look: Look,
    pause: Duration,
    /// The last answer.
    pub(super) found: Option<Leftovers>,
    /// Since when the looks after the KILL have found no live process, if that is not a proof.
    nobody_since: Option<BootTime>,
    /// The newest process of the first look that found any.
    first_newest: Option<u64>,
    /// Whether a later look found a newer one.
    forking: bool,
    /// Whether the leftovers need no further message: they were reported, or the job itself was being stopped.
    reported: bool,
}

impl Sweep {
    /// Begins after the job's first process is reaped: requests the first look.
    pub(super) fn begin(
        ended: Ended,
        interrupted: bool,
        stop: Option<Stop>,
        out: &mut Vec<Action>,
    ) -> Self {
        let mut sweep = Self {
            ended,
            interrupted,
            stop,
            look: Look::Asked { after_kill: false },
            pause: FIRST_LOOK,
            found: None,
            nobody_since: None,
            first_newest: None,
            forking: false,
            reported: stop.is_some(),
        };
        sweep.ask(out);
        sweep
    }

    /// When the clock must be checked again.
    pub(super) fn next_wakeup(&self) -> Option<BootTime> {
        let kill = self.stop.filter(|s| !s.killed).map(|s| s.kill_at);
        let look = match self.look {
            Look::Due(at) => Some(at),
            Look::Asked { .. } => None,
        };
        [look, kill].into_iter().flatten().min()
    }

    pub(super) fn look_at_the_clock(&mut self, now: BootTime, out: &mut Vec<Action>) {
        if self.stop.is_some_and(|stop| now >= stop.kill_at) {
            self.kill(now, out);
        }
        if matches!(self.look, Look::Due(at) if now >= at) {
            self.ask(out);
        }
    }

    fn ask(&mut self, out: &mut Vec<Action>) {
        self.look = Look::Asked {
            after_kill: self.is_killed(),
        };
        out.push(Action::LookAtLeftovers);
    }

    /// Whether the pending look was requested after the KILL.
    pub(super) const fn has_asked_after_kill(&self) -> bool {
        matches!(self.look, Look::Asked { after_kill: true })
    }

    pub(super) fn is_killed(&self) -> bool {
        self.stop.is_some_and(|stop| stop.killed)
    }

    /// Sends KILL, if a stop is under way and none was sent yet. It is reported unless it cannot have reached a live
    /// process.
    pub(super) fn kill(&mut self, now: BootTime, out: &mut Vec<Action>) {
        let Some(stop) = &mut self.stop else { return };
        let left = match self.found {
            Some(Leftovers::Alive { count, .. }) => Some(count),
            Some(Leftovers::Empty | Leftovers::OnlyZombies { .. } | Leftovers::Unknown { .. })
            | None => None,
        };
        let nobody = matches!(
            self.found,
            Some(Leftovers::Empty | Leftovers::OnlyZombies { .. })
        );
        let forking = self.forking;
        let report = (!nobody).then_some(Report::Killed { left, forking });
        if !stop.kill(report, out) {
            return;
        }
        self.pause = FIRST_LOOK;
        if let Look::Due(at) = self.look {
            self.look = Look::Due(at.min(now + FIRST_LOOK));
        }
    }

    /// Whether this answer proves that nothing of the group acts any more. It also depends on whether the look was
    /// requested after the KILL.
    pub(super) fn proves_the_end(
        &mut self,
        now: BootTime,
        found: Leftovers,
        after_kill: bool,
    ) -> bool {
        match found {
            Leftovers::Empty => true,
            Leftovers::OnlyZombies { reached: true } => after_kill,
            Leftovers::OnlyZombies { reached: false } | Leftovers::Unknown { reached: true } => {
                after_kill && now.since(*self.nobody_since.get_or_insert(now)) >= SETTLED
            }
            Leftovers::Alive { .. } | Leftovers::Unknown { reached: false } => {
                self.nobody_since = None;
                false
            }
        }
    }

    /// Records an answer that proves nothing. Returns the message about it, if it was not reported before.
    pub(super) fn note(&mut self, now: BootTime, found: Leftovers) -> Option<Report> {
        self.look = Look::Due(now + self.pause);
        self.pause = (self.pause * 2).min(LONGEST_LOOK);
        let before = self.found.replace(found);
        let report = match found {
            Leftovers::Alive { count, newest } => {
                self.forking |= newest > *self.first_newest.get_or_insert(newest);
                Report::Leftovers(Some(count))
            }
            // A zombie that is about to be reaped looks the same, and need not be reported.
            Leftovers::Unknown { .. } if before == Some(found) => Report::Leftovers(None),
            Leftovers::Unknown { .. } | Leftovers::OnlyZombies { .. } | Leftovers::Empty => {
                return None;
            }
        };
        (!std::mem::replace(&mut self.reported, true)).then_some(report)
    }
}
