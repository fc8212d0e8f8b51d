//! A row of the table, and its state.

use std::time::Duration;

use super::server_time::ServerTime;
use super::term::Fence;

/// A row of the table, as someone sees it who does not hold it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// The key; any text, since anybody can write rows.
    pub key: String,
    /// By the server's clock.
    pub state: LeaseState,
    /// The fence of the current or last term.
    pub fence: Fence,
    /// When the term began.
    pub acquired_at: ServerTime,
    /// When it ends, or ended.
    pub expires_at: ServerTime,
    /// The reading of the server's clock that came with the row.
    pub now: ServerTime,
}

impl Row {
    /// Reads a row as it is in the table; an empty holder is none.
    #[must_use]
    pub fn read(
        (key, holder, fence): (String, String, Fence),
        acquired_at: ServerTime,
        expires_at: ServerTime,
        now: ServerTime,
    ) -> Self {
        let state = match (holder.is_empty(), expires_at > now) {
            (false, true) => LeaseState::Held(holder),
            (false, false) => LeaseState::Expired(holder),
            (true, true) => LeaseState::Cooling,
            (true, false) => LeaseState::Free,
        };
        Self {
            key,
            state,
            fence,
            acquired_at,
            expires_at,
            now,
        }
    }

    /// Whose lease it is, or was until it expired.
    #[must_use]
    pub fn holder(&self) -> Option<&str> {
        self.state.holder()
    }

    /// Whether `later` shows the same term with the same expiry.
    #[must_use]
    pub fn is_unchanged_in(&self, later: &Self) -> bool {
        (&self.state, self.fence, self.expires_at) == (&later.state, later.fence, later.expires_at)
    }

    /// Milliseconds until the expiry, negative once past; `None` if it never comes, or always was.
    #[must_use]
    pub const fn expires_in_ms(&self) -> Option<i64> {
        self.expires_at.millis_since(self.now)
    }

    /// Time until the expiry: zero once past, and without end if it never comes.
    #[must_use]
    pub fn expires_in(&self) -> Duration {
        match self.expires_at {
            ServerTime::Never => Duration::MAX,
            ServerTime::Always => Duration::ZERO,
            ServerTime::At(_) => {
                let left = self.expires_in_ms().unwrap_or(0);
                Duration::from_millis(u64::try_from(left).unwrap_or(0))
            }
        }
    }

    /// Milliseconds from the beginning of the term until now, or until its expiry once that is past: nobody holds it any
    /// more then. `None` if the beginning or that end is endless.
    #[must_use]
    pub fn held_for_ms(&self) -> Option<i64> {
        self.now.min(self.expires_at).millis_since(self.acquired_at)
    }
}

/// The state of a row, by the server's clock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LeaseState {
    /// This holder has it.
    Held(String),
    /// This holder vanished without releasing: the next claim gets it.
    Expired(String),
    /// Released, but not claimable yet (`--hold-at-least`).
    Cooling,
    /// Released, or never claimed.
    Free,
}

impl LeaseState {
    /// The word that the table and the JSON show.
    #[must_use]
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Held(_) => "held",
            Self::Expired(_) => "expired",
            Self::Cooling => "cooling",
            Self::Free => "free",
        }
    }

    /// Whose lease it is, or was until it expired.
    #[must_use]
    pub fn holder(&self) -> Option<&str> {
        match self {
            Self::Held(holder) | Self::Expired(holder) => Some(holder),
            Self::Cooling | Self::Free => None,
        }
    }
}
