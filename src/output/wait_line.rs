//! The line at the bottom of a terminal that says whom a claim waits for, and how long it has.
//!
//! It is written over itself and leaves nothing behind. Every message clears it first.

use std::io::{self, IsTerminal as _, Write as _};
use std::time::Duration;

use super::bottom_line::{CLEAR, clearing, set_shown};
use super::width::shorten;
use super::{escape, whole_seconds};
use crate::clock::BootTime;
use crate::job::Signal;
use crate::lease::{Row, ServerTime};
use crate::process;
use crate::timing::human;

/// For a terminal that does not know its size.
const COLUMNS: usize = 80;

/// What the line says.
#[derive(Clone, Debug)]
pub struct WaitLine {
    /// Who has the lease, or until when it is cooling.
    pub row: Row,
    /// When that was read.
    pub read_at: BootTime,
    /// When the wait began.
    pub since: BootTime,
}

/// Whether there can be such a line: stderr is the terminal that controls this process, which is in its foreground.
///
/// Not if INT is ignored, as for `lease ... &` in a script: it shares the script's group and so its foreground.
#[must_use]
pub(super) fn is_possible() -> bool {
    let is_dumb = std::env::var_os("TERM").is_none_or(|term| term.is_empty() || term == "dumb");
    !is_dumb
        && io::stderr().is_terminal()
        && !process::ignored_at_start(Signal::INT)
        && process::is_foreground(io::stderr())
}

/// Draws the line anew, but not in the background, and not on a terminal that is stopped (Ctrl-S): a line that appears
/// when the terminal goes on would be out of date.
pub(super) fn draw(line: &WaitLine, now: BootTime) {
    if !process::is_foreground(io::stderr()) {
        set_shown(false);
        return;
    }
    if !process::takes_output(io::stderr()) {
        return;
    }
    let columns = process::terminal_size(io::stderr()).map_or(COLUMNS, |size| size.columns);
    // Room for the `^C` that the terminal echoes, and for the cursor: all has to stay in one line.
    let text = shorten(&text(line, now), columns.saturating_sub(3));
    set_shown(true);
    let _ = io::stderr().write_all(format!("{CLEAR}{text}").as_bytes());
}

/// Removes the line.
pub(super) fn clear() {
    let _ = io::stderr().write_all(clearing().as_bytes());
}

fn text(
    WaitLine {
        row,
        read_at,
        since,
    }: &WaitLine,
    now: BootTime,
) -> String {
    let waited = human(Duration::from_secs(now.since(*since).as_secs()));
    let left = (row.expires_at != ServerTime::Never).then(|| {
        human(whole_seconds(
            row.expires_in().saturating_sub(now.since(*read_at)),
        ))
    });
    let key = &row.key;
    let until = match (row.holder(), left) {
        (Some(holder), Some(left)) => format!("{key} is held by {holder}, expires in {left}"),
        (Some(holder), None) => format!("{key} is held by {holder}, never expires"),
        (None, Some(left)) => format!("{key} is cooling for another {left}"),
        (None, None) => format!("{key} is cooling forever"),
    };
    escape(&format!("lease: waiting: {waited} so far; {until}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lease::Fence;

    #[test]
    fn the_line_counts_up_the_wait_and_down_to_the_expiry() {
        let at = |seconds: u64| BootTime::from_nanos(seconds * 1_000_000_000);
        let line = |holder: &str, expires_at| WaitLine {
            row: Row::read(
                ("nightly".to_owned(), holder.to_owned(), Fence::from_row(9)),
                ServerTime::At(0),
                expires_at,
                ServerTime::At(1_000_000),
            ),
            read_at: at(102),
            since: at(100),
        };
        let until = ServerTime::At(41_000_000);
        assert_eq!(
            text(&line("web-3", until), at(112)),
            "lease: waiting: 12s so far; nightly is held by web-3, expires in 30s"
        );
        assert_eq!(
            text(&line("", until), at(200)),
            "lease: waiting: 1m 40s so far; nightly is cooling for another 0s"
        );
        assert!(
            text(&line("w\u{1b}[2J", ServerTime::Never), at(112))
                .ends_with(r"w\u{1b}[2J, never expires")
        );
    }
}
