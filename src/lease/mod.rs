//! The types that every other room uses: a lease, its holder, and the outcomes of an operation on it.
//!
//! A *term* ([`Term`]) is one tenure of a key, from its grant to its end. It is identified by key, holder and fence.
//! Every statement acts on a term, never on a key alone, so that a late release can't end the term of a successor.

mod outcome;
mod server_time;

use std::fmt;
use std::num::IntErrorKind;
use std::str::FromStr;
use std::time::Duration;

use serde::Serialize;

pub use self::outcome::{Claim, Eviction, Loss, Release, Renewal, Success};
pub use self::server_time::ServerTime;

/// The longest key, in bytes. Below the 2,704 bytes that fit into a B-tree entry of PostgreSQL.
pub const KEY_MAX_BYTES: usize = 1024;

/// The longest holder or name, in bytes.
pub const HOLDER_MAX_BYTES: usize = 255;

/// A value that cannot be valid. The text says what would be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invalid(String);

impl Invalid {
    /// A complaint, as a lowercase fragment.
    #[must_use]
    pub fn new(what: impl Into<String>) -> Self {
        Self(what.into())
    }
}

impl fmt::Display for Invalid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Invalid {}

fn text_within(what: &str, text: &str, max: usize) -> Result<(), Invalid> {
    if text.is_empty() {
        return Err(Invalid(format!(
            "{what} is empty (1 to {max} bytes are allowed)"
        )));
    }
    if text.len() > max {
        return Err(Invalid(format!(
            "{what} has {} bytes (1 to {max} are allowed)",
            text.len()
        )));
    }
    if text.contains('\0') {
        return Err(Invalid(format!(
            "{what} contains a NUL byte, which PostgreSQL cannot store"
        )));
    }
    Ok(())
}

/// What a lease is on: 1 to [`KEY_MAX_BYTES`] bytes of UTF-8 without NUL.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(transparent)]
pub struct Key(String);

impl Key {
    /// The key as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for Key {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        text_within("the key", text, KEY_MAX_BYTES)?;
        Ok(Self(text.to_owned()))
    }
}

/// Who holds a lease: 1 to [`HOLDER_MAX_BYTES`] bytes of UTF-8 without NUL, never empty.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(transparent)]
pub struct Holder(String);

/// The random part of a holder, in hexadecimal digits: 48 bits.
const RANDOM_DIGITS: usize = 12;

impl Holder {
    /// A new identity: `name`, which is for people, and 48 random bits, which keep two processes on one host, two
    /// containers with one host name, or a restart, from being taken for one another. A name that leaves no room for the
    /// random part is shortened.
    ///
    /// # Errors
    /// When `name` is empty, too long or holds a NUL, or there are no random numbers to be had.
    pub fn fresh(name: &str) -> Result<Self, Invalid> {
        text_within("the name", name, HOLDER_MAX_BYTES)?;
        let mut end = name.len().min(HOLDER_MAX_BYTES - RANDOM_DIGITS - 1);
        while !name.is_char_boundary(end) {
            end -= 1;
        }
        let name = &name[..end];
        // From the operating system: two machines cloned from one image must not draw the same number.
        let random = getrandom::u64()
            .map_err(|e| Invalid(format!("no random number for the holder: {e}")))?
            >> (64 - RANDOM_DIGITS * 4);
        Ok(Self(format!(
            "{name}-{random:0width$x}",
            width = RANDOM_DIGITS
        )))
    }

    /// The holder as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for Holder {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        text_within("the holder", text, HOLDER_MAX_BYTES)?;
        Ok(Self(text.to_owned()))
    }
}

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
        let wrong = |why: String| Err(Invalid(format!("{why} ({RIGHT})")));
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_has_1_to_1024_bytes_and_no_nul() {
        assert!("k".parse::<Key>().is_ok());
        assert!("é".repeat(512).parse::<Key>().is_ok());
        assert!("é".repeat(513).parse::<Key>().is_err());
        assert!("".parse::<Key>().is_err());
        assert!("a\0b".parse::<Key>().is_err());
    }

    #[test]
    fn fresh_holders_differ_and_never_outgrow_their_limit() {
        let a = Holder::fresh("web-3").expect("a plain name");
        let b = Holder::fresh("web-3").expect("a plain name");
        assert_ne!(a, b);
        assert!(a.as_str().starts_with("web-3-"));
        for long in [
            "n".repeat(HOLDER_MAX_BYTES),
            format!("x{}", "é".repeat(127)),
        ] {
            let holder = Holder::fresh(&long).expect("a long name is shortened");
            assert!((HOLDER_MAX_BYTES - 1..=HOLDER_MAX_BYTES).contains(&holder.as_str().len()));
        }
        assert!(Holder::fresh(&"n".repeat(HOLDER_MAX_BYTES + 1)).is_err());
        assert!(Holder::fresh("").is_err());
    }

    #[test]
    fn a_fence_is_a_whole_number_from_1_on() {
        assert_eq!("1".parse::<Fence>().map(Fence::get), Ok(1));
        assert_eq!(
            "1796098343884123".parse::<Fence>().map(Fence::get),
            Ok(1_796_098_343_884_123)
        );
        for bad in ["", "seven", "0", "-1", "1.5", "9223372036854775808", "0x10"] {
            assert!(bad.parse::<Fence>().is_err(), "{bad}");
        }
    }
}
