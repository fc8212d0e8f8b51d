//! The table of leases, for people and as JSON.

use serde::Serialize;

use super::escape;
use super::history::{RunJson, last_run};
use super::layout::span;
use super::spool::Lines;
use crate::lease::{LeaseState, Row, ServerTime};
use crate::record::LastRun;

/// A line of `status`: a row, or a requested key without a row.
#[derive(Clone, Debug)]
pub enum Shown {
    /// The row, and the last run of its key, if that is known.
    Row(Row, Option<Box<LastRun>>),
    /// A free key without a row, and its last run, if that is known.
    NoRow(String, Option<Box<LastRun>>),
}

impl Shown {
    /// The key.
    #[must_use]
    pub fn key(&self) -> &str {
        match self {
            Self::Row(row, _) => &row.key,
            Self::NoRow(key, _) => key,
        }
    }

    /// Whether it is held now.
    #[must_use]
    pub const fn is_held(&self) -> bool {
        match self {
            Self::Row(row, _) => matches!(row.state, LeaseState::Held(_)),
            Self::NoRow(..) => false,
        }
    }
}

const NOTHING: &str = "-";
/// The columns whose texts can be long.
const KEY: usize = 0;
const HOLDER: usize = 2;

const HEAD: [&str; 7] = [
    "KEY",
    "STATE",
    "HOLDER",
    "FENCE",
    "HELD FOR",
    "EXPIRES IN",
    "LAST RUN",
];

/// Columns for people. In a terminal of `limit` characters, long keys and holders are shortened.
#[must_use]
pub fn status_table(shown: &[Shown], limit: Option<usize>) -> String {
    text(shown, status_lines(false, limit))
}

/// The same table, or the same JSON, for a list that may be long.
#[must_use]
pub fn status_lines(json: bool, limit: Option<usize>) -> Lines {
    if json {
        Lines::json()
    } else {
        Lines::table(&HEAD, limit, &[KEY, HOLDER])
    }
}

/// Adds a lease.
pub fn push_status(lines: &mut Lines, shown: &Shown) {
    if lines.is_json() {
        lines.item(&Line::of(shown));
    } else {
        lines.row(&line(shown));
    }
}

fn text(shown: &[Shown], lines: Lines) -> String {
    let mut lines = lines.in_memory();
    shown.iter().for_each(|one| push_status(&mut lines, one));
    lines.text()
}

fn line(shown: &Shown) -> [String; 7] {
    let (Shown::Row(_, last) | Shown::NoRow(_, last)) = shown;
    let last = last
        .as_ref()
        .map_or(NOTHING.to_owned(), |last| last_run(&last.run));
    let Shown::Row(row, _) = shown else {
        let nothing = NOTHING.to_owned();
        return [
            escape(shown.key()),
            LeaseState::Free.word().to_owned(),
            nothing.clone(),
            nothing.clone(),
            nothing.clone(),
            nothing,
            last,
        ];
    };
    // With an expiry of "-infinity" it is unknown how long the lease was held, and how long ago it expired.
    let ever = row.expires_at != ServerTime::Always;
    let held_for = match row.state {
        LeaseState::Held(_) | LeaseState::Expired(_) if ever => span(row.held_for_ms()),
        LeaseState::Held(_) | LeaseState::Expired(_) | LeaseState::Cooling | LeaseState::Free => {
            NOTHING.to_owned()
        }
    };
    let expires_in = match (&row.state, row.expires_in_ms()) {
        (LeaseState::Held(_) | LeaseState::Cooling, None) => "never".to_owned(),
        (LeaseState::Held(_) | LeaseState::Cooling, left) => span(left),
        (LeaseState::Expired(_), None) => "expired".to_owned(),
        (LeaseState::Expired(_), Some(left)) => {
            format!("{} ago", span(Some(left.saturating_neg())))
        }
        (LeaseState::Free, _) => NOTHING.to_owned(),
    };
    [
        escape(&row.key),
        row.state.word().to_owned(),
        row.holder().map_or(NOTHING.to_owned(), escape),
        row.fence.to_string(),
        held_for,
        expires_in,
        last,
    ]
}

#[derive(Serialize)]
struct Line<'a> {
    key: &'a str,
    state: &'static str,
    holder: Option<&'a str>,
    fence: Option<i64>,
    acquired_at: Option<String>,
    expires_at: Option<String>,
    expires_in_ms: Option<i64>,
    held_for_ms: Option<i64>,
    last_run: Option<RunJson<'a>>,
    last_success: Option<String>,
}

