//! What falls into each part of the time.

use std::time::Duration;

use crate::lease::ServerTime;
use crate::record::{End, Run};

/// What was the case in a part of the time. If several runs fall into it, the worst of them counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Cell {
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

impl Window {
    /// Its beginning.
    pub(super) fn start(self) -> ServerTime {
        match self.now {
            ServerTime::At(now) => {
                let length = i64::try_from(self.length.as_micros()).unwrap_or(i64::MAX);
                ServerTime::At(now.saturating_sub(length))
            }
            endless @ (ServerTime::Always | ServerTime::Never) => endless,
        }
    }
}

/// A run, as far as the chart shows it. A chart may have millions of them in memory.
#[derive(Clone, Copy, Debug)]
pub(super) struct Span {
    /// In microseconds since 1970 by the server's clock, as the end.
    from: i64,
    to: i64,
    cell: Cell,
}

impl Span {
    pub(super) fn of(run: &Run) -> Self {
        let from = micros(run.acquired_at);
        let to = if run.end == End::Unknown {
            from
        } else {
            micros(run.end.at().unwrap_or(run.now)).max(from)
        };
        let cell = if run.end.is_failure() {
            Cell::Failed
        } else if run.end.at().is_none() {
            Cell::Running
        } else {
            Cell::Ran
        };
        Self { from, to, cell }
    }
}

const fn micros(time: ServerTime) -> i64 {
    match time {
        ServerTime::Always => i64::MIN,
        ServerTime::At(micros) => micros,
        ServerTime::Never => i64::MAX,
    }
}

/// The time in `width` parts.
pub(super) fn cells(spans: &[Span], window: Window, width: usize) -> Vec<Cell> {
    let mut cells = vec![Cell::Nothing; width];
    let (start, end) = (micros(window.start()), micros(window.now));
    let length = (i128::from(end) - i128::from(start)).max(1);
    let column = |time: i64| {
        let column = (i128::from(time) - i128::from(start)) * width as i128 / length;
        usize::try_from(column).map_or(0, |column| column.min(width - 1))
    };
    for &Span { from, to, cell } in spans {
        if to < start || from > end {
            continue;
        }
        let from = from.max(start);
        // A run that ends where a column begins is not in that column.
        let last = column(to.saturating_sub(1).min(end).max(from));
        for part in &mut cells[column(from)..=last] {
            *part = cell.max(*part);
        }
    }
    cells
}
