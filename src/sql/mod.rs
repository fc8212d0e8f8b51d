//! Every statement, a file each, with its contract on top.
//!
//! The files are what psql can run: only the name of the table is replaced. Rules that hold for all of them:
//! - All times are `clock_timestamp()`, the server's: never `now()`, which is fixed at the start of the transaction, and
//!   never a client's clock. Values that belong together come from one reading.
//! - The table is always named with its schema, and `search_path` is `pg_catalog` (see `begin.sql`): neither a role's
//!   search path nor a function of the same name in another schema changes what a statement means.
//! - Durations arrive as microseconds in a BIGINT.
//! - A row is answered as it is, with the reading of the clock that belongs to it: key, holder, fence, acquired_at,
//!   expires_at, now. What it means is computed by the client.

mod named;
mod pattern;
mod table;

pub use self::named::NamedKeys;
pub use self::pattern::Pattern;
pub use self::table::{Table, quote};

/// Ends the transaction of an operation. Held back until the answer has arrived in time.
pub const COMMIT: &str = "COMMIT";

/// Ends the transaction of an operation whose effect is not wanted after all.
pub const ROLLBACK: &str = "ROLLBACK";

/// The version of the table that this program makes; it stands in `mark.sql`.
pub const VERSION: u32 = 1;

/// The version that a comment on the table notes; `None` if the comment is not ours.
#[must_use]
pub fn version(comment: &str) -> Option<u32> {
    comment.strip_prefix("lease table, version ")?.parse().ok()
}

/// The name of the table in the files.
const TABLE: &str = r#""public"."lease""#;

/// The limits of one operation, as the server enforces them.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The most that a statement may take, in milliseconds.
    pub statement_ms: u64,
    /// The most that it may wait for a row lock, in milliseconds.
    pub lock_ms: u64,
    /// The most that the transaction may stand idle, in milliseconds.
    pub idle_ms: u64,
}

/// The opening flight of an operation, with one more statement at its end. Zero would mean "no limit", so every limit is at
/// least a millisecond.
#[must_use]
pub fn begin(writes: bool, limits: Limits, last: Option<&str>) -> String {
    let text = without_comments(if writes {
        include_str!("begin.sql")
    } else {
        include_str!("begin_read.sql")
    });
    let mut flight = text
        .replace(":statement_ms", &limits.statement_ms.max(1).to_string())
        .replace(":lock_ms", &limits.lock_ms.max(1).to_string())
        .replace(":idle_ms", &limits.idle_ms.max(1).to_string());
    if let Some(last) = last {
        flight.push_str(";\n");
        flight.push_str(last);
    }
    flight
}

/// The statements for one table, each by the name of its file.
#[expect(missing_docs, reason = "each is documented in its file")]
#[derive(Clone, Debug)]
pub struct Statements {
    pub claim: String,
    pub freshen: String,
    pub renew: String,
    pub release: String,
    pub evict: String,
    pub look: String,
    pub lookout: String,
    pub status: String,
    pub unused: String,
    pub purge: String,
    pub rights: String,
    pub create: String,
    pub safe_default: String,
    pub make_lock: String,
    pub misshapen: String,
    pub fence_default: String,
    pub mark: String,
    pub version: String,
    /// The table's quoted name, for the statements that look it up in the catalogue.
    pub table: String,
    /// The table's name for people.
    pub shown: String,
}

impl Statements {
    /// Fills in the table.
    #[must_use]
    pub fn new(table: &Table) -> Self {
        let fill = |text: &str| without_comments(text).replace(TABLE, &table.quoted());
        Self {
            claim: fill(include_str!("claim.sql")),
            freshen: fill(include_str!("freshen.sql")),
            renew: fill(include_str!("renew.sql")),
            release: fill(include_str!("release.sql")),
            evict: fill(include_str!("evict.sql")),
            look: fill(include_str!("look.sql")),
            lookout: fill(include_str!("lookout.sql")),
            status: fill(include_str!("status.sql")),
            unused: fill(include_str!("unused.sql")),
            purge: fill(include_str!("purge.sql")),
            rights: fill(include_str!("rights.sql")),
            create: fill(include_str!("create.sql")),
            safe_default: fill(include_str!("safe_default.sql")),
            make_lock: fill(include_str!("make_lock.sql")),
            misshapen: fill(include_str!("misshapen.sql")),
            fence_default: fill(include_str!("fence_default.sql")),
            mark: fill(include_str!("mark.sql")),
            version: fill(include_str!("version.sql")),
            table: table.quoted(),
            shown: table.shown(),
        }
    }
}

/// The statement alone: the server has no use for its contract.
pub(crate) fn without_comments(text: &str) -> String {
    let lines = text.lines().filter(|line| !line.starts_with("--"));
    lines.collect::<Vec<_>>().join("\n")
}

/// The SQL of `lease init --print`: what the first claim would run. No BEGIN and no COMMIT, since a migration tool has its
/// own; nothing in it depends on the search path.
#[must_use]
pub fn script(table: &Table) -> String {
    let Statements { create, mark, .. } = Statements::new(table);
    format!("{create};\n{mark};\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_filled_in_and_no_contract_is_sent() {
        let s = Statements::new(&Table::parse("jobs.lease").expect("a table"));
        for text in [
            &s.claim, &s.freshen, &s.renew, &s.release, &s.evict, &s.look, &s.lookout, &s.status,
            &s.unused, &s.purge, &s.create,
        ] {
            assert!(!text.contains("--"), "{text}");
            assert!(!text.contains(TABLE), "{text}");
            assert!(text.contains(r#""jobs"."lease""#), "{text}");
        }
    }

    #[test]
    fn the_version_that_is_noted_is_the_one_that_is_read() {
        let s = Statements::new(&Table::parse("jobs.lease").expect("a table"));
        let comment = s.mark.split('\'').nth(1).expect("a comment");
        assert_eq!(version(comment), Some(VERSION));
        assert_eq!(version("our locks"), None);
    }

    #[test]
    fn a_limit_of_zero_is_not_sent_since_it_would_mean_no_limit() {
        let limits = Limits {
            statement_ms: 0,
            lock_ms: 5,
            idle_ms: 7,
        };
        for writes in [true, false] {
            let flight = begin(writes, limits, None);
            assert!(
                !flight.contains(":statement_ms") && !flight.contains("--"),
                "{flight}"
            );
            assert!(flight.contains("statement_timeout = 1;"), "{flight}");
            assert!(flight.contains("lock_timeout = 5;"), "{flight}");
        }
    }
}
