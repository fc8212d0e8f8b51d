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

/// The variables that every verb reads.
const COMMON: &[exit::Row] = &[
    ("LEASE_DATABASE_URL", "the database; see --database-url"),
    ("LEASE_TABLE", "the table; see --table"),
    (
        "LEASE_DB_TIMEOUT",
        "the time limit of one database operation; see --db-timeout",
    ),
    (
        "LEASE_QUIET",
        "print errors only, unless the value is 0, n, no, f, false or off; see --quiet",
    ),
    (
        "PGHOST, PGPORT, PGUSER, PGDATABASE, PGPASSFILE, PGSERVICE, PGSSLMODE, ...",
        "as for psql, for everything that --database-url leaves unset; see lease-connection(5)",
    ),
];

pub(super) const TTL: exit::Row = ("LEASE_TTL", "the default of --ttl");
pub(super) const LOG_FORMAT: exit::Row = ("LEASE_LOG_FORMAT", "the default of --log-format");

/// What the pages of all verbs say about variables, after those of the verb itself.
pub(super) const COMMON_VARIABLES: Block = Block::Terms(COMMON);
pub(super) const EMPTY_VARIABLES: Block = Block::Text(
    "LEASE_* and FENCE variables that are set but empty count as unset. PG* variables follow libpq: some of them, such as PGSERVICE and PGSSLMODE, must not be empty.",
);

/// The section of a verb without variables of its own.
pub(super) const VARIABLES: Section = Section {
    title: "ENVIRONMENT",
    blocks: &[COMMON_VARIABLES, EMPTY_VARIABLES],
};

/// The section of a verb that only reads or writes the table.
pub(super) const EXIT: Section = Section {
    title: "EXIT STATUS",
    blocks: &[Block::Terms(&[
        exit::DONE,
        exit::USAGE,
        exit::UNAVAILABLE,
        exit::FAILED,
    ])],
};
