//! Text, shell, JSON and OpenMetrics; escaping; and all writes to stdout and stderr, except for those of `lib`.
//!
//! Data goes to stdout. Messages go to stderr, one line each, and each begins with `lease: `.

mod chart;
mod history;
mod layout;
mod metrics;
mod report;
mod run_ended;
mod screen;
mod status;
mod stderr_writer;
mod term;
mod width;

use std::fmt::Display;
use std::io::{self, IsTerminal as _, Write};

use crate::lease::{LeaseState, Loss, Row, ServerTime, Term};
use crate::process;
use crate::record::Culprit;
use crate::timing::human;

pub use self::chart::{Paper, Window, chart};
pub use self::history::{
    Look, Overdue, ended, history_json, history_table, last_run, last_runs_json, last_runs_table,
    overdue_json, overdue_table,
};
pub use self::layout::span;
pub use self::metrics::openmetrics;
pub use self::report::{Level, not_released, report};
pub use self::run_ended::run_ended;
pub use self::screen::{Screen, ScreenView, leave_screen, local_time};
pub use self::status::{Shown, status_json, status_table};
pub use self::stderr_writer::StderrWriter;
pub use self::term::{term_json, term_shell};

/// How much is written to stderr.
#[derive(Clone, Copy, Debug)]
pub struct Verbosity {
    /// Whether only errors are written.
    pub quiet: bool,
    /// Whether steps are written too.
    pub verbose: bool,
}

impl Verbosity {
    /// Writes an error, whatever the verbosity.
    pub fn error(self, message: impl Display) {
        write_message(&message.to_string());
    }

    /// Writes information, such as a skipped run, unless `--quiet` is given.
    pub fn info(self, message: impl Display) {
        if !self.quiet {
            write_message(&message.to_string());
        }
    }

    /// Writes a step, if `--verbose` is given.
    pub fn step(self, message: impl Display) {
        if self.verbose {
            write_message(&message.to_string());
        }
    }
}

/// Writes one line to stderr, in one call, so that lines of several processes do not mix.
///
/// A failure is ignored: it cannot be reported anywhere, and a full disk must not stop a job.
pub fn write_message(message: &str) {
    let _ = io::stderr().write_all(line(message).as_bytes());
}

fn line(message: &str) -> String {
    format!("lease: {}\n", escape(message))
}

/// The line that a watchdog writes itself after it has stopped the job of `key`, because `lease` may be gone.
#[must_use]
pub fn watchdog_line(key: &str) -> String {
    line(&format!(
        "the watchdog has stopped the job of {key}: lease was killed, or had not stopped it in time"
    ))
}

/// Writes data to stdout.
///
/// # Errors
/// If the data cannot be written: a full disk, a closed pipe.
pub fn print(data: &str) -> io::Result<()> {
    stdout_is_open()?;
    let mut out = io::stdout().lock();
    out.write_all(data.as_bytes())?;
    out.flush()
}

/// Checks that stdout is open. The standard library replaces a closed one by /dev/null, which accepts everything.
///
/// # Errors
/// If stdout was closed at the start.
pub fn stdout_is_open() -> io::Result<()> {
    if process::was_closed_at_start(1) {
        return Err(io::Error::other("stdout is closed"));
    }
    Ok(())
}

/// Whether messages appear on a terminal.
#[must_use]
pub fn stderr_is_a_terminal() -> bool {
    io::stderr().is_terminal()
}

/// How many characters a line of the terminal has that stdout is. `None` if it is not a terminal.
#[must_use]
pub fn stdout_columns() -> Option<usize> {
    process::terminal_size(io::stdout()).map(|size| size.columns)
}

/// `text`, drawn over the previous content of the terminal. Clearing the whole screen first would flicker, so each line is
/// cleared to its end, and then the rest of the screen.
#[must_use]
pub fn redraw(text: &str) -> String {
    format!("\u{1b}[H{}\u{1b}[J", text.replace('\n', "\u{1b}[K\n"))
}

/// Text that cannot control a terminal: control characters, and characters that hide or reverse others, become escapes.
#[must_use]
pub fn escape(text: &str) -> String {
    if !text.chars().any(controls_the_terminal) {
        return text.to_owned();
    }
    let mut out = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        if controls_the_terminal(c) {
            out.extend(c.escape_default());
        } else {
            out.push(c);
        }
    }
    out
}

