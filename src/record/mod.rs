//! The history of runs: one row a term, written by a trigger on the lease table.
//!
//! A trigger, because claim, renew and release then stay the statements that they are, and because what other programs and
//! operators do to a lease is recorded too. Renewals change neither holder nor fence, so they never reach it.
//!
//! What only the client knows travels as one setting of the transaction, `lease.run`, in the flight that opens it. It
//! costs no round trip, works through a pooler in transaction mode, and does no harm if there is no trigger.
//!
//! A history that can't be written does not stand in the way of a lease: the trigger warns with [`SQLSTATE_UNWRITTEN`].
#![forbid(unsafe_code)]

mod run;
mod said;

use std::fmt;
use std::time::Duration;

pub use self::run::{Culprit, End, LastRun, Run};
pub use self::said::Said;
use crate::lease::Invalid;
use crate::sql::{self, Table};

/// The SQLSTATE of the warning about a history that can't be written. The class is that of [`crate::fencing::SQLSTATE_STALE`].
pub const SQLSTATE_UNWRITTEN: &str = "LF002";

/// How long the rows of a key are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    /// For this long after their end: whole seconds.
    For(Duration),
    /// For ever.
    Forever,
}

impl fmt::Display for Keep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::For(time) => write!(f, "{}", time.as_secs()),
            Self::Forever => f.write_str("forever"),
        }
    }
}

/// The statements that read the history of a table, and that purge it.
#[derive(Clone, Debug)]
pub struct Queries {
    /// Terms, the newest first.
    pub runs: String,
    /// The same, of keys that are given in full.
    pub runs_of_keys: String,
    /// The last term of each key.
    pub last: String,
    /// The terms of each key within a time.
    pub chart: String,
    /// Whether there is a history that this role may read, and a lease table.
    pub readable: String,
    /// Whether a key is due again.
    pub due: String,
    /// The quoted name of the lease table.
    pub leases: String,
    /// The keys that have a history but no row of the lease, and that nobody has used for a long time.
    pub unused_runs: String,
    /// How many old runs some keys have.
    pub count_runs: String,
    /// Removes old runs of keys that have no row of the lease.
    pub purge_runs: String,
    /// The quoted name of the history.
    pub name: String,
    /// Its name for people.
    pub shown: String,
}

impl Queries {
    /// Fills in the table.
    ///
    /// # Errors
    /// When the name of the history would be too long for the server.
    pub fn new(table: &Table) -> Result<Self, Invalid> {
        let history = table.history()?;
        let fill = |text: &str| {
            sql::without_comments(text)
                .replace(HISTORY, &history.quoted())
                .replace(LEASES, &table.quoted())
        };
        Ok(Self {
            runs: fill(include_str!("runs.sql")),
            runs_of_keys: fill(include_str!("runs_of_keys.sql")),
            last: fill(include_str!("last.sql")),
            chart: fill(include_str!("chart.sql")),
            readable: fill(include_str!("readable.sql")),
            due: fill(include_str!("due.sql")),
            leases: table.quoted(),
            unused_runs: fill(include_str!("unused_runs.sql")),
            count_runs: fill(include_str!("count_runs.sql")),
            purge_runs: fill(include_str!("purge_runs.sql")),
            name: history.quoted(),
            shown: history.shown(),
        })
    }
}

/// The names in the files.
const LEASES: &str = r#""public"."lease""#;
const HISTORY: &str = r#""public"."lease_history""#;

/// The statement that installs the history of a table, or brings it up to date. Without `keep`, rows are kept as long as
/// was asked for before, and else for 90 days.
///
/// # Errors
/// When the name of the history would be too long for the server.
pub fn install(table: &Table, keep: Option<Keep>) -> Result<String, Invalid> {
    let (leases, history) = (table.quoted(), table.history()?.quoted());
    let text = include_str!("install.sql");
    // Only the contract on top: the function keeps its comments.
    let start = text.find("DO $lease$").unwrap_or(0);
    let text = text[start..].trim_end();
    let literal = |name: &str| format!("'{}'", name.replace('\'', "''"));
    let asked = keep.map_or_else(|| "NULL".to_owned(), |keep| format!("'{keep}'"));
    // The names also appear inside dollar quotes, and may contain any character.
    let mut text = text.replace(
        "asked   CONSTANT pg_catalog.text := NULL;",
        &format!("asked   CONSTANT pg_catalog.text := {asked};"),
    );
    for name in ["lease", "source", "body"] {
        let tag = format!("${name}$");
        let mut free = tag.clone();
        while leases.contains(&free) {
            free.insert(free.len() - 1, '_');
        }
        text = text.replace(&tag, &free);
    }
    Ok(text
        .replace(&format!("'{HISTORY}'"), &literal(&history))
        .replace(&format!("'{LEASES}'"), &literal(&leases))
        .replace(HISTORY, &history)
        .replace(LEASES, &leases))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_names_and_the_retention_are_filled_in() {
        let table = Table::parse("jobs.le'ase$body$").expect("a table");
        let text = install(&table, Some(Keep::For(Duration::from_secs(86_400)))).expect("SQL");
        assert!(text.starts_with("DO $lease$"), "{text}");
        assert!(
            text.contains("asked   CONSTANT pg_catalog.text := '86400';"),
            "{text}"
        );
        assert!(
            text.contains(r#"'"jobs"."le''ase$body$"'::regclass"#),
            "{text}"
        );
        assert!(
            text.contains(r#"INSERT INTO "jobs"."le'ase$body$_history" AS h"#),
            "{text}"
        );
        assert!(text.contains("AS $body_$\n"), "{text}");
        assert!(!text.contains("public"), "{text}");
        let text = install(&table, None).expect("SQL");
        assert!(
            text.contains("asked   CONSTANT pg_catalog.text := NULL;"),
            "{text}"
        );
    }

    #[test]
    fn a_name_that_leaves_no_room_for_the_history_is_refused() {
        let table = Table::parse(&"x".repeat(56)).expect("a table");
        let error = install(&table, None).expect_err("too long").to_string();
        assert!(error.contains("55 bytes"), "{error}");
    }
}
