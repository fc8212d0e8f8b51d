//! The chart of `history --chart`: a line for each key, a character for each part of the time.

use std::env;
use std::time::Duration;

use super::escape;
use super::history::Look;
use super::layout::span;
use super::width::{shorten, width};
use crate::lease::ServerTime;
use crate::process;
use crate::record::{End, Run};

/// The width if stdout is not a terminal: a file must not depend on where it was made.
const WIDTH: usize = 80;
/// Between columns.
const GAP: &str = "  ";
/// A narrower terminal gets a chart for this width.
const NARROWEST: usize = 40;
/// The part with the marks is at least so wide, so that two full times fit above it.
const MARKS: usize = 40;
/// At a narrow terminal it is narrower: two short times fit above it.
const FEWEST_MARKS: usize = 24;
/// From this length on, short times are days.
const DAYS: Duration = Duration::from_secs(14 * 24 * 3600);

/// What was the case in a part of the time. If several runs fall into it, the worst of them counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
enum Cell {
    #[default]
    Nothing,
    Ran,
    Running,
    Failed,
}

/// The time that a chart shows.
#[derive(Clone, Copy, Debug)]
pub struct Window {
    /// Its end, by the server's clock.
    pub now: ServerTime,
    /// Its length.
    pub length: Duration,
}

/// The characters, and how wide the whole is.
#[derive(Clone, Copy, Debug)]
pub struct Paper {
    width: usize,
    utf8: bool,
    is_terminal: bool,
}

impl Paper {
    /// As wide as the terminal. Characters beyond ASCII need a locale with UTF-8.
    #[must_use]
    pub fn of_this_terminal() -> Self {
        let locale = ["LC_ALL", "LC_CTYPE", "LANG"]
            .into_iter()
            .filter_map(env::var_os)
            .find(|value| !value.is_empty())
            .map(|value| value.to_string_lossy().to_lowercase());
        let columns = process::terminal_columns();
        Self {
            width: columns.unwrap_or(WIDTH),
            is_terminal: columns.is_some(),
            utf8: locale.is_some_and(|l| l.contains("utf-8") || l.contains("utf8")),
        }
    }

    fn shorten(self, key: &str, columns: usize) -> String {
        let short = shorten(key, columns);
        match short.strip_suffix('…') {
            Some(start) if !self.utf8 && short != key => format!("{start}~"),
            Some(_) | None => short,
        }
    }

    const fn mark(self, cell: Cell) -> char {
        match (cell, self.utf8) {
            (Cell::Nothing, true) => '·',
            (Cell::Ran, true) => '█',
            (Cell::Running, true) => '▒',
            (Cell::Failed, true) => '×',
            (Cell::Nothing, false) => '.',
            (Cell::Ran, false) => '#',
            (Cell::Running, false) => '>',
            (Cell::Failed, false) => 'X',
        }
    }
}

/// A line for each of `keys` and for each key of `runs`, which come by key. Above is the time, below what the marks mean.
#[must_use]
pub fn chart(runs: &[Run], keys: &[String], window: Window, look: &Look, paper: Paper) -> String {
    let mut lines: Vec<(&str, &[Run])> = runs
        .chunk_by(|a, b| a.key == b.key)
        .map(|runs| (runs[0].key.as_str(), runs))
        .collect();
    for key in keys {
        if !lines.iter().any(|(has, _)| has == key) {
            lines.push((key, &[]));
        }
    }
    lines.sort_by_key(|(key, _)| *key);
    let (columns, fewest) = if paper.is_terminal {
        let columns = paper.width.max(NARROWEST);
        (columns, (columns / 2).clamp(FEWEST_MARKS, MARKS))
    } else {
        (paper.width, MARKS)
    };
    let names: Vec<String> = lines
        .iter()
        .map(|(key, _)| {
            if paper.is_terminal {
                paper.shorten(&escape(key), columns - fewest - GAP.len())
            } else {
                escape(key)
            }
        })
        .collect();
    let head = names
        .iter()
        .map(|name| width(name))
        .chain(["KEY".len()])
        .max()
        .unwrap_or_default();
    let marks = columns.saturating_sub(head + GAP.len()).max(fewest);

    let (start, end) = axis(look, window, marks);
    let gap = marks.saturating_sub(start.chars().count());
    let mut out = format!("{:head$}{GAP}{start}{end:>gap$}\n", "KEY");
    for (name, (_, runs)) in names.iter().zip(&lines) {
        let cells = cells(runs, window, marks);
        let line: String = cells
            .chunk_by(|a, b| a == b)
            .map(|same| {
                let text = paper.mark(same[0]).to_string().repeat(same.len());
                look.failure(same[0] == Cell::Failed, text)
            })
            .collect();
        let pad = head - width(name);
        out.push_str(&format!("{name}{:pad$}{GAP}{line}\n", ""));
    }
    let cell = i64::try_from(window.length.as_millis() / marks as u128).ok();
    out.push_str(&legend(cell, columns, look, paper));
    out
}

