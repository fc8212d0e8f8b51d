//! What a page consists of, and the sections that every page has.

use crate::exit;

/// A piece of a section.
#[derive(Clone, Copy, Debug)]
pub enum Block {
    /// A paragraph.
    Text(&'static str),
    /// Lines to be typed, or shown as they are.
    Code(&'static str),
    /// Terms and their meanings.
    Terms(&'static [(&'static str, &'static str)]),
}

/// A section of a page.
#[derive(Clone, Copy, Debug)]
pub struct Section {
    /// In capitals, as man(7) asks for.
    pub title: &'static str,
    /// The content.
    pub blocks: &'static [Block],
}

/// The variables that `lease` reads.
const ENVIRONMENT: &[(&str, &str)] = &[
    ("LEASE_DATABASE_URL", "the database; see --database-url"),
    ("LEASE_TABLE", "the table; see --table"),
    (
        "LEASE_DB_TIMEOUT",
        "the time limit of one database operation; see --db-timeout",
    ),
    (
        "LEASE_TTL",
        "the default ttl of run, claim and renew; see --ttl",
    ),
    (
        "LEASE_QUIET",
        "errors only, unless it is 0, n, no, f, false or off; see --quiet",
    ),
    (
        "LEASE_LOG_FORMAT",
        "the format of the messages of run, text or json; see --log-format",
    ),
    (
        "LEASE_KEY, LEASE_HOLDER, FENCE",
        "the term that renew and release act on; claim prints them, and run sets them for its job",
    ),
    (
        "PGHOST, PGPORT, PGUSER, PGDATABASE, PGPASSFILE, PGSERVICE, PGSSLMODE, ...",
        "as for psql, for everything that --database-url leaves unset; see lease-connection(5)",
    ),
];

pub(super) const EXIT: Section = Section {
    title: "EXIT STATUS",
    blocks: &[Block::Terms(exit::TABLE)],
};
pub(super) const VARIABLES: Section = Section {
    title: "ENVIRONMENT",
    blocks: &[
        Block::Terms(ENVIRONMENT),
        Block::Text(
            "LEASE_* and FENCE variables that are set but empty count as unset. PG* variables follow libpq: some of them, such as PGSERVICE and PGSSLMODE, must not be empty.",
        ),
    ],
};
