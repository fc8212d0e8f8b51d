//! The chart of `history --chart`: a line for each key, a character for each part of the time.

use std::env;
use std::time::Duration;

use super::escape;
use super::history::Look;
use super::layout::span;
use crate::lease::ServerTime;
use crate::process;
use crate::record::{End, Run};

/// The width if stdout is not a terminal: a file must not depend on where it was made.
const WIDTH: usize = 80;
/// The chart itself is at least so wide, so that the axis fits above it.
const NARROWEST: usize = 40;

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
        Self {
            width: process::terminal_columns().unwrap_or(WIDTH),
            utf8: locale.is_some_and(|l| l.contains("utf-8") || l.contains("utf8")),
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
    let names: Vec<String> = lines.iter().map(|(key, _)| escape(key)).collect();
    let head = names
        .iter()
        .map(|name| name.chars().count())
        .chain(["KEY".len()])
        .max()
        .unwrap_or_default();
    let width = paper.width.saturating_sub(head + 2).max(NARROWEST);

    let (start, end) = (look.time(window.start()), look.time(window.now));
    let gap = width.saturating_sub(start.chars().count());
    let mut out = format!("{:head$}  {start}{end:>gap$}\n", "KEY");
    for (name, (_, runs)) in names.iter().zip(&lines) {
        let cells = cells(runs, window, width);
        let marks: String = cells
            .chunk_by(|a, b| a == b)
            .map(|same| {
                let text = paper.mark(same[0]).to_string().repeat(same.len());
                look.failure(same[0] == Cell::Failed, text)
            })
            .collect();
        out.push_str(&format!("{name:head$}  {marks}\n"));
    }
    let cell = i64::try_from(window.length.as_millis() / width as u128).ok();
    out.push_str(&format!(
        "{} ran  {}  {} running  {} nothing  (one column is {})\n",
        paper.mark(Cell::Ran),
        look.failure(true, format!("{} failed", paper.mark(Cell::Failed))),
        paper.mark(Cell::Running),
        paper.mark(Cell::Nothing),
        span(cell),
    ));
    out
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
        chart(runs, &keys, window, &look, Paper { width: 48, utf8 })
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
        };
        let text = chart(&[endless], &[], window, &look, paper);
        assert!(text.contains("\nk    X"), "{text}");
    }
}