/// What the marks mean. At a terminal of so many columns it may take several lines.
fn legend(cell: Option<i64>, columns: usize, look: &Look, paper: Paper) -> String {
    let mut out = String::new();
    let meanings = [
        (Cell::Ran, "ran"),
        (Cell::Failed, "failed"),
        (Cell::Running, "running"),
        (Cell::Nothing, "nothing"),
    ];
    let mut legend: Vec<(bool, String)> = meanings
        .map(|(cell, meaning)| {
            let text = format!("{} {meaning}", paper.mark(cell));
            (cell == Cell::Failed, text)
        })
        .into();
    legend.push((false, format!("(one column is {})", span(cell))));
    let mut taken = 0;
    for (is_failure, text) in legend {
        let more = width(&text);
        if taken > 0 {
            let fits = !paper.is_terminal || taken + GAP.len() + more <= columns;
            out.push_str(if fits { GAP } else { "\n" });
            taken = if fits { taken + GAP.len() } else { 0 };
        }
        taken += more;
        out.push_str(&look.failure(is_failure, text));
    }
    out.push('\n');
    out
}

/// The times at both ends, as long as they fit above so many marks.
fn axis(look: &Look, window: Window, marks: usize) -> (String, String) {
    let (start, end) = (look.time(window.start()), look.time(window.now));
    if start.len() + end.len() < marks {
        return (start, end);
    }
    // "2026-12-03 04:00:00" without its time of day, or without its year and seconds.
    let part = if window.length >= DAYS { 0..10 } else { 5..16 };
    let short = |time: String| time.get(part.clone()).map_or(time.clone(), str::to_owned);
    (short(start), short(end))
}

impl Window {
    fn start(self) -> ServerTime {
        match self.now {
            ServerTime::At(now) => {
                let length = i64::try_from(self.length.as_micros()).unwrap_or(i64::MAX);
                ServerTime::At(now.saturating_sub(length))
            }
            endless @ (ServerTime::Always | ServerTime::Never) => endless,
        }
    }
}

fn cells(runs: &[Run], window: Window, width: usize) -> Vec<Cell> {
    let mut cells = vec![Cell::Nothing; width];
    let micros = |time: ServerTime| match time {
        ServerTime::Always => i128::MIN,
        ServerTime::At(micros) => i128::from(micros),
        ServerTime::Never => i128::MAX,
    };
    let (start, end) = (micros(window.start()), micros(window.now));
    let length = (end - start).max(1);
    let column = |time: i128| {
        let column = (time - start) * width as i128 / length;
        usize::try_from(column).map_or(0, |column| column.min(width - 1))
    };
    for run in runs {
        let from = micros(run.acquired_at);
        let to = if run.end == End::Unknown {
            from
        } else {
            micros(run.end.at().unwrap_or(run.now)).max(from)
        };
        if to < start || from > end {
            continue;
        }
        let cell = if run.end.is_failure() {
            Cell::Failed
        } else if run.end.at().is_none() {
            Cell::Running
        } else {
            Cell::Ran
        };
        // A run that ends where a column begins is not in that column.
        let last = column((to - 1).min(end).max(from.max(start)));
        for part in &mut cells[column(from.max(start))..=last] {
            *part = cell.max(*part);
        }
    }
    cells
}

#[cfg(test)]
mod tests {
    use jiff::tz::{Offset, TimeZone};

    use super::*;
    use crate::job::Ended;
    use crate::lease::Fence;

    /// 2026-12-01 04:00:00 UTC.
    const NOW: i64 = 1_796_097_600_000_000;

