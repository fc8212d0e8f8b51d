//! Columns for people, and arrays for programs.

use std::time::Duration;

use serde::Serialize;

use super::{harmless_json, whole_seconds};
use crate::timing::human;

/// Lines under a heading, in columns that are as wide as their longest text. Only the last column may have colours.
pub(super) fn columns<const N: usize>(
    head: [&str; N],
    lines: impl Iterator<Item = [String; N]>,
) -> String {
    let lines: Vec<[String; N]> = std::iter::once(head.map(str::to_owned))
        .chain(lines)
        .collect();
    let widths: [usize; N] = std::array::from_fn(|c| {
        lines
            .iter()
            .map(|line| line[c].chars().count())
            .max()
            .unwrap_or(0)
    });
    lines
        .iter()
        .map(|line| {
            let padded: Vec<String> = line
                .iter()
                .zip(widths)
                .map(|(text, width)| {
                    let missing = width.saturating_sub(text.chars().count());
                    format!("{text}{}", " ".repeat(missing))
                })
                .collect();
            format!("{}\n", padded.join("  ").trim_end())
        })
        .collect()
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
