//! What the event loop must do, and what is reported to the operator.

use std::time::Duration;

use super::event::Granted;
use crate::clock::BootTime;
use crate::job::{Ended, Signal};
use crate::lease::{Grant, Loss, Row, ServerTime, Success, Term};
use crate::timing::Wait;

/// An effect for the event loop to carry out. Several are carried out in the order given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Send a claim. Answer with [`super::Event::Claim`].
    Claim {
        /// Its time limit.
        limit: Duration,
        /// Whether to look first, on a connection that stays open for the next look.
        eager: bool,
    },
    /// Interrupt the claim that is under way, unless its COMMIT was sent. Its answer still comes.
    InterruptClaim,
    /// Renew the term once, with this time limit. Answer with `Renewed`, `RenewFailed` or `Lost`.
    Renew(Term, Duration),
    /// Send the watchdog this deadline, and replace a dead one. Answer with [`super::StartAnswer::Armed`], or with
    /// [`super::Event::Unprotected`] if no watchdog can be started.
    ArmWatchdog(BootTime),
    /// Start the job, unless this instant has passed. Answer with `Started` or `NotStarted`.
    StartJob {
        /// The term, for the job's environment.
        term: Term,
        /// The instant after which the job must not start: a job that would be stopped at once is not started.
        not_after: BootTime,
    },
    /// Start the heartbeat.
    StartHeartbeat {
        /// The term.
        term: Term,
        /// When the request that granted or renewed it was sent.
        sent: BootTime,
        /// How long that request took.
        took: Duration,
    },
    /// Stop the heartbeat.
    StopHeartbeat,
    /// Send this signal to the job's group.
    Signal(Signal),
    /// Send the watchdog this order. Answer with [`super::Event::WatchdogTold`] if it was a deadline, or with
    /// [`super::Event::WatchdogDied`] if the order could not be sent.
    TellWatchdog(WatchdogOrder),
    /// Replace the dead watchdog with a new one that gets the job's group and this order. Answer as above, or with
    /// [`super::Event::Unprotected`] if this fails.
    ReplaceWatchdog(WatchdogOrder),
    /// End the watchdog: nothing of the job is left, or none was started.
    DismissWatchdog,
    /// Take the terminal back from the job, if the job has it.
    TakeTerminal {
        /// Whether to restore the modes that the terminal had before the job.
        restore_modes: bool,
    },
    /// Give the terminal to the job, if it had it before and this process is in the foreground.
    GiveTerminal,
    /// Stop this process by this signal. Answer with [`super::Event::StayedAwake`] if that had no effect.
    StopSelf {
        /// The signal.
        signal: Signal,
        /// Whether to stop the whole group, as the terminal would have done if the job did not have the terminal.
        whole_group: bool,
    },
    /// Continue this process's own group. The terminal has stopped the neighbours in a pipeline.
    WakeNeighbours,
    /// Look at the job's group. Answer with [`super::Event::Leftovers`]. A look that is requested after a KILL must
    /// begin after the KILL.
    LookAtLeftovers,
    /// Release the term. Answer with [`super::Event::Release`].
    Release {
        /// The term.
        term: Term,
        /// How long after the claim the key stays closed.
        hold: Duration,
        /// The time limit of this one try.
        limit: Duration,
        /// How the job ended; `None` if none was started.
        ended: Option<Ended>,
        /// The expiry of the lease, if the job has certainly ended before it.
        ours_to: Option<ServerTime>,
    },
    /// Show at a terminal whom the claim waits for, until [`Action::EndWait`].
    ShowWait {
        /// Who holds the lease.
        row: Row,
        /// When that was read.
        read_at: BootTime,
        /// When the wait began.
        since: BootTime,
    },
    /// The wait is over: nothing is shown of it any more.
    EndWait,
    /// Write this message. `output` knows its text.
    Report(Report),
    /// The run is over. No action follows.
    Finish(Outcome),
}

/// An order to the watchdog.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WatchdogOrder {
    /// Stop the job so that it is dead at this time, unless a later order changes it.
    Deadline(BootTime),
    /// `lease` is stopping the job itself. Only send KILL at this time. This order is never revoked.
    KillAt(BootTime),
}

