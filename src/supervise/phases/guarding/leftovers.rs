//! What to do after a look at the leftovers, and the end of the run.

use super::state::{Fate, Finish, Guarding, Stage};
use super::sweep::Sweep;
use crate::clock::BootTime;
use crate::job::{Leftovers, Signal};
use crate::supervise::{Action, JobEnd, Outcome};

impl Guarding {
    /// Whether the pending look was requested after the KILL.
    pub(super) const fn has_asked_after_kill(&self) -> bool {
        match self.stage {
            Stage::Sweeping(sweep) => sweep.has_asked_after_kill(),
            Stage::Running | Stage::Stopping(_) | Stage::Done => false,
        }
    }

    /// Handles the result of a look.
    pub(super) fn leftovers(
        &mut self,
        now: BootTime,
        found: Leftovers,
        after_kill: bool,
        out: &mut Vec<Action>,
    ) -> Option<Finish> {
        let Stage::Sweeping(sweep) = &mut self.stage else {
            return None;
        };
        if sweep.proves_the_end(now, found, after_kill) {
            let sweep = *sweep;
            return Some(self.finish(sweep));
        }
        let none_seen = |found| matches!(found, Leftovers::OnlyZombies { .. });
        let none_before = sweep.found.is_some_and(none_seen);
        let report = sweep.note(now, found);
        if sweep.stop.is_none() {
            // This happens even if no live process was seen: a process that the look missed gets its TERM, and a zombie
            // ignores it.
            self.begin_stop(now, out);
        } else if sweep.is_killed() {
            out.push(Action::Signal(Signal::KILL));
        } else if none_before && none_seen(found) {
            // Apparently only zombies are left. The proof needs the KILL.
            sweep.kill(now, out);
        }
        out.extend(report.map(Action::Report));
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
            Fate::Lost => (JobEnd::Stopped(sweep.ended), Outcome::Lost),
            Fate::Failed => (JobEnd::Stopped(sweep.ended), Outcome::Failed),
        };
        Finish {
            release: self.held,
            job_end,
            outcome,
        }
    }
}
