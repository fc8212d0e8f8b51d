//! Text, shell and JSON; escaping; and the only writes to stdout and stderr besides `lib`.
//!
//! stdout is data. stderr is prose, a line each, beginning `lease: `.

mod report;
mod speaker;
mod status;
mod term;

use std::fmt::Display;
use std::io::{self, Write};

use crate::lease::{Lease, LeaseState, Loss, Row};
use crate::process;
use crate::timing::human;

pub use self::report::{Level, not_released, report};
pub use self::speaker::Speaker;
pub use self::status::{Shown, span, status_json, status_table};
pub use self::term::{term_json, term_shell};

/// How much is said on stderr.
#[derive(Clone, Copy, Debug)]
pub struct Voice {
    /// Errors only.
    pub quiet: bool,
    /// Steps too.
    pub verbose: bool,
}

impl Voice {
    /// Something that went wrong. Always said.
    pub fn error(self, message: impl Display) {
        say(&message.to_string());
    }

    /// Something that is good to know: a skipped run, a pause that is over. Not said under `--quiet`.
    pub fn info(self, message: impl Display) {
        if !self.quiet {
            say(&message.to_string());
        }
    }

    /// A step. Said under `--verbose` only.
    pub fn step(self, message: impl Display) {
        if self.verbose {
            say(&message.to_string());
        }
    }
}

/// Writes one line to stderr, in one call, so that lines of several processes don't mix.
///
/// A failure is passed over: there is nowhere left to report it, and a full disk must not stop a job.
pub fn say(message: &str) {
    let _ = io::stderr().write_all(line(message).as_bytes());
}

fn line(message: &str) -> String {
    format!("lease: {}\n", escape(message))
}

/// The line that a watchdog writes by itself once it has stopped the job of `key`: nobody else is left to say it.
#[must_use]
pub fn watchdog_line(key: &str) -> String {
    line(&format!(
        "the watchdog has stopped the job of {key}: lease was killed, or had not stopped it in time"
    ))
}

/// Writes data to stdout.
///
/// # Errors
/// When it can't be written: a full disk, a closed pipe.
pub fn print(data: &str) -> io::Result<()> {
    stdout_is_open()?;
    let mut out = io::stdout().lock();
    out.write_all(data.as_bytes())?;
    out.flush()
}

/// Whether there is a stdout. The standard library puts /dev/null in the place of one that is closed, which takes all.
///
/// # Errors
/// When there is none.
pub fn stdout_is_open() -> io::Result<()> {
    if process::was_closed_at_start(1) {
        return Err(io::Error::other("stdout is closed"));
    }
    Ok(())
}

/// `text` drawn over what the terminal showed before, without a flicker: from the top, each line cleared to its end, and
/// what is below cleared too.
#[must_use]
pub fn redraw(text: &str) -> String {
    format!("\u{1b}[H{}\u{1b}[J", text.replace('\n', "\u{1b}[K\n"))
}

/// Text in which nothing can steer a terminal: control characters, and characters that hide or turn around others, are
/// shown as escapes.
#[must_use]
pub fn escape(text: &str) -> String {
    if !text.chars().any(steers) {
        return text.to_owned();
    }
    let mut out = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        if steers(c) {
            out.extend(c.escape_default());
        } else {
            out.push(c);
        }
    }
    out
}

/// Control characters (C0, DEL, C1), line and paragraph separators, and the invisible characters of Unicode's
/// bidirectional algorithm ("Trojan Source", CVE-2021-42574).
fn steers(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200B}'..='\u{200F}' | '\u{2028}'..='\u{202E}' | '\u{2060}'..='\u{2069}' | '\u{FEFF}')
}

/// Who is in the way, for a claim that did not get the lease.
#[must_use]
pub fn held_by(row: &Row) -> String {
    let left = human(whole_seconds(row.expires_in()));
    let never = row.expires_in_ms >= status::FOREVER_MS;
    match &row.holder {
        Some(holder) if never => format!(
            "{} is held by {holder} (fence {}), never expires",
            row.key, row.fence
        ),
        Some(holder) => format!(
            "{} is held by {holder} (fence {}), expires in {left} unless renewed",
            row.key, row.fence
        ),
        None if never => format!("{} is cooling forever", row.key),
        None => format!(
            "{} is cooling for another {left} (--hold-at-least)",
            row.key
        ),
    }
}

/// Why a term is over, or never was.
#[must_use]
pub fn loss(loss: &Loss) -> String {
    match loss {
        Loss::Taken(row) => match (&row.holder, row.state) {
            (Some(holder), LeaseState::Held) => {
                format!("{holder} holds it now (fence {})", row.fence)
            }
            (Some(holder), LeaseState::Expired | LeaseState::Cooling | LeaseState::Free) => {
                format!(
                    "{holder} claimed it (fence {}) and let it expire",
                    row.fence
                )
            }
            (None, _) => format!(
                "another holder claimed and released it (fence {})",
                row.fence
            ),
        },
        Loss::Mismatch { asked, found } => mismatch(asked, found),
        Loss::Expired => "it expired before it was renewed".to_owned(),
        Loss::Released => "it was released".to_owned(),
        Loss::NoRow => {
            "its row does not exist (it was deleted, or the key was never claimed)".to_owned()
        }
        Loss::NoTable(table) => format!("table {table} does not exist (see --table)"),
    }
}

/// What of a term is not as the table has it: the holder, the fence, or both.
fn mismatch(asked: &Lease, found: &Row) -> String {
    let (me, fence) = (asked.holder.as_str(), asked.fence);
    let Some(holder) = &found.holder else {
        return format!(
            "nobody holds it, and its last fence is {}, not {fence}",
            found.fence
        );
    };
    let (has, expired) = match found.state {
        LeaseState::Held => ("holds", ""),
        LeaseState::Expired | LeaseState::Cooling | LeaseState::Free => {
            ("held", ", and let it expire")
        }
    };
    let last = found.fence;
    if holder == me {
        format!("{me} {has} it with fence {last}, not {fence}{expired}")
    } else if last == fence {
        format!("fence {fence} belongs to {holder}, not to {me}")
    } else {
        format!("{holder} {has} it with fence {last}, not {me} with fence {fence}{expired}")
    }
}

/// Whole seconds above one second: finer figures only look exact.
fn whole_seconds(duration: std::time::Duration) -> std::time::Duration {
    if duration.as_secs() >= 1 {
        std::time::Duration::from_secs(duration.as_secs())
    } else {
        duration
    }
}

/// JSON in which no character can steer a terminal: the serializer escapes C0 only.
fn harmless_json(json: String) -> String {
    if !json.chars().any(steers) {
        return json;
    }
    json.chars()
        .map(|c| {
            if steers(c) && c != '\n' {
                format!("\\u{:04x}", u32::from(c))
            } else {
                c.to_string()
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_can_not_write_to_the_terminal() {
        assert_eq!(escape("\u{1b}]0;owned\u{7}"), r"\u{1b}]0;owned\u{7}");
        assert_eq!(escape("a\u{9b}2Jb"), r"a\u{9b}2Jb");
        assert_eq!(escape("user\u{202e}nimda"), r"user\u{202e}nimda");
        assert_eq!(escape("naïve ✓"), "naïve ✓");
        assert_eq!(
            harmless_json("\"a\u{9b}\u{202e}\"".to_owned()),
            r#""a\u009b\u202e""#
        );
    }
}
