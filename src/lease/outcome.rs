//! How an operation on a lease can end. An expected outcome is a variant here. An unexpected one is an error.

use std::time::Duration;

use super::{Fence, Grant, Row, ServerTime, Term};

/// How an attempt to claim ended, when the database answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Claim {
    /// The lease is the caller's.
    Granted(Grant),
    /// Another holder has it, or it is cooling.
    Held(Row),
    /// The key has succeeded within the period that was asked for. Nothing is claimed.
    NotDue(Success),
}

/// A run that has succeeded, within a period that is not over yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Success {
    /// The machine that it ran on, if that is known; else the holder.
    pub place: String,
    /// How long ago it ended.
    pub ago: Duration,
    /// When the key is due again: this long from now.
    pub due_in: Duration,
}

/// How an attempt to renew ended, when the database answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Renewal {
    /// It is good until the new expiry.
    Renewed(Grant),
    /// The caller is no longer the holder. A retry would not help.
    Lost(Loss),
}

/// How an attempt to release ended, when the database answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Release {
    /// It is free, or cooling.
    Released,
    /// It is free, or cooling, and its holder had lost it before: it had expired at this time.
    Expired(ServerTime),
    /// It had been released before; nothing changed.
    AlreadyReleased,
    /// The caller is not the holder; nothing changed.
    Lost(Loss),
}

/// How a forced release ended, when the database answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Eviction {
    /// The holder of this row lost it.
    Evicted(Row),
    /// The term of this row is over: a request whose answer was lost has ended it, or another client has.
    Over(Row),
    /// There was no holder to evict.
    Free,
    /// There is no table of this name.
    NoTable(String),
    /// The named term is over already; nothing changed.
    OtherTerm {
        /// The fence that was asked for.
        asked: Fence,
        /// The row as it is now.
        found: Row,
    },
}

/// Why a term is over, or never was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Loss {
    /// The term of another holder began: the row as it is now, with a larger fence.
    Taken(Row),
    /// What was asked for is no term that somebody else has taken: the row has no larger fence, or it is the asking
    /// holder's own.
    Mismatch {
        /// What was asked for.
        asked: Term,
        /// The row as it is now.
        found: Row,
    },
    /// The expiry passed before a renewal arrived. No other holder has claimed the key yet.
    Expired,
    /// It was released: evicted, or released by a client that knew the term.
    Released,
    /// There is no row.
    NoRow,
    /// There is no table of this name.
    NoTable(String),
}

impl Loss {
    /// Whether somebody else may have ended the term before its time.
    #[must_use]
    pub const fn may_be_an_eviction(&self) -> bool {
        match self {
            Self::Taken(_) | Self::Mismatch { .. } | Self::Released => true,
            Self::Expired | Self::NoRow | Self::NoTable(_) => false,
        }
    }
}
