//! What is to be done, and what people are told.

use std::time::Duration;

use super::event::Granted;
use crate::clock::BootTime;
use crate::job::{Ended, Signal};
use crate::lease::{Grant, Loss, Row, ServerTime, Success, Term};
use crate::timing::Wait;

/// What is to be done, in the order given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Ask the database for the lease, for at most this long. Answer with [`super::Event::Claim`].
    Claim(Duration),
    /// End the claim that is under way, unless its COMMIT was sent. Its answer comes all the same.
    InterruptClaim,
    /// Renew the term once, for at most this long. Answer with `Renewed`, `RenewFailed` or `Lost`.
    Renew(Term, Duration),
    /// Tell the watchdog this deadline; replace one that is dead. Answer with [`super::StartAnswer::Armed`], or with
    /// [`super::Event::Unprotected`] if no watchdog can be had.
    ArmWatchdog(BootTime),
    /// Start the job, unless this instant has passed. Answer with `Started` or `NotStarted`.
    StartJob {
        /// What the job is told about its lease.
        term: Term,
        /// The instant after which it must not begin: a job that would be stopped at once is not started.
        not_after: BootTime,
    },
    /// Start to renew.
    StartHeartbeat {
        /// The term.
        term: Term,
        /// When the request was sent by which it was granted or renewed.
        sent: BootTime,
        /// How long that request took.
        took: Duration,
    },
    /// Renew no more.
    StopHeartbeat,
    /// Send this signal to the job's group.
    Signal(Signal),
    /// Tell the watchdog. Answer with [`super::Event::WatchdogTold`] if it was a deadline, and with
    /// [`super::Event::WatchdogDied`] if it could not be told.
    TellWatchdog(WatchdogOrder),
    /// Start another watchdog in place of the dead one, which knows the job's group and this. Answer as above, and with
    /// [`super::Event::Unprotected`] if that fails.
    ReplaceWatchdog(WatchdogOrder),
    /// Nothing of the job is left, or none was started: end the watchdog.
    DismissWatchdog,
    /// Take the terminal back from the job, if the job has it.
    TakeTerminal {
        /// Whether the terminal is to get the modes back that it had before the job.
        restore_modes: bool,
    },
    /// Give the terminal to the job, if it had it before and this process is in the foreground.
    GiveTerminal,
    /// Stop this process by this signal. Answer with [`super::Event::StayedAwake`] if that had no effect.
    StopSelf {
        /// The signal.
        signal: Signal,
        /// Whether its whole group is stopped, as the terminal would have done if the job did not have it.
        whole_group: bool,
    },
    /// Continue this process's own group: the neighbours in a pipeline, which the terminal has stopped.
    WakeNeighbours,
    /// Look at the job's group, and answer with [`super::Event::Leftovers`]. A look that is asked for after a KILL must
    /// begin after the KILL.
    LookAtLeftovers,
    /// Release the term. Answer with [`super::Event::Release`].
    Release {
        /// The term.
        term: Term,
        /// For how long after the claim the key stays closed.
        hold: Duration,
        /// The most that this one try may take.
        limit: Duration,
        /// How the job ended; `None` if none was started.
        ended: Option<Ended>,
        /// The expiry of the lease, if the job has certainly ended before it.
        ours_to: Option<ServerTime>,
    },
    /// Write this message. `output` has its text.
    Report(Report),
    /// Nothing follows.
    Finish(Outcome),
}

/// What the watchdog is ordered to do, and when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WatchdogOrder {
    /// The job must be dead by then, unless a later order says otherwise.
    Deadline(BootTime),
    /// `lease` is stopping the job itself. The watchdog must only send KILL at this time. This is never revoked.
    KillAt(BootTime),
}

