//! The decisions of the watchdog, without system calls. The caller passes in the time.
//!
//! All of this runs between a fork and an exit, so there is no allocation, no lock and no panic.
//!
//! The caller reads the clock before it reads the messages. So a message that moves the deadline counts if it arrived in
//! time, even if this process was stopped afterwards.

use std::time::Duration;

use super::wire::Message;
use crate::clock::BootTime;

/// How much later than `lease` the watchdog begins a stop, at most. A `lease` that runs begins the stop itself and tells
/// the watchdog, so that the job gets one TERM, not two. The delay must be long enough for a busy machine, and short enough
/// to leave most of the grace period to the job.
const SLACK: Duration = Duration::from_millis(200);

/// How long the watchdog waits for the end of the group after its KILL, at most. A process that got KILL starts no other
/// process (`process::group`), so nothing more can be done. Zombies that nobody reaps keep a group in existence for ever,
/// and the watchdog can't recognize them, since it does not read /proc.
const SETTLED: Duration = Duration::from_secs(1);

/// What to do now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Act {
    /// Wait until then, or until the next message. `None`: only for the next message.
    Wait(Option<BootTime>),
    /// Send TERM and CONT to the group.
    Term,
    /// Send KILL to the group.
    Kill,
    /// Exit: nothing is left to do.
    Leave,
}

/// What the watchdog knows.
#[derive(Clone, Copy, Debug)]
pub(super) struct Switch {
    grace: Duration,
    /// Whether there is a job, as far as is known.
    job: bool,
    /// The latest deadline.
    deadline: Option<BootTime>,
    /// When KILL is due, once the watchdog or `lease` has begun a stop. It is never moved to a later time.
    kill_at: Option<BootTime>,
    /// Whether TERM was sent already, by the watchdog or by `lease`.
    termed: bool,
    /// When KILL was sent.
    killed: Option<BootTime>,
    /// Whether the watchdog itself has decided on a signal, as opposed to completing a stop that `lease` has begun.
    own: bool,
    /// Whether that signal has reached the job.
    acted: bool,
    /// Whether the pipe has closed: `lease` is gone, and no message will follow.
    alone: bool,
    goodbye: bool,
}

impl Switch {
    pub(super) const fn new(grace: Duration) -> Self {
        Self {
            grace,
            job: false,
            deadline: None,
            kill_at: None,
            termed: false,
            killed: None,
            own: false,
            acted: false,
            alone: false,
            goodbye: false,
        }
    }

    /// Notes a message from `lease`.
    pub(super) fn hear(&mut self, message: Message) {
        match message {
            // A watchdog has one job. A second group would be a bug, and gets the same deadline.
            Message::Group(_) => self.job_is_known(),
            Message::Deadline(at) => {
                // A stop that has begun is not revoked, because the job may have acted on TERM.
                if self.kill_at.is_none() {
                    self.deadline = Some(at);
                }
            }
            Message::KillAt(at) => {
                self.termed = true;
                self.kill_at = Some(self.kill_at.map_or(at, |before| before.min(at)));
            }
            Message::Goodbye => self.goodbye = true,
        }
    }

    /// Notes that there is a job.
    pub(super) const fn job_is_known(&mut self) {
        self.job = true;
    }

    /// Notes that the pipe has closed.
    pub(super) fn pipe_closed(&mut self, now: BootTime) {
        if self.alone || self.goodbye {
            return;
        }
        self.alone = true;
        self.begin(now);
        // `lease` may have ended after it announced its stop and before it sent TERM. A second TERM is better than none.
        self.termed = false;
    }

    /// Notes that the group has no member left.
    pub(super) const fn job_is_gone(&mut self) {
        self.job = false;
    }

    /// Notes that the last signal has reached a process. If the group was empty, the watchdog has not stopped the job: it
    /// has ended by itself, and `lease` may not know that yet.
    pub(super) const fn has_hit(&mut self) {
        self.acted |= self.own;
    }

    /// Whether the pipe has closed.
    pub(super) const fn is_alone(&self) -> bool {
        self.alone
    }

    /// Whether a stop is under way, so that the group must be watched for its end.
    pub(super) fn is_stopping(&self, now: BootTime) -> bool {
        self.job && self.kill_at.is_some() && !self.has_settled(now)
    }

    /// Whether KILL was sent so long ago that the group is no longer watched.
    fn has_settled(&self, now: BootTime) -> bool {
        self.killed.is_some_and(|at| now >= at + SETTLED)
    }

    /// Whether the watchdog, and not `lease`, has stopped the job, and the stop is complete.
    pub(super) fn has_stopped_the_job(&self, now: BootTime) -> bool {
        self.acted && (!self.job || self.has_settled(now))
    }

    fn begin(&mut self, now: BootTime) {
        let by_grace = now + self.grace;
        let kill_at = self.deadline.map_or(by_grace, |d| d.min(by_grace));
        self.kill_at = Some(self.kill_at.map_or(kill_at, |before| before.min(kill_at)));
    }

    /// When the watchdog begins the stop, unless a message comes before.
    fn begin_at(&self) -> Option<BootTime> {
        let slack = SLACK.min(self.grace / 4);
        self.deadline.map(|d| d - self.grace + slack)
    }

    /// Decides what to do now. It returns [`Act::Term`] and [`Act::Kill`] once each; the caller must send them at once.
    pub(super) fn act(&mut self, now: BootTime) -> Act {
        if self.goodbye {
            return Act::Leave;
        }
        if self.kill_at.is_none()
            && self.job
            && let Some(at) = self.begin_at()
            && now >= at
        {
            self.begin(now);
        }
        let Some(kill_at) = self.kill_at else {
            return Act::Wait(if self.job { self.begin_at() } else { None });
        };
        if !self.job || self.has_settled(now) {
            // `lease` may be frozen and will send its goodbye later. If the watchdog ended before, `lease` would take it
            // for killed.
            return if self.alone {
                Act::Leave
            } else {
                Act::Wait(None)
            };
        }
        if let Some(at) = self.killed {
            return Act::Wait(Some(at + SETTLED));
        }
        if now >= kill_at {
            self.killed = Some(now);
            self.own |= self.alone || !self.termed;
            return Act::Kill;
        }
        if !self.termed {
            self.termed = true;
            self.own = true;
            return Act::Term;
        }
        Act::Wait(Some(kill_at))
    }
}

#[cfg(test)]
mod tests;
