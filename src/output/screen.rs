//! A screen of its own on the terminal, which disappears when it is left: the alternate screen of xterm(1), which every
//! terminal has today.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

use jiff::Timestamp;

use super::history::local_zone;
use super::width::{shorten, width, wrap};
use super::{escape, print};
use crate::process::{self, Size};

/// To the alternate screen; hide the cursor; a line that is too long does not go on in the next one.
const ENTER: &str = "\u{1b}[?1049h\u{1b}[?25l\u{1b}[?7l";
const LEAVE: &str = "\u{1b}[?7h\u{1b}[?25h\u{1b}[?1049l";
/// For a terminal that does not know its size.
const USUAL: Size = Size {
    rows: 24,
    columns: 80,
};
/// The lines that a notice may take.
const NOTICE: usize = 3;
/// From how many rows on there is an empty line above the table.
const ROOMY: usize = 8;

/// Whether the screen is shown. Not a field of [`Screen`], because a panic must find it.
static IS_SHOWN: AtomicBool = AtomicBool::new(false);

/// What is shown.
#[derive(Clone, Debug)]
pub struct ScreenView<'a> {
    /// On the left of the first line.
    pub title: &'a str,
    /// On the right of the first line: when the table was read.
    pub time: &'a str,
    /// What went wrong.
    pub notice: Option<&'a str>,
    /// A table with a heading, or one line without.
    pub table: &'a str,
}

/// The screen. Dropped, it is left, and the terminal is as before.
#[derive(Debug)]
pub struct Screen(());

impl Screen {
    /// A screen on stdout. `None` if that is not a terminal that can show one. Nothing is shown yet.
    #[must_use]
    pub fn open() -> Option<Self> {
        let is_dumb = std::env::var_os("TERM").is_none_or(|term| term.is_empty() || term == "dumb");
        (!is_dumb && process::stdout_can_show_a_screen()).then_some(Self(()))
    }

    /// Its size now.
    #[must_use]
    pub fn size(&self) -> Size {
        process::terminal_size(io::stdout()).unwrap_or(USUAL)
    }

    /// Whether it is shown.
    #[must_use]
    pub fn is_shown(&self) -> bool {
        IS_SHOWN.load(Ordering::SeqCst)
    }

    /// Draws, but only in the foreground: in the background the terminal is somebody else's.
    ///
    /// # Errors
    /// If the terminal is gone.
    pub fn draw(&self, view: &ScreenView<'_>) -> io::Result<()> {
        if !process::is_foreground(io::stdout()) {
            self.forget();
            return Ok(());
        }
        let frame = frame(view, self.size());
        if IS_SHOWN.swap(true, Ordering::SeqCst) {
            return print(&frame);
        }
        process::set_key_modes()?;
        print(&format!("{ENTER}{frame}"))
    }

    /// Somebody else had the terminal: the next drawing sets everything anew.
    pub fn forget(&self) {
        IS_SHOWN.store(false, Ordering::SeqCst);
    }

    /// Leaves it until the next drawing.
    pub fn leave(&self) {
        leave_screen();
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        leave_screen();
    }
}

/// Leaves the screen, if one is shown, so that a message can be seen.
pub fn leave_screen() {
    if IS_SHOWN.swap(false, Ordering::SeqCst) && process::is_foreground(io::stdout()) {
        let _: io::Result<()> = print(LEAVE);
        process::restore_modes();
    }
}

/// The time of this machine, in the time zone of the person who watches (TZ).
#[must_use]
pub fn local_time() -> String {
    let (zone, unknown) = local_zone();
    let now = Timestamp::now().to_zoned_datetime(zone);
    let mut time = now.strftime("%Y-%m-%d %H:%M:%S %Z").to_string();
    if unknown.is_some() {
        time.push_str(" (TZ is unknown)");
    }
    time
}

/// The escape sequences and the text of one drawing. Each line is addressed, because a newline in the last one would move
/// all others up, and is cleared before it is written, because a full line leaves the cursor on its last character.
fn frame(view: &ScreenView<'_>, size: Size) -> String {
    let lines = lines(view, size);
    let mut out = String::new();
    for (at, line) in lines.iter().enumerate() {
        out.push_str(&format!("\u{1b}[{};1H\u{1b}[K{line}", at + 1));
    }
    if lines.len() < size.rows {
        out.push_str(&format!("\u{1b}[{};1H\u{1b}[J", lines.len() + 1));
    }
    out
}

fn lines(view: &ScreenView<'_>, Size { rows, columns }: Size) -> Vec<String> {
    let mut lines = vec![first_line(view.title, view.time, columns)];
    if let Some(notice) = view.notice {
        lines.extend(wrap(&escape(notice), columns, NOTICE));
    }
    if rows >= ROOMY {
        lines.push(String::new());
    }
    let mut table = view.table.lines().map(|line| shorten(line, columns));
    lines.extend(table.next());
    let table: Vec<String> = table.collect();
    let room = rows.saturating_sub(lines.len());
    if table.len() <= room {
        lines.extend(table);
    } else if let Some(shown) = room.checked_sub(1) {
        let hidden = table.len() - shown;
        lines.extend(table.into_iter().take(shown));
        lines.push(shorten(&format!("… {hidden} more"), columns));
    }
    lines.truncate(rows);
    lines
}

fn first_line(title: &str, time: &str, columns: usize) -> String {
    let title = escape(title);
    // The title matters more.
    let Some(room) = columns
        .checked_sub(width(time) + 2)
        .filter(|room| *room >= 10)
    else {
        return shorten(&title, columns);
    };
    let title = shorten(&title, room);
    let gap = columns - width(&title) - width(time);
    format!("{title}{}{time}", " ".repeat(gap))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "KEY  STATE\na    held\nb    held\nc    held\n";

    fn shown(rows: usize, columns: usize, notice: Option<&str>) -> Vec<String> {
        let view = ScreenView {
            title: "db-1:5432/app",
            time: "04:00:01",
            notice,
            table: TABLE,
        };
        lines(&view, Size { rows, columns })
    }

    #[test]
    fn what_does_not_fit_is_counted() {
        let head = "db-1:5432/app        04:00:01";
        let all = [
            head,
            "",
            "KEY  STATE",
            "a    held",
            "b    held",
            "c    held",
        ];
        assert_eq!(shown(8, 29, None), all);
        assert_eq!(
            shown(4, 29, None),
            [head, "KEY  STATE", "a    held", "… 2 more"]
        );
        assert_eq!(shown(3, 29, None), [head, "KEY  STATE", "… 3 more"]);
        assert_eq!(shown(2, 29, None), [head, "KEY  STATE"]);
        assert_eq!(shown(1, 29, None), [head]);
        assert_eq!(shown(5, 8, None)[..3], ["db-1:54…", "KEY  ST…", "a    he…"]);
    }

    #[test]
    fn a_notice_stands_above_the_table_in_at_most_three_lines() {
        let lines = shown(12, 29, Some("cannot read the leases: \u{1b}[2J"));
        assert_eq!(lines[1], "cannot read the leases:");
        assert_eq!(lines[2..4], [r"\u{1b}[2J", ""]);
        assert_eq!(shown(12, 29, Some(&"word ".repeat(40)))[4], "");
    }

    #[test]
    fn no_line_is_longer_than_the_terminal() {
        for columns in 1..60 {
            for line in shown(12, columns, Some("cannot read the leases: no answer")) {
                assert!(width(&line) <= columns, "{columns}: {line:?}");
            }
        }
    }
}