    /// A run from one minute to another; the chart shows 2,400 of them, 60 in a column.
    fn run(key: &str, from: i64, end: impl Fn(ServerTime) -> End, to: i64) -> Run {
        let at = |minute: i64| ServerTime::At(NOW + (minute - 2400) * 60_000_000);
        Run {
            key: key.to_owned(),
            fence: Fence::from_row(1),
            holder: "h".to_owned(),
            host: None,
            pid: None,
            program: None,
            acquired_at: at(from),
            end: end(at(to)),
            now: ServerTime::At(NOW),
        }
    }

    fn code(code: u8) -> impl Fn(ServerTime) -> End {
        move |at| End::Released(at, Some(Ended::Code(code)))
    }

    fn drawn(runs: &[Run], keys: &[&str], utf8: bool) -> String {
        let window = Window {
            now: ServerTime::At(NOW),
            length: Duration::from_secs(40 * 3600),
        };
        let keys: Vec<String> = keys.iter().map(|&key| key.to_owned()).collect();
        let look = Look::plain(TimeZone::fixed(Offset::constant(2)));
        let paper = Paper {
            width: 48,
            utf8,
            is_terminal: false,
        };
        chart(runs, &keys, window, &look, paper)
    }

    #[test]
    fn at_a_terminal_no_line_is_wider_than_it_down_to_forty_columns() {
        let long = "k".repeat(70);
        let runs = [
            run("backup", 610, code(0), 615),
            run("夜間", 0, code(1), 2390),
        ];
        let keys = [long, "x".to_owned()];
        let look = Look::plain(TimeZone::UTC);
        for hours in [40, 24 * 400] {
            for columns in 1..=200 {
                let paper = Paper {
                    width: columns,
                    utf8: true,
                    is_terminal: true,
                };
                let window = Window {
                    now: ServerTime::At(NOW),
                    length: Duration::from_secs(hours * 3600),
                };
                let text = chart(&runs, &keys, window, &look, paper);
                let widths: Vec<usize> = text.lines().map(width).collect();
                // The axis and the lines of the keys use all of it.
                assert!(
                    widths[..5].iter().all(|w| *w == columns.max(40)),
                    "{columns}:\n{text}"
                );
                assert!(
                    widths[5..].iter().all(|w| *w <= columns.max(40)),
                    "{columns}:\n{text}"
                );
                assert!(text.contains("one column is"), "{text}");
                // Two times with a gap between them, or two days.
                let words = text
                    .lines()
                    .next()
                    .map(|axis| axis.split_whitespace().count());
                assert!(matches!(words, Some(5 | 3)), "{columns}:\n{text}");
            }
        }
    }

    #[test]
    fn a_chart_shows_what_ran_what_failed_what_runs_and_what_did_nothing() {
        let runs = [
            run("backup", -540, code(0), -480),
            run("backup", -60, code(0), 120),
            run("backup", 610, code(0), 615),
            run("backup", 620, code(3), 621),
            run("backup", 630, code(0), 635),
            run("backup", 1200, End::Expired, 1350),
            run("backup", 1800, |at| End::Released(at, None), 1860),
            run("backup", 2250, |_| End::Running, 0),
            run("dead", -540, code(1), -480),
        ];
        assert_eq!(
            drawn(&runs, &["never", "backup"], true),
            "KEY     2026-11-29 14:00:00  2026-12-01 06:00:00\n\
             backup  ██········×·········×××·······█······▒▒▒\n\
             dead    ········································\n\
             never   ········································\n\
             █ ran  × failed  ▒ running  · nothing  (one column is 1h)\n"
        );
        let ascii = drawn(&runs[..8], &[], false);
        assert!(ascii.is_ascii(), "{ascii}");
        assert!(
            ascii.contains("backup  ##........X.........XXX.......#......>>>\n"),
            "{ascii}"
        );
        assert!(
            ascii.ends_with("# ran  X failed  > running  . nothing  (one column is 1h)\n"),
            "{ascii}"
        );
    }

    #[test]
    fn a_chart_of_no_time_at_all_and_times_without_an_end_do_no_harm() {
        let window = Window {
            now: ServerTime::At(NOW),
            length: Duration::ZERO,
        };
        let mut endless = run("k", 0, |_| End::Expired(ServerTime::Never), 0);
        endless.acquired_at = ServerTime::Always;
        let look = Look::plain(TimeZone::UTC);
        let paper = Paper {
            width: 0,
            utf8: false,
            is_terminal: true,
        };
        let text = chart(&[endless], &[], window, &look, paper);
        assert!(text.contains("\nk    X"), "{text}");
    }
}