/// A message for the operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Report {
    /// Somebody else holds the lease, and it is waited for. Once for each holder.
    Waiting(Row),
    /// Claims have begun to fail; said once, at the beginning.
    ClaimFailing {
        /// Why.
        failure: String,
        /// For how long the claim is tried again; `None` if that is said by the wait.
        retry_for: Option<Duration>,
    },
    /// The claim is given up, because the database does not do it.
    CannotClaim {
        /// Why.
        failure: String,
        /// Whether it may have been applied all the same.
        is_unknown: bool,
    },
    /// Somebody else holds the lease, and the wait, if there was one, is over.
    Conflict(Row, Option<Wait>),
    /// The key has succeeded within the period of `--once-per`.
    NotDue(Success),
    /// The run that this process is inside holds the lease.
    HeldByOuterRun,
    /// The lease is ours.
    Claimed(Grant),
    /// The claim took longer than a heartbeat, and renewals may take as long.
    SlowClaim {
        /// What it took.
        took: Duration,
        /// The time between two renewals.
        heartbeat: Duration,
    },
    /// The lease was lost between the grant and its use.
    LostBeforeUse(Loss),
    /// The grant came too late to be used, and could not be renewed.
    NotRenewedBeforeUse(String),
    /// The database answers too slowly for the ttl.
    TooSlow,
    /// The job was not started; a complete message.
    NotStarted(String),
    /// The time to stop the job came before it could begin.
    StartedTooLate,
    /// Renewals have begun to fail; said once, at the beginning.
    RenewFailing(String),
    /// Renewals succeed again; said once.
    RenewRecovered,
    /// The lease is lost and the job is being stopped, or already dead.
    Lost(Reason),
    /// The lease is lost and the job runs on, as was asked for.
    LostRunningOn(Reason),
    /// Nothing renews the lease; the job is being stopped, unless it is to survive a loss.
    NoHeartbeat(String),
    /// The watchdog has died; another one takes its place.
    WatchdogDied,
    /// No watchdog can be had; the job is being stopped, or not started.
    Unprotected(String),
    /// The job has ended and left processes in its group, this many if that is known; they are being stopped.
    Leftovers(Option<usize>),
    /// The grace is over (or was cut short by a signal); the job's group got KILL.
    Killed {
        /// How many processes the last look has found, if there was one.
        left: Option<usize>,
        /// Whether processes were started in the group after it was told to end.
        forking: bool,
    },
    /// The lease was released.
    Released,
    /// The release found that the lease had been lost before the job ended.
    LostBeforeEnd(Loss, JobEnd),
    /// The release could not be done, or it is not known whether it was.
    NotReleased(NotReleased),
}

/// How far the job had come when its lease was released.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobEnd {
    /// It was never started.
    NotStarted,
    /// It ended by itself.
    Ended(Ended),
    /// It was stopped, and ended like this.
    Stopped(Ended),
}

/// A release that was given up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotReleased {
    /// Why.
    pub failure: String,
    /// Whether it may have been applied all the same.
    pub is_unknown: bool,
    /// Until when the lease stays, by the server's clock.
    pub expires_at: ServerTime,
    /// Whether it may stay longer, by a renewal that got no answer.
    pub may_last_longer: bool,
    /// Whether the expiry is certain to be past.
    pub has_expired: bool,
    /// For how long after the claim the key was to stay closed.
    pub hold: Duration,
}

/// Why the lease is no longer trusted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The database said so.
    Over(Loss),
    /// No renewal was granted in time; the last failure, if there was one.
    NotRenewed(Option<String>),
}

/// How a run ends, or a claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// A claim: the lease is the caller's.
    Granted(Granted),
    /// As the job did.
    AsJob {
        /// The job's end.
        ended: Ended,
        /// Whether this process's own group must get the job's signal too. It came from a terminal that only the job's
        /// group was connected to; a shell's loop around `lease` has to see the Ctrl-C as well.
        whole_group: bool,
    },
    /// This signal came before there was a job, and nothing stays claimed.
    Interrupted(Signal),
    /// Somebody else holds the lease, or the key is not due.
    Conflict,
    /// The database did not do its part: 69.
    Unavailable,
    /// The lease was lost: 76.
    Lost,
    /// `lease` could not do its part: 125.
    Failed,
    /// The command can't be executed: 126.
    CannotExecute,
    /// The command was not found: 127.
    NotFound,
}