impl<'a> Line<'a> {
    fn of(shown: &'a Shown) -> Self {
        let (Shown::Row(_, last) | Shown::NoRow(_, last)) = shown;
        let last_run = last.as_ref().map(|last| RunJson::of(&last.run));
        let last_success = last
            .as_ref()
            .and_then(|last| last.last_success)
            .map(|at| at.to_string());
        match shown {
            Shown::Row(row, _) => Line {
                key: &row.key,
                state: row.state.word(),
                holder: row.holder(),
                fence: Some(row.fence.get()),
                acquired_at: Some(row.acquired_at.to_string()),
                expires_at: Some(row.expires_at.to_string()),
                expires_in_ms: row.expires_in_ms(),
                // Null if there is no holder.
                held_for_ms: row.holder().and_then(|_| row.held_for_ms()),
                last_run,
                last_success,
            },
            Shown::NoRow(key, _) => Line {
                key,
                state: LeaseState::Free.word(),
                holder: None,
                fence: None,
                acquired_at: None,
                expires_at: None,
                expires_in_ms: None,
                held_for_ms: None,
                last_run,
                last_success,
            },
        }
    }
}

/// A JSON array with one object on each line.
#[must_use]
pub fn status_json(shown: &[Shown]) -> String {
    text(shown, status_lines(true, None))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lease::Fence;

    /// Held for 12 minutes and 4.3 seconds, or let expire then.
    fn row(holder: &str, expires_in_ms: Option<i64>) -> Shown {
        let now = 1_796_098_343_884_123;
        let ended = now + expires_in_ms.unwrap_or(0).min(0) * 1000;
        let row = Row::read(
            (
                "nightly".to_owned(),
                holder.to_owned(),
                Fence::from_row(1_796_098_343_884_123),
            ),
            ServerTime::At(ended - 724_300_000),
            expires_in_ms.map_or(ServerTime::Never, |ms| ServerTime::At(now + ms * 1000)),
            ServerTime::At(now),
        );
        Shown::Row(row, None)
    }

    #[test]
    fn the_table_reads_as_documented() {
        let table = status_table(&[row("web-3-5f0c9a1e77b2", Some(48_700))], None);
        assert_eq!(
            table,
            "KEY      STATE  HOLDER              FENCE             HELD FOR  EXPIRES IN  LAST RUN\n\
             nightly  held   web-3-5f0c9a1e77b2  1796098343884123  12m 4s    48s         -\n"
        );
    }

    #[test]
    fn long_keys_and_holders_are_shortened_to_a_terminal_and_nothing_else_is() {
        let long = row(&"h".repeat(60), Some(48_700));
        let line = |limit| {
            let table = status_table(std::slice::from_ref(&long), limit);
            table.lines().last().unwrap_or_default().to_owned()
        };
        assert!(line(None).contains(&"h".repeat(60)));
        assert_eq!(line(Some(500)), line(None));
        assert_eq!(
            line(Some(80)),
            "nightly  held   hhhhhhhhhhhhh…  1796098343884123  12m 4s    48s         -"
        );
        // The heading of the last column is longer than its dash.
        let narrow = line(Some(10));
        assert!(
            narrow.contains("hhhhhhh…  1796098343884123  12m 4s"),
            "{narrow}"
        );
    }

    #[test]
    fn every_state_has_its_line() {
        let table = status_table(
            &[
                row("w", Some(-200_000)),
                row("", Some(9_000)),
                row("w", None),
                Shown::NoRow("k".to_owned(), None),
            ],
            None,
        );
        assert!(table.contains("3m 20s ago"), "{table}");
        assert!(table.contains("cooling  -"), "{table}");
        assert!(table.contains("  never       -\n"), "{table}");
        assert!(
            table
                .ends_with("k        free     -       -                 -         -           -\n"),
            "{table}"
        );
    }

    #[test]
    fn json_has_null_where_there_is_nothing() {
        let json = status_json(&[row("", Some(-5)), Shown::NoRow("k".to_owned(), None)]);
        let parsed: serde_json::Value = serde_json::from_str(&json).expect("valid JSON");
        assert_eq!(parsed[0]["holder"], serde_json::Value::Null);
        assert_eq!(parsed[0]["expires_in_ms"], -5);
        assert_eq!(parsed[1]["state"], "free");
        assert_eq!(parsed[1]["fence"], serde_json::Value::Null);
        assert_eq!(status_json(&[]), "[]\n");
    }
}
