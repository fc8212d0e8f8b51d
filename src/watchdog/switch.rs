//! When the watchdog does what: no system call, the time passed in.
//!
//! Everything here runs between a fork and an exit: no allocation, no lock, no panic.
//!
//! The time that is passed in is older than the last message. A deadline that is heard is therefore never judged by a clock
//! that was read after it.

use std::time::Duration;

use super::wire::Message;
use crate::clock::BootTime;

/// How much later than `lease` the watchdog begins a stop at most. A live `lease` begins it itself, at the same deadline,
/// and says so; the job then gets one TERM, not two. It must be late enough for a busy machine and early enough to leave
/// most of the grace to the job.
const SLACK: Duration = Duration::from_millis(200);

/// How long the watchdog stays at most after its KILL, to see the group gone. Whom KILL has hit starts nobody any more
/// (`process::group`), so it has done what it can; zombies that nobody asks for keep a group for ever, and it can't tell them
/// from others, since it does not read /proc.
const SETTLED: Duration = Duration::from_secs(1);

/// What to do now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Act {
    /// Nothing before then; `None`: nothing before the next message.
    Wait(Option<BootTime>),
    /// TERM and CONT the group.
    Term,
    /// KILL the group.
    Kill,
    /// Nothing is left to do, ever.
    Leave,
}

/// What the watchdog knows.
#[derive(Clone, Copy, Debug)]
pub(super) struct Switch {
    grace: Duration,
    /// Whether a job is known, and not known to be gone.
    job: bool,
    /// The latest deadline.
    deadline: Option<BootTime>,
    /// When KILL is due, once a stop has begun, here or in `lease`. Nothing moves it to a later time.
    kill_at: Option<BootTime>,
    /// Whether TERM is out of the question: sent from here, or by `lease`.
    termed: bool,
    /// When KILL was sent.
    killed: Option<BootTime>,
    /// Whether the last signal was this watchdog's own idea, not that of a `lease` that had begun to stop the job.
    own: bool,
    /// Whether such a signal has hit the job.
    acted: bool,
    /// Whether `lease` is gone, so that no message will follow.
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