/// Control characters (C0, DEL, C1), line and paragraph separators, and the invisible characters of Unicode's
/// bidirectional algorithm ("Trojan Source", CVE-2021-42574).
fn controls_the_terminal(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200B}'..='\u{200F}' | '\u{2028}'..='\u{202E}' | '\u{2060}'..='\u{2069}' | '\u{FEFF}')
}

/// Who holds the lease, for a claim that did not get it.
#[must_use]
pub fn held_by(row: &Row) -> String {
    let (key, fence) = (&row.key, row.fence);
    let left =
        (row.expires_at != ServerTime::Never).then(|| human(whole_seconds(row.expires_in())));
    match (row.holder(), left) {
        (Some(holder), None) => format!("{key} is held by {holder} (fence {fence}), never expires"),
        (Some(holder), Some(left)) => {
            format!("{key} is held by {holder} (fence {fence}), expires in {left} unless renewed")
        }
        (None, None) => format!("{key} is cooling forever"),
        (None, Some(left)) => format!("{key} is cooling for another {left} (--hold-at-least)"),
    }
}

/// Why a term has ended, or never existed.
#[must_use]
pub fn loss(loss: &Loss) -> String {
    match loss {
        Loss::Taken(row) => {
            let fence = row.fence;
            match &row.state {
                LeaseState::Held(holder) => format!("{holder} holds it now (fence {fence})"),
                LeaseState::Expired(holder) => {
                    format!("{holder} claimed it (fence {fence}) and let it expire")
                }
                LeaseState::Cooling | LeaseState::Free => {
                    format!("another holder claimed and released it (fence {fence})")
                }
            }
        }
        Loss::Mismatch { asked, found } => mismatch(asked, found),
        Loss::Expired => "it expired before it was renewed".to_owned(),
        Loss::Released => "it was released".to_owned(),
        Loss::NoRow => {
            "its row does not exist (it was deleted, or the key was never claimed)".to_owned()
        }
        Loss::NoTable(table) => format!("table {table} does not exist (see --table)"),
    }
}

/// Why a term has ended, and by whom it was ended if that is known.
#[must_use]
pub fn loss_by(why: &Loss, culprit: Option<&Culprit>) -> String {
    match (culprit, why) {
        (Some(culprit), Loss::Released) => format!("its holder was evicted{}", by(culprit)),
        (Some(culprit), Loss::Taken(_) | Loss::Mismatch { .. }) => {
            format!("{}, after an eviction{}", loss(why), by(culprit))
        }
        (Some(_), Loss::Expired | Loss::NoRow | Loss::NoTable(_)) | (None, _) => loss(why),
    }
}

/// Who has evicted a holder. Only `lease` says on which host it ran; an eviction without one was done with SQL.
fn by(culprit: &Culprit) -> String {
    let mut text = String::new();
    if let Some(role) = &culprit.role {
        text.push_str(&format!(" by role {role}"));
    }
    if let Some(host) = &culprit.host {
        text.push_str(&format!(" on {host} with lease release --force"));
    }
    text
}

/// Which part of a term differs from the table: the holder, the fence, or both.
fn mismatch(asked: &Term, found: &Row) -> String {
    let (me, fence, last) = (asked.holder.as_str(), asked.fence, found.fence);
    let (holder, has, expired) = match &found.state {
        LeaseState::Held(holder) => (holder, "holds", ""),
        LeaseState::Expired(holder) => (holder, "held", ", and let it expire"),
        LeaseState::Cooling | LeaseState::Free => {
            return format!("nobody holds it, and its last fence is {last}, not {fence}");
        }
    };
    if holder == me {
        format!("{me} {has} it with fence {last}, not {fence}{expired}")
    } else if last == fence {
        format!("fence {fence} belongs to {holder}, not to {me}")
    } else {
        format!("{holder} {has} it with fence {last}, not {me} with fence {fence}{expired}")
    }
}

/// Whole seconds above one second. More digits would suggest a precision that the value does not have.
fn whole_seconds(duration: std::time::Duration) -> std::time::Duration {
    if duration.as_secs() >= 1 {
        std::time::Duration::from_secs(duration.as_secs())
    } else {
        duration
    }
}

/// JSON that cannot control a terminal. The serializer escapes only the characters below U+0020.
fn harmless_json(json: String) -> String {
    if !json.chars().any(controls_the_terminal) {
        return json;
    }
    json.chars()
        .map(|c| {
            if controls_the_terminal(c) && c != '\n' {
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
    fn a_row_cannot_write_to_the_terminal() {
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
