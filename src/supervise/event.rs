//! The events of a run.

use std::time::Duration;

use crate::clock::BootTime;
use crate::job::{Ended, Foreground, Leftovers, Signal};
use crate::lease::{Grant, Loss, Release, Row, Success};

/// A grant or a renewal, and until when it can be trusted on this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Granted {
    /// The term, with its expiry by the server's clock.
    pub grant: Grant,
    /// The local instant at which the request was sent.
    pub sent: BootTime,
    /// How long it took from the first step of connecting to the answer.
    pub took: Duration,
    /// The local instant until which the lease can be trusted. The job must be dead by then, unless the lease is
    /// renewed.
    pub deadline: BootTime,
}

/// A database operation that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OperationFailure {
    /// A fragment for a message.
    pub message: String,
    /// Whether the same request may succeed later without a change of settings.
    pub is_transient: bool,
    /// Whether it may still have been applied.
    pub is_unknown: bool,
    /// Whether the server has too few connections for everybody, or lacks another resource.
    pub is_scarce: bool,
}

/// The answer to [`super::Action::Claim`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClaimAnswer {
    /// The lease is ours.
    Granted(Granted),
    /// Another holder has the lease, or it is cooling. The row was read no earlier than this.
    Held(Row, BootTime),
    /// A job under this key has succeeded within the period of `--once-per`. Nothing is claimed.
    NotDue(Success),
    /// The claim failed or was interrupted.
    Failed(OperationFailure),
}

/// The answers to [`super::Action::ArmWatchdog`] and [`super::Action::StartJob`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StartAnswer {
    /// A watchdog knows the deadline, or none is required.
    Armed,
    /// The job was started.
    Started,
    /// The job was not started, and nothing of it is left.
    NotStarted(NotStarted),
}

/// Why a job was not started. The texts are complete messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotStarted {
    /// The command was not found.
    NotFound(String),
    /// The command cannot be executed.
    CannotExecute(String),
    /// `lease` itself failed.
    Failed(String),
    /// The time to stop it came before it could start.
    TooLate,
}

/// The answer to [`super::Action::Release`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReleaseAnswer {
    /// The database answered.
    Answered(Release),
    /// The release failed, or its outcome is unknown.
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
    /// The job's first process ended and is reaped. The value says which group had the terminal then.
    JobExited(Ended, Foreground),
    /// The job's first process was stopped by this signal. The value says which group had the terminal then.
    JobStopped(Signal, Foreground),
    /// The job's first process was continued.
    JobContinued,
    /// What is in the job's group: the answer to [`super::Action::LookAtLeftovers`].
    Leftovers(Leftovers),
    /// A renewal was granted.
    Renewed(Granted),
    /// A renewal failed, and a retry may succeed. The text is a fragment for a message.
    RenewFailed(String),
    /// A renewal got no answer. It may have been applied, or may still be.
    RenewalInDoubt,
    /// The database answered that the term is over.
    Lost(Loss),
    /// The thread that renews could not be started. The text is a fragment for a message.
    NoHeartbeat(String),
    /// `lease` itself got this signal.
    Signal(Signal),
    /// A process in this process's own group tried to use the terminal, and the kernel has sent this signal (TTIN,
    /// TTOU) to the whole group. The value says which group had the terminal then.
    TerminalWanted(Signal, Foreground),
    /// [`super::Action::StopSelf`] had no effect, because the group of this process is orphaned: no shell could
    /// continue it.
    StayedAwake(Signal),
    /// A watchdog has this deadline: the answer to [`super::Action::TellWatchdog`] and [`super::Action::ReplaceWatchdog`].
    WatchdogTold(BootTime),
    /// The watchdog ended, was stopped, or no longer reads.
    WatchdogDied,
    /// A new watchdog could not be started. The text is a fragment for a message.
    Unprotected(String),
    /// The clock must be checked.
    Tick,
}
