//! How wide columns are, and what is in them.

use std::time::Duration;

use super::whole_seconds;
use super::width::{shorten, width};
use crate::timing::human;

/// What is between two columns.
const GAP: &str = "  ";
/// What a column is never made narrower than.
const NARROWEST: usize = 8;

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
