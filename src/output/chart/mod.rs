//! The chart of `history --chart`: a line for each key, a character for each part of the time.
//!
//! | file | what it has |
//! |---|---|
//! | `cells` | what falls into each part of the time |
//! | `paper` | the characters, the width, and the line that explains the marks |

mod cells;
mod paper;

use std::ops::Range;
use std::time::Duration;

use self::cells::{Cell, Span, cells};
use self::paper::{GAP, legend};
use super::escape;
use super::history::Look;
use super::spool::Lines;
use super::width::width;
use crate::record::Run;

pub use self::cells::Window;
pub use self::paper::Paper;

/// A narrower terminal gets a chart for this width.
const NARROWEST: usize = 40;
/// The part with the marks is at least so wide, so that two full times fit above it.
const MARKS: usize = 40;
/// At a narrow terminal it is narrower: two short times fit above it.
const FEWEST_MARKS: usize = 24;
/// From this length on, short times are days.
const DAYS: Duration = Duration::from_secs(14 * 24 * 3600);

/// The runs of a chart, by key.
#[derive(Debug, Default)]
pub struct Chart {
    keys: Vec<(Box<str>, Range<usize>)>,
    spans: Vec<Span>,
}

impl Chart {
    /// Adds a run. The runs of one key come one after another.
    pub fn push(&mut self, run: &Run) {
        let next = self.spans.len();
        self.spans.push(Span::of(run));
        match self.keys.last_mut() {
            Some((key, spans)) if **key == *run.key => spans.end = next + 1,
            Some(_) | None => self.keys.push((run.key.as_str().into(), next..next + 1)),
        }
    }

    /// Whether there is no run.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    /// A line for each key, and for each of `named` without a run. Above is the time, below what the marks mean.
    #[must_use]
    pub fn lines(mut self, named: &[String], window: Window, look: &Look, paper: Paper) -> Lines {
        for key in named {
            if !self.keys.iter().any(|(has, _)| **has == **key) {
                self.keys.push((key.as_str().into(), 0..0));
            }
        }
        self.keys.sort_by(|(a, _), (b, _)| a.cmp(b));
        let (columns, fewest) = if paper.is_terminal {
            let columns = paper.width.max(NARROWEST);
            (columns, (columns / 2).clamp(FEWEST_MARKS, MARKS))
        } else {
            (paper.width, MARKS)
        };
        let name = |key: &str| {
            if paper.is_terminal {
                paper.shorten(&escape(key), columns - fewest - GAP.len())
            } else {
                escape(key)
            }
        };
        let widths = self.keys.iter().map(|(key, _)| width(&name(key)));
        let head = widths.fold("KEY".len(), usize::max);
        let marks = columns.saturating_sub(head + GAP.len()).max(fewest);

        let (start, end) = axis(look, window, marks);
        let gap = marks.saturating_sub(start.chars().count());
        let mut out = Lines::plain();
        out.push(&format!("{:head$}{GAP}{start}{end:>gap$}", "KEY"));
        for (key, spans) in &self.keys {
            let cells = cells(&self.spans[spans.clone()], window, marks);
            let line: String = cells
                .chunk_by(|a, b| a == b)
                .map(|same| {
                    let text = paper.mark(same[0]).to_string().repeat(same.len());
                    look.failure(same[0] == Cell::Failed, text)
                })
                .collect();
            let name = name(key);
            let pad = head - width(&name);
            out.push(&format!("{name}{:pad$}{GAP}{line}", ""));
        }
        let cell = i64::try_from(window.length.as_millis() / marks as u128).ok();
        out.push(&legend(cell, columns, look, paper));
        out
    }
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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use jiff::tz::{Offset, TimeZone};

    use super::*;
    use crate::job::Ended;
    use crate::lease::{Fence, ServerTime};
    use crate::record::End;

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
        text(runs, &keys, window, &look, paper)
    }

    fn text(runs: &[Run], keys: &[String], window: Window, look: &Look, paper: Paper) -> String {
        let mut chart = Chart::default();
        for run in runs {
            chart.push(run);
        }
        chart.lines(keys, window, look, paper).text()
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
                let text = text(&runs, &keys, window, &look, paper);
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
        let text = text(&[endless], &[], window, &look, paper);
        assert!(text.contains("\nk    X"), "{text}");
    }
}
