//! A term, its fence, and its times.

use std::fmt;
use std::num::IntErrorKind;
use std::str::FromStr;
use std::time::Duration;

use serde::Serialize;

use super::invalid::Invalid;
use super::names::{Holder, Key};
use super::server_time::ServerTime;

/// The fencing token: larger for every new term of a key than for all terms before.
///
/// Microseconds since 1970 by the server's clock, or one more than the last fence where that is larger. At least 1, also
/// in tables that count from there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct Fence(i64);

impl Fence {
    /// A fence as it came from the table, whatever it is.
    #[must_use]
    pub const fn from_row(value: i64) -> Self {
        Self(value)
    }

    /// The number.
    #[must_use]
    pub const fn get(self) -> i64 {
        self.0
    }
}

impl FromStr for Fence {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        const RIGHT: &str = "give it as lease printed it, such as 1796098343884123";
        // Enough to recognize the value.
        let given: String = text.chars().take(24).collect();
        let wrong = |why: String| Err(Invalid::new(format!("{why} ({RIGHT})")));
        match text.parse::<i64>() {
            Ok(value) if value >= 1 => Ok(Self(value)),
            Ok(value) => wrong(format!("{value} is not a fence, which is at least 1")),
            Err(_) if text.is_empty() => wrong("the fence is empty".to_owned()),
            Err(e) if *e.kind() == IntErrorKind::PosOverflow => {
                wrong(format!("\"{given}\" is larger than any fence"))
            }
            Err(_) => wrong(format!("\"{given}\" is not a whole number")),
        }
    }
}

impl fmt::Display for Fence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// One term: one tenure of a key by a holder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Term {
    /// Its key.
    pub key: Key,
    /// Its holder.
    pub holder: Holder,
    /// Its fencing token.
    pub fence: Fence,
}

/// A term together with the times that the server answered when it granted or renewed it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grant {
    /// The term.
    pub term: Term,
    /// When it began, by the server's clock.
    pub acquired_at: ServerTime,
    /// When it ends unless it is renewed, by the server's clock.
    pub expires_at: ServerTime,
    /// From the server's reading of its clock until the expiry.
    pub expires_in: Duration,
    /// Whether the term has begun with this very answer. One that was extended had been granted before, to somebody who
    /// may count on it; so may have been one whose first answer was lost.
    pub is_new: bool,
}