    /// `lease` has said something.
    pub(super) fn hear(&mut self, message: Message) {
        match message {
            // A watchdog sees one job; a second one would be somebody's mistake, and is under the same deadline.
            Message::Group(_) => self.job_is_known(),
            Message::Deadline(at) => {
                // A stop that has begun is not taken back: the job may have acted on its TERM.
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

    /// There is a job to look after.
    pub(super) const fn job_is_known(&mut self) {
        self.job = true;
    }

    /// The pipe has closed.
    pub(super) fn pipe_closed(&mut self, now: BootTime) {
        if self.alone || self.goodbye {
            return;
        }
        self.alone = true;
        self.begin(now);
        // `lease` may have died between announcing its stop and sending its TERM. Two are better than none.
        self.termed = false;
    }

    /// The group has no member left.
    pub(super) const fn job_is_gone(&mut self) {
        self.job = false;
    }

    /// The signal that was asked for has hit somebody. One that finds an empty group stops nobody: the job has ended by
    /// itself, and its `lease` may not have seen that yet.
    pub(super) const fn has_hit(&mut self) {
        self.acted |= self.own;
    }

    /// Whether the pipe has closed.
    pub(super) const fn is_alone(&self) -> bool {
        self.alone
    }

    /// Whether a stop is under way whose end would be noticed by looking at the group.
    pub(super) fn is_stopping(&self, now: BootTime) -> bool {
        self.job && self.kill_at.is_some() && !self.has_settled(now)
    }

    /// Whether the KILL was sent so long ago that the group is not looked at any more.
    fn has_settled(&self, now: BootTime) -> bool {
        self.killed.is_some_and(|at| now >= at + SETTLED)
    }

    /// Whether this watchdog, and not `lease`, has stopped the job, and is through with it.
    pub(super) fn has_stopped_the_job(&self, now: BootTime) -> bool {
        self.acted && (!self.job || self.has_settled(now))
    }

    fn begin(&mut self, now: BootTime) {
        let by_grace = now + self.grace;
        let kill_at = self.deadline.map_or(by_grace, |d| d.min(by_grace));
        self.kill_at = Some(self.kill_at.map_or(kill_at, |before| before.min(kill_at)));
    }

    /// When the stop begins here, if nothing more is heard.
    fn begin_at(&self) -> Option<BootTime> {
        let slack = SLACK.min(self.grace / 4);
        self.deadline.map(|d| d - self.grace + slack)
    }

    /// Decides. [`Act::Term`] and [`Act::Kill`] are answered once each, and are to be carried out at once.
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
            // A live `lease` says goodbye in the end, even if it is frozen now; leaving before would look like a death.
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
mod tests {
    use super::*;
    use crate::process::GroupId;

    const GRACE: Duration = Duration::from_secs(4);

    const fn at(millis: u64) -> BootTime {
        BootTime::from_nanos((1_000_000 + millis) * 1_000_000)
    }

    fn guarding(deadline: u64) -> Switch {
        let mut switch = Switch::new(GRACE);
        switch.hear(Message::Group(GroupId { pid: 9, inode: 9 }));
        switch.hear(Message::Deadline(at(deadline)));
        switch
    }

    #[test]
    fn a_closed_pipe_stops_the_job_at_once() {
        let mut switch = guarding(60_000);
        assert_eq!(switch.act(at(0)), Act::Wait(Some(at(56_200))));
        switch.pipe_closed(at(10));
        assert_eq!(switch.act(at(10)), Act::Term);
        switch.has_hit();
        assert_eq!(switch.act(at(10)), Act::Wait(Some(at(4_010))));
        assert_eq!(switch.act(at(4_010)), Act::Kill);
        assert_eq!(switch.act(at(4_010)), Act::Wait(Some(at(5_010))));
        assert!(!switch.has_stopped_the_job(at(4_010)));
        switch.job_is_gone();
        assert_eq!(switch.act(at(4_011)), Act::Leave);
        assert!(switch.has_stopped_the_job(at(4_011)));
    }

    #[test]
    fn a_closed_pipe_leaves_no_time_past_the_deadline() {
        let mut switch = guarding(60_000);
        switch.pipe_closed(at(59_000));
        assert_eq!(switch.act(at(59_000)), Act::Term);
        assert_eq!(switch.act(at(60_000)), Act::Kill);
    }

    #[test]
    fn a_deadline_that_passes_stops_the_job_in_time_and_a_later_one_comes_too_late() {
        let mut switch = guarding(60_000);
        switch.hear(Message::Deadline(at(80_000)));
        assert_eq!(switch.act(at(76_199)), Act::Wait(Some(at(76_200))));
        assert_eq!(switch.act(at(76_200)), Act::Term);
        switch.hear(Message::Deadline(at(200_000)));
        assert_eq!(switch.act(at(79_999)), Act::Wait(Some(at(80_000))));
        assert_eq!(switch.act(at(80_000)), Act::Kill);
        assert_eq!(switch.act(at(80_001)), Act::Wait(Some(at(81_000))));
        // It stays until it is told to go: leaving would look like a death.
        assert_eq!(switch.act(at(81_000)), Act::Wait(None));
        switch.pipe_closed(at(90_000));
        assert_eq!(switch.act(at(90_000)), Act::Leave);
    }

    #[test]
    fn a_stop_that_lease_has_begun_only_needs_the_kill() {
        let mut switch = guarding(60_000);
        switch.hear(Message::KillAt(at(30_000)));
        assert_eq!(switch.act(at(1)), Act::Wait(Some(at(30_000))));
        switch.hear(Message::KillAt(at(40_000)));
        assert_eq!(switch.act(at(30_000)), Act::Kill);
        assert!(!switch.has_stopped_the_job(at(90_000)));
    }

    #[test]
    fn a_lease_that_dies_while_it_stops_the_job_leaves_term_and_kill_to_the_watchdog() {
        let mut switch = guarding(60_000);
        switch.hear(Message::KillAt(at(3_000)));
        switch.pipe_closed(at(1_000));
        assert_eq!(switch.act(at(1_000)), Act::Term);
        assert_eq!(switch.act(at(3_000)), Act::Kill);
    }

    #[test]
    fn zombies_that_nobody_asks_for_keep_the_watchdog_for_a_second_and_no_longer() {
        let mut switch = guarding(60_000);
        switch.pipe_closed(at(59_000));
        assert_eq!(switch.act(at(59_000)), Act::Term);
        switch.has_hit();
        assert_eq!(switch.act(at(60_000)), Act::Kill);
        assert!(switch.is_stopping(at(60_999)));
        assert_eq!(switch.act(at(60_999)), Act::Wait(Some(at(61_000))));
        assert!(!switch.is_stopping(at(61_000)));
        assert!(switch.has_stopped_the_job(at(61_000)));
        assert_eq!(switch.act(at(61_000)), Act::Leave);
    }

    #[test]
    fn a_goodbye_is_a_goodbye_whatever_else_is_in_the_pipe() {
        let mut switch = guarding(60_000);
        switch.hear(Message::Goodbye);
        switch.pipe_closed(at(70_000));
        assert_eq!(switch.act(at(70_000)), Act::Leave);
        assert!(!switch.has_stopped_the_job(at(90_000)));
    }

    #[test]
    fn without_a_job_there_is_nothing_to_stop() {
        let mut switch = Switch::new(GRACE);
        switch.hear(Message::Deadline(at(0)));
        assert_eq!(switch.act(at(9_000)), Act::Wait(None));
        switch.pipe_closed(at(9_000));
        assert_eq!(switch.act(at(9_000)), Act::Leave);
    }

    #[test]
    fn a_job_that_starts_after_its_deadline_is_killed_at_once() {
        let mut switch = Switch::new(GRACE);
        switch.hear(Message::Deadline(at(0)));
        switch.hear(Message::Group(GroupId { pid: 9, inode: 9 }));
        assert_eq!(switch.act(at(9_000)), Act::Kill);
    }

    #[test]
    fn a_group_that_is_gone_ends_the_stop() {
        let mut switch = guarding(60_000);
        switch.pipe_closed(at(0));
        assert_eq!(switch.act(at(0)), Act::Term);
        switch.has_hit();
        assert!(switch.is_stopping(at(1)));
        switch.job_is_gone();
        assert_eq!(switch.act(at(1)), Act::Leave);
        assert!(switch.has_stopped_the_job(at(1)));
    }

    #[test]
    fn a_signal_that_finds_nobody_has_stopped_nobody() {
        let mut switch = guarding(60_000);
        assert_eq!(switch.act(at(56_200)), Act::Term);
        switch.job_is_gone();
        assert_eq!(switch.act(at(56_200)), Act::Wait(None));
        assert!(!switch.has_stopped_the_job(at(60_000)));
    }

    #[test]
    fn the_slack_never_eats_a_short_grace() {
        let mut switch = Switch::new(Duration::from_millis(100));
        switch.hear(Message::Group(GroupId { pid: 9, inode: 9 }));
        switch.hear(Message::Deadline(at(1_000)));
        assert_eq!(switch.act(at(0)), Act::Wait(Some(at(925))));
        let mut switch = Switch::new(Duration::ZERO);
        switch.hear(Message::Group(GroupId { pid: 9, inode: 9 }));
        switch.hear(Message::Deadline(at(1_000)));
        assert_eq!(switch.act(at(1_000)), Act::Kill);
    }
}
