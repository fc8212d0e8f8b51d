//! What becomes of a job: events in, actions out, the time passed in.
//!
//! Nothing here touches a process, a clock or the database, so every order of events can be tested. The event loop in
//! `commands::run` feeds one [`Event`] at a time and carries the [`Action`]s out in the order in which they are given.
//!
//! | phase | what it means | what ends it |
//! |---|---|---|
//! | running | the job runs and its lease is trusted | the job's end, or a reason to stop it |
//! | stopping | TERM and CONT were sent, KILL is due | the job's end |
//! | sweeping | the job is reaped; others of its group may be left | an empty group |
//! | done | [`Action::Finish`] was given | |
//!
//! One sequence stops a job wherever the reason comes from: TERM the group, CONT it, wait for the grace, KILL it. KILL is
//! never later than the deadline, the local instant until which the lease is certain to be ours.
#![forbid(unsafe_code)]

use std::time::Duration;

use crate::clock::BootTime;
use crate::job::{Ended, Foreground, OnLoss, Signo};
use crate::lease::Loss;

mod machine;
#[cfg(test)]
mod tests;

pub use machine::Supervisor;

/// What a run begins with, at the moment the job has been started.
#[derive(Clone, Copy, Debug)]
pub struct Start {
    /// The local instant at which the job must be dead, unless the lease is renewed.
    pub deadline: BootTime,
    /// The time between TERM and KILL.
    pub grace: Duration,
    /// What a lost lease means for the job.
    pub on_loss: OnLoss,
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// The job's first process ended and is reaped; who had the terminal then.
    JobExited(Ended, Foreground),
    /// The job's first process was stopped by this signal; who had the terminal then.
    JobStopped(Signo, Foreground),
    /// The job's first process was continued.
    JobContinued,
    /// How many live processes the job's group has: the answer to [`Action::CountLeftovers`].
    Leftovers(usize),
    /// A renewal was granted; this is the new deadline.
    Renewed(BootTime),
    /// A renewal failed in a way that may pass; a fragment for a message.
    RenewFailed(String),
    /// The database said that the term is over.
    Lost(Loss),
    /// The thread that renews has ended without being told to.
    HeartbeatDied,
    /// `lease` itself got this signal.
    Signal(Signo),
    /// Somebody in this process's own group wanted the terminal (TTIN, TTOU), and the kernel has signalled the whole group
    /// for it; who had the terminal then.
    TerminalWanted(Signo, Foreground),
    /// [`Action::StopSelf`] had no effect, because nobody could continue this process (its group is orphaned).
    StayedAwake(Signo),
    /// The watchdog ended, was stopped, or no longer reads.
    WatchdogDied,
    /// A new watchdog could not be had; a fragment for a message.
    Unprotected(String),
    /// Time passed.
    Tick,
}

/// What is to be done, in the order given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Send this signal to the job's group.
    Signal(Signo),
    /// Tell the watchdog.
    TellWatchdog(Word),
    /// Start another watchdog in place of the dead one, and tell it the job's group and this. Answer with
    /// [`Event::Unprotected`] if that fails.
    ReplaceWatchdog(Word),
    /// Take the terminal back from the job, if the job has it.
    TakeTerminal {
        /// Whether the terminal is to get the modes back that it had before the job.
        restore_modes: bool,
    },
    /// Give the terminal to the job, if it had it before and this process is in the foreground.
    GiveTerminal,
    /// Stop this process by this signal. Answer with [`Event::StayedAwake`] if that had no effect.
    StopSelf {
        /// The signal.
        signal: Signo,
        /// Whether its whole group is stopped, as the terminal would have done if the job did not have it.
        whole_group: bool,
    },
    /// Continue this process's own group: the neighbours in a pipeline, which the terminal has stopped.
    WakeNeighbours,
    /// Count the live processes of the job's group, and answer with [`Event::Leftovers`].
    CountLeftovers,
    /// Say this, in words that belong elsewhere.
    Report(Report),
    /// All of the job is gone. Nothing follows.
    Finish(Finish),
}

/// What the watchdog is told about time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Word {
    /// The job must be dead by then, unless a later word says otherwise.
    Deadline(BootTime),
    /// The job is being stopped already: only KILL it, then. Nothing takes this back.
    KillAt(BootTime),
}

/// What people are told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Report {
    /// Renewals have begun to fail; said once, at the beginning.
    RenewFailing(String),
    /// Renewals succeed again; said once.
    RenewRecovered,
    /// The lease is lost and the job is being stopped, or already dead.
    Lost(Reason),
    /// The lease is lost and the job runs on, as was asked for.
    LostRunningOn(Reason),
    /// The heartbeat ended; the job is being stopped, unless it is to survive a loss.
    HeartbeatDied,
    /// The watchdog has died; another one takes its place.
    WatchdogDied,
    /// No watchdog can be had; the job is being stopped.
    Unprotected(String),
    /// The job has ended and left this many processes in its group; they are being stopped.
    Leftovers(usize),
    /// The grace is over (or was cut short by a signal); the job's group got KILL.
    Killed,
}

/// Why the lease is no longer trusted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The database said so.
    Over(Loss),
    /// No renewal was granted in time; the last failure, if there was one.
    NotRenewed(Option<String>),
}

/// The end of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Finish {
    /// Whether to release the lease. False once it is lost.
    pub release: bool,
    /// How to exit.
    pub exit: RunExit,
}

/// How `lease run` exits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunExit {
    /// As the job did.
    AsJob {
        /// The job's end.
        ended: Ended,
        /// Whether this process's own group must get the job's signal too. It came from a terminal that only the job's
        /// group was connected to; a shell's loop around `lease` has to see the Ctrl-C as well.
        whole_group: bool,
    },
    /// The lease was lost: 76.
    Lost,
    /// `lease` could not do its part: 125.
    Failed,
}
