//! Columns for people, and arrays for programs.

use std::time::Duration;

use serde::Serialize;

use super::escape::harmless_json;
use super::whole_seconds;
use super::width::{shorten, width};
use crate::timing::human;

/// What is between two columns.
const GAP: &str = "  ";
/// What a column is never made narrower than.
const NARROWEST: usize = 8;

/// Lines under a heading, in columns that are as wide as their longest text. Only the last column may have colours.
pub(super) fn columns<const N: usize>(
    head: [&str; N],
    lines: impl Iterator<Item = [String; N]>,
) -> String {
    columns_within(head, lines, None, &[])
}

/// The same, in a terminal of `limit` characters. If the lines are too long for it, the columns `flexible` are shortened,
/// the widest one first.
pub(super) fn columns_within<const N: usize>(
    head: [&str; N],
    lines: impl Iterator<Item = [String; N]>,
    limit: Option<usize>,
    flexible: &[usize],
) -> String {
    let lines: Vec<[String; N]> = std::iter::once(head.map(str::to_owned))
        .chain(lines)
        .collect();
    let mut widths: [usize; N] =
        std::array::from_fn(|c| lines.iter().map(|line| width(&line[c])).max().unwrap_or(0));
    fit(&mut widths, limit, flexible);
    lines
        .iter()
        .map(|line| padded(line.iter().map(String::as_str), &widths))
        .collect()
}

/// Makes the columns `flexible` narrower until a line fits into `limit`, the widest one first.
pub(super) fn fit(widths: &mut [usize], limit: Option<usize>, flexible: &[usize]) {
    let gaps = GAP.len() * widths.len().saturating_sub(1);
    let all = widths.iter().sum::<usize>() + gaps;
    let mut excess = limit.map_or(0, |limit| all.saturating_sub(limit));
    while excess > 0
        && let Some(widest) = flexible.iter().copied().max_by_key(|c| widths[*c])
        && widths[widest] > NARROWEST
    {
        widths[widest] -= 1;
        excess -= 1;
    }
}

/// One line of a table. A text that is longer than its column is shortened.
pub(super) fn padded<'a>(texts: impl Iterator<Item = &'a str>, widths: &[usize]) -> String {
    let padded: Vec<String> = texts
        .zip(widths)
        .map(|(text, &column)| {
            let text = shorten(text, column);
            let missing = column.saturating_sub(width(&text));
            format!("{text}{}", " ".repeat(missing))
        })
        .collect();
    format!("{}\n", padded.join(GAP).trim_end())
}

/// A JSON array with one object on each line.
pub(super) fn json_array(lines: impl Iterator<Item = impl Serialize>) -> String {
    let lines: Vec<String> = lines
        .map(|line| serde_json::to_string(&line).expect("text and numbers have a JSON form"))
        .collect();
    if lines.is_empty() {
        return "[]\n".to_owned();
    }
    harmless_json(format!("[{}]\n", lines.join(",\n ")))
}

/// Milliseconds for people, whole seconds above one second; `None` is forever.
#[must_use]
pub fn span(ms: Option<i64>) -> String {
    let Some(ms) = ms else {
        return "forever".to_owned();
    };
    human(whole_seconds(Duration::from_millis(
        u64::try_from(ms).unwrap_or(0),
    )))
}
