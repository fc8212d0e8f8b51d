//! Keys and holders.

use std::str::FromStr;

use serde::Serialize;

use super::invalid::Invalid;

/// The longest key, in bytes. Below the 2,704 bytes that fit into a B-tree entry of PostgreSQL.
pub const KEY_MAX_BYTES: usize = 1024;

/// The longest holder or name, in bytes.
pub const HOLDER_MAX_BYTES: usize = 255;

fn text_within(what: &str, text: &str, max: usize) -> Result<(), Invalid> {
    if text.is_empty() {
        return Err(Invalid::new(format!(
            "{what} is empty (1 to {max} bytes are allowed)"
        )));
    }
    if text.len() > max {
        return Err(Invalid::new(format!(
            "{what} has {} bytes (1 to {max} are allowed)",
            text.len()
        )));
    }
    if text.contains('\0') {
        return Err(Invalid::new(format!(
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
            .map_err(|e| Invalid::new(format!("no random number for the holder: {e}")))?
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
