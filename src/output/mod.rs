//! Text, shell, JSON and OpenMetrics; escaping; and all writes to stdout and stderr, except for those of `lib`.
//!
//! Data goes to stdout. Messages go to stderr, one line each, and each begins with `lease: `.

mod bottom_line;
mod chart;
mod escape;
mod history;
mod layout;
mod message;
mod metrics;
mod report;
mod report_fields;
mod run_ended;
mod screen;
mod spool;
mod status;
mod stderr_writer;
mod term;
mod wait_line;
mod width;

use std::fmt::Display;
use std::io::{self, IsTerminal as _, Write};

use crate::lease::{LeaseState, Loss, Row, ServerTime, Term};
use crate::process;
use crate::record::Culprit;
use crate::text::PreparedLine;
use crate::timing::human;

pub use self::chart::{Chart, Paper, Window};
pub use self::escape::escape;
pub use self::history::{
    Look, ended, history_lines, last_lines, last_run, overdue_lines, push_last, push_overdue,
    push_run,
};
pub use self::layout::span;
pub use self::message::{Level, Message, log_as_json, log_fence, log_holder};
pub use self::metrics::{Gauges, openmetrics};
pub use self::report::{not_released, report};
pub use self::run_ended::{renewed, run_ended};
pub use self::screen::{Screen, ScreenView, leave_screen, local_time};
pub use self::spool::Lines;
pub use self::status::{Shown, push_status, status_json, status_lines, status_table};
pub use self::stderr_writer::StderrWriter;
pub use self::term::{term_json, term_shell};
pub use self::wait_line::WaitLine;

/// How much is written to stderr.
#[derive(Clone, Copy, Debug)]
pub struct Verbosity {
    /// Whether only errors are written.
    pub quiet: bool,
    /// Whether steps are written too.
    pub verbose: bool,
}

impl Verbosity {
    /// Writes a message, if its level is wanted.
    pub fn write(self, message: &Message) {
        if self.wants(message.level) {
            write_message(message);
        }
    }

    /// Writes an error of a verb that has no events.
    pub fn error(self, message: impl Display) {
        self.write(&Message::new(Level::Error, NO_EVENT, message));
    }

    /// Writes information of a verb that has no events, unless `--quiet` is given.
    pub fn info(self, message: impl Display) {
        self.write(&Message::new(Level::Info, NO_EVENT, message));
    }

    /// Writes a step of a verb that has no events, if `--verbose` is given.
    pub fn step(self, message: impl Display) {
        self.write(&Message::new(Level::Step, NO_EVENT, message));
    }

    const fn wants(self, level: Level) -> bool {
        match level {
            Level::Error => true,
            Level::Info => !self.quiet,
            Level::Step => self.verbose,
        }
    }
}

/// Only `run` writes its messages for programs too.
const NO_EVENT: &str = "message";

/// Writes a message to stderr, whatever the verbosity.
pub fn write_message(message: &Message) {
    write_line(&message.line());
}

/// Writes one line to stderr, in one call, so that lines of several processes do not mix.
///
/// A failure is ignored: it cannot be reported anywhere, and a full disk must not stop a job.
fn write_line(line: &str) {
    let text = format!("{}{line}", bottom_line::clearing());
    let _ = io::stderr().write_all(text.as_bytes());
}

/// The line that a watchdog writes itself after it has stopped the job of `key`, because `lease` may be gone.
#[must_use]
pub fn watchdog_line(key: &str) -> PreparedLine {
    message::prepared(&Message::new(
        Level::Error,
        "watchdog_stopped_job",
        format!(
            "the watchdog has stopped the job of {key}: lease was killed, or had not stopped it in time"
        ),
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
