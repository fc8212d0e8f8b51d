//! What can happen to a run.

use std::time::Duration;

use crate::clock::BootTime;
use crate::job::{Ended, Foreground, Leftovers, Signal};
use crate::lease::{Grant, Loss, Release, Row, Success};

/// A grant or a renewal, and how long it can be trusted here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Granted {
    /// The term, with its expiry by the server's clock.
    pub grant: Grant,
    /// The local instant at which it was asked for.
    pub sent: BootTime,
    /// How long it took from the first step of connecting to the answer.
    pub took: Duration,
    /// The local instant until which the lease can be trusted: the job must be dead then, unless the lease is renewed.
    pub deadline: BootTime,
}

/// A database operation that did not succeed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OperationFailure {
    /// A fragment for a message.
    pub message: String,
    /// Whether the same request may succeed later without anybody changing a setting.
    pub is_transient: bool,
    /// Whether it may have been applied all the same.
    pub is_unknown: bool,
}

/// The answer to [`super::Action::Claim`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClaimAnswer {
    /// The lease is ours.
    Granted(Granted),
    /// Somebody else holds it, or it is cooling; the row was read no earlier than this.
    Held(Row, BootTime),
    /// The key has succeeded within the period of `--once-per`. Nothing is claimed.
    NotDue(Success),
    /// The database did not do it, or the attempt was interrupted.
    Failed(OperationFailure),
}

/// The answers to [`super::Action::ArmWatchdog`] and [`super::Action::StartJob`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StartAnswer {
    /// A watchdog knows the deadline, or none is wanted.
    Armed,
    /// The job runs.
    Started,
    /// The job was not started, and nothing of it is left.
    NotStarted(NotStarted),
}

/// Why a job was not started. The texts are complete messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotStarted {
    /// There is no such command.
    NotFound(String),
    /// The command can't be executed.
    CannotExecute(String),
    /// `lease` could not do its part.
    Failed(String),
    /// The time to stop it came before it could begin.
    TooLate,
}

/// The answer to [`super::Action::Release`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReleaseAnswer {
    /// The database answered.
    Answered(Release),
    /// The database did not do it, or may not have done it.
    Failed(OperationFailure),
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A claim was answered.
    Claim(ClaimAnswer),
    /// A step on the way to the job was answered.
    Start(StartAnswer),
    /// A release was answered.
    Release(ReleaseAnswer),
    /// The job's first process ended and is reaped; who had the terminal then.
    JobExited(Ended, Foreground),
    /// The job's first process was stopped by this signal; who had the terminal then.
    JobStopped(Signal, Foreground),
    /// The job's first process was continued.
    JobContinued,
    /// What is in the job's group: the answer to [`super::Action::LookAtLeftovers`].
    Leftovers(Leftovers),
    /// A renewal was granted.
    Renewed(Granted),
    /// A renewal failed in a way that may pass; a fragment for a message.
    RenewFailed(String),
    /// A renewal may have been applied, or may still be, without an answer.
    RenewalInDoubt,
    /// The database said that the term is over.
    Lost(Loss),
    /// The thread that renews could not be started; a fragment for a message.
    NoHeartbeat(String),
    /// `lease` itself got this signal.
    Signal(Signal),
    /// Somebody in this process's own group wanted the terminal (TTIN, TTOU), and the kernel has signalled the whole group
    /// for it; who had the terminal then.
    TerminalWanted(Signal, Foreground),
    /// [`super::Action::StopSelf`] had no effect, because nobody could continue this process (its group is orphaned).
    StayedAwake(Signal),
    /// A watchdog has this deadline: the answer to [`super::Action::TellWatchdog`] and [`super::Action::ReplaceWatchdog`].
    WatchdogTold(BootTime),
    /// The watchdog ended, was stopped, or no longer reads.
    WatchdogDied,
    /// A new watchdog could not be had; a fragment for a message.
    Unprotected(String),
    /// Time passed.
    Tick,
}
