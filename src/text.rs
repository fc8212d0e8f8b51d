//! The text of one line of a message: text from elsewhere, made fit for it, and a line that is written later.

use std::io;

use crate::clock::UTC_LENGTH;

/// The most characters of such a text that a message repeats.
const LIMIT: usize = 4000;

/// An error of the operating system in words: without its number, and in lower case like our own messages.
#[must_use]
pub fn os_error_text(error: &io::Error) -> String {
    without_number(&error.to_string())
}

/// The same, for an error whose text ends with one of the operating system.
#[must_use]
pub fn without_number(text: &str) -> String {
    let text = text.split_once(" (os error").map_or(text, |(t, _)| t);
    let mut chars = text.chars();
    let text = match (chars.next(), chars.next()) {
        (Some(a), Some(b)) if a.is_uppercase() && b.is_lowercase() => {
            format!("{}{}", a.to_lowercase(), &text[a.len_utf8()..])
        }
        _ => text.to_owned(),
    };
    one_line(&text)
}

/// Text as one line without control characters, cut off if a peer has sent too much of it.
#[must_use]
pub fn one_line(text: &str) -> String {
    let words = text.split(|c: char| c.is_whitespace() || c.is_control());
    let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
    words.join(" ").chars().take(LIMIT).collect()
}

/// A line that another process writes later, when it can format nothing but the time.
#[derive(Clone, Debug)]
pub struct PreparedLine {
    /// The line.
    pub text: String,
    /// Where the time is to be put, over what stands there; `None` for a line without one.
    pub time_at: Option<usize>,
}

impl PreparedLine {
    /// The parts of the line with this time. Async-signal-safe.
    #[must_use]
    pub fn at<'a>(&'a self, time: &'a [u8; UTC_LENGTH]) -> [&'a [u8]; 3] {
        let line = self.text.as_bytes();
        let parts = self.time_at.and_then(|at| {
            let (before, rest) = line.split_at_checked(at)?;
            Some([before, time, rest.get(UTC_LENGTH..)?])
        });
        parts.unwrap_or([line, &[], &[]])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_of_the_system_reads_like_our_own() {
        let unreachable = io::Error::from_raw_os_error(101);
        assert_eq!(os_error_text(&unreachable), "network is unreachable");
        assert_eq!(without_number("DNS is down"), "DNS is down");
    }

    #[test]
    fn a_peers_text_becomes_one_line_that_cannot_steer_a_terminal() {
        assert_eq!(one_line("a\x1b[31mb\n\t c\n"), "a [31mb c");
        assert_eq!(one_line(&"x".repeat(1_000_000)).len(), LIMIT);
    }
}