/// A message for the operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Report {
    /// Another holder has the lease, and the run waits for it. Reported once for each holder.
    Waiting(Row),
    /// Claims have begun to fail. Reported once.
    ClaimFailing {
        /// Why.
        failure: String,
        /// How long the claim is retried; `None` if the wait decides that.
        retry_for: Option<Duration>,
    },
    /// There is no connection that an eager waiter could keep. It waits like any other from now on.
    NotEager(String),
    /// The claim has failed, and is not retried.
    CannotClaim {
        /// Why.
        failure: String,
        /// Whether it may still have been applied.
        is_unknown: bool,
    },
    /// Another holder has the lease, and the wait, if any, is over.
    Conflict(Row, Option<Wait>),
    /// A job under this key has succeeded within the period of `--once-per`.
    NotDue(Success),
    /// The lease is held by the run that this process is part of.
    HeldByOuterRun,
    /// The lease is ours.
    Claimed(Grant),
    /// The claim took longer than a heartbeat, so renewals may also take longer.
    SlowClaim {
        /// How long it took.
        took: Duration,
        /// The time between two renewals.
        heartbeat: Duration,
    },
    /// The lease was lost between the grant and its use.
    LostBeforeUse(Loss),
    /// The grant came too late for a job, and could not be renewed.
    NotRenewedBeforeUse(String),
    /// The database answers too slowly for the ttl.
    TooSlow,
    /// The job was not started; a complete message.
    NotStarted(String),
    /// The time to stop the job came before it could start.
    StartedTooLate,
    /// Renewals have begun to fail. Reported once.
    RenewFailing(String),
    /// Renewals succeed again. Reported once.
    RenewRecovered,
    /// The lease is lost and the job is being stopped, or already dead.
    Lost(Reason),
    /// The lease is lost, and the job runs on as requested.
    LostRunningOn(Reason),
    /// The lease can no longer be renewed. The job is being stopped, unless it may run on without the lease.
    NoHeartbeat(String),
    /// The watchdog has died; another one takes its place.
    WatchdogDied,
    /// No watchdog can be started. The job is being stopped, or is not started.
    Unprotected(String),
    /// The job has ended and left processes in its group, which are being stopped. The number is `None` if it is
    /// unknown.
    Leftovers(Option<usize>),
    /// The grace period is over, or was cut short by a signal. The job's group got KILL.
    Killed {
        /// How many processes the last look found, if there was one.
        left: Option<usize>,
        /// Whether processes were started in the group after it got TERM.
        forking: bool,
    },
    /// The lease was released.
    Released,
    /// The release found that the lease was lost before the job ended.
    LostBeforeEnd(Loss, JobEnd),
    /// The release failed, or its outcome is unknown.
    NotReleased(NotReleased),
}

/// How far the job had come when its lease was released.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobEnd {
    /// It was never started.
    NotStarted,
    /// It ended by itself.
    Ended(Ended),
    /// It was stopped, and ended in this way.
    Stopped(Ended),
}

/// A release that failed and is not retried.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotReleased {
    /// Why.
    pub failure: String,
    /// Whether it may still have been applied.
    pub is_unknown: bool,
    /// When the lease expires, by the server's clock.
    pub expires_at: ServerTime,
    /// Whether it may expire later, because of a renewal that got no answer.
    pub may_last_longer: bool,
    /// Whether the expiry has certainly passed.
    pub has_expired: bool,
    /// How long after the claim the key should have stayed closed.
    pub hold: Duration,
}

/// Why the lease is no longer trusted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The database said so.
    Over(Loss),
    /// No renewal was granted in time. Contains the last failure, if there was one.
    NotRenewed(Option<String>),
}

/// How a run ends, or a claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// A claim: the lease is the caller's.
    Granted(Granted),
    /// As the job did.
    AsJob {
        /// How the job ended.
        ended: Ended,
        /// Whether this process's own group must get the job's signal too. The signal came from a terminal that only
        /// the job's group had, and a shell's loop around `lease` must see the Ctrl-C as well.
        whole_group: bool,
    },
    /// By this signal, which came before there was a job. The lease is not held.
    Interrupted(Signal),
    /// Another holder has the lease, or the key is not due.
    Conflict,
    /// The database failed: 69.
    Unavailable,
    /// The lease was lost: 76.
    Lost,
    /// `lease` itself failed: 125.
    Failed,
    /// The command cannot be executed: 126.
    CannotExecute,
    /// The command was not found: 127.
    NotFound,
}
