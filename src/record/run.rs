//! One term of the history: a run, or what a script or another program did.

use crate::job::Ended;
use crate::lease::{Fence, ServerTime};

/// A term, as the history has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    /// The key.
    pub key: String,
    /// The fence of the term.
    pub fence: Fence,
    /// The holder, as granted.
    pub holder: String,
    /// The machine that claimed, if it was `lease`.
    pub host: Option<String>,
    /// The process that claimed, if it was `lease`.
    pub pid: Option<i32>,
    /// The file name of the job, if there was one.
    pub program: Option<String>,
    /// When the term began.
    pub acquired_at: ServerTime,
    /// How it ended.
    pub end: End,
    /// The reading of the server's clock that came with it.
    pub now: ServerTime,
}

/// How a term ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// It goes on.
    Running,
    /// Its holder released it; how the job ended is not always known.
    Released(ServerTime, Option<Ended>),
    /// Another client ended it.
    Forced(ServerTime, Culprit),
    /// Its holder did not renew it in time, and was not heard of again.
    Expired(ServerTime),
    /// Its holder released it after it had expired, or the job of a run did so before it had ended.
    Lost(ServerTime, Option<Ended>),
    /// Its row was deleted.
    Deleted(ServerTime, Culprit),
    /// It has ended, but the history was not written then: nobody knows when or how.
    Unknown,
}

/// Who ended the term of another holder.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Culprit {
    /// The role of the database.
    pub role: Option<String>,
    /// The machine, if it was `lease`.
    pub host: Option<String>,
    /// The process, if it was `lease`.
    pub pid: Option<i32>,
}

impl End {
    /// The word that the JSON shows.
    #[must_use]
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Released(..) => "released",
            Self::Forced(..) => "forced",
            Self::Expired(_) => "expired",
            Self::Lost(..) => "lost",
            Self::Deleted(..) => "deleted",
            Self::Unknown => "unknown",
        }
    }

    /// When it ended.
    #[must_use]
    pub const fn at(&self) -> Option<ServerTime> {
        match self {
            Self::Running | Self::Unknown => None,
            Self::Released(at, _)
            | Self::Forced(at, _)
            | Self::Expired(at)
            | Self::Lost(at, _)
            | Self::Deleted(at, _) => Some(*at),
        }
    }

    /// How the job ended, if that is known.
    #[must_use]
    pub const fn job(&self) -> Option<Ended> {
        match self {
            Self::Released(_, job) | Self::Lost(_, job) => *job,
            Self::Running
            | Self::Forced(..)
            | Self::Expired(_)
            | Self::Deleted(..)
            | Self::Unknown => None,
        }
    }

    /// Who ended it, if that was not its holder.
    #[must_use]
    pub const fn culprit(&self) -> Option<&Culprit> {
        match self {
            Self::Forced(_, culprit) | Self::Deleted(_, culprit) => Some(culprit),
            Self::Running
            | Self::Released(..)
            | Self::Expired(_)
            | Self::Lost(..)
            | Self::Unknown => None,
        }
    }

    /// Whether the job has succeeded: code 0, under a lease that was not lost.
    #[must_use]
    pub const fn is_success(&self) -> bool {
        matches!(self, Self::Released(_, Some(Ended::Code(0))))
    }

    /// Whether it has failed, as far as anybody knows: what is not known to have gone well should be looked at.
    #[must_use]
    pub const fn is_failure(&self) -> bool {
        match self {
            Self::Running | Self::Released(_, None | Some(Ended::Code(0))) => false,
            Self::Released(..)
            | Self::Forced(..)
            | Self::Expired(_)
            | Self::Lost(..)
            | Self::Deleted(..)
            | Self::Unknown => true,
        }
    }
}

impl Run {
    /// Milliseconds from its beginning to its end; to now, while it runs. `None` if it is unknown when its holder
    /// vanished.
    #[must_use]
    pub const fn took_ms(&self) -> Option<i64> {
        match &self.end {
            End::Running => self.now.millis_since(self.acquired_at),
            End::Expired(_) | End::Unknown => None,
            End::Released(at, _) | End::Forced(at, _) | End::Lost(at, _) | End::Deleted(at, _) => {
                at.millis_since(self.acquired_at)
            }
        }
    }
}

/// The last run of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LastRun {
    /// It.
    pub run: Run,
    /// When the key has last succeeded.
    pub last_success: Option<ServerTime>,
}
