//! What a chart is drawn on: its characters, its width, and the line that explains the marks.

use std::env;

use super::super::history::Look;
use super::super::layout::span;
use super::super::width::{shorten, width};
use super::cells::Cell;
use crate::process;

/// The width if stdout is not a terminal: a file must not depend on where it was made.
const WIDTH: usize = 80;
/// Between columns.
pub(super) const GAP: &str = "  ";

/// The characters, and how wide the whole is.
#[derive(Clone, Copy, Debug)]
pub struct Paper {
    pub(super) width: usize,
    pub(super) utf8: bool,
    pub(super) is_terminal: bool,
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

    pub(super) fn shorten(self, key: &str, columns: usize) -> String {
        let short = shorten(key, columns);
        match short.strip_suffix('…') {
            Some(start) if !self.utf8 && short != key => format!("{start}~"),
            Some(_) | None => short,
        }
    }

    pub(super) const fn mark(self, cell: Cell) -> char {
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

/// What the marks mean. At a terminal of so many columns it may take several lines.
pub(super) fn legend(cell: Option<i64>, columns: usize, look: &Look, paper: Paper) -> String {
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
    out
}
