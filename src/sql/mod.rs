//! Every statement, a named constant each, with its contract above it.
//!
//! Rules that hold for all of them:
//! - All times are `clock_timestamp()`, the server's: never `now()`, which is fixed at the start of the transaction, and
//!   never a client's clock. Values that belong together come from one reading.
//! - The table is always named with its schema, and `search_path` is `pg_catalog` (see `BEGIN` in the source): neither a role's
//!   search path nor a function of the same name in another schema changes what a statement means.
//! - Durations arrive as microseconds in a BIGINT.
//!
//! `{t}` stands for the table, `{micros:X}` for the microseconds since 1970 of `X`, `{row:R}` for the columns that
//! describe a row `R` which carries a reading of the clock as `R.now`, `{row:R,N}` where the reading is `N`;
//! [`Statements::new`] fills them in.

mod fragments;
mod pattern;
mod table;

use self::fragments::expand;
pub use self::pattern::Pattern;
pub use self::table::{Table, quote};

/// Opens the transaction of an operation, together with the settings that its surroundings could spoil, in one flight.
///
/// - READ COMMITTED, because under a role whose default is serializable a contended statement fails with 40001 instead of
///   answering.
/// - SET LOCAL works through PgBouncer in transaction mode, leaks to nobody, and undoes what another client leaked.
/// - The search path comes first, so that nothing after it can be looked up elsewhere.
/// - What the catalogue's functions print is compared as text: the names of types, the default of a column.
/// - The limits come before the statement, since a `statement_timeout` that is set inside a statement does not bound it.
///   `idle_in_transaction_session_timeout` ends us on the server if this machine freezes between the statement and
///   COMMIT, with the row locked.
/// - Durability is raised, never lowered: a grant that a crash can undo is no grant.
///
/// `{statement_ms}`, `{lock_ms}` and `{idle_ms}` are filled in by [`begin`].
const BEGIN: &str = "\
BEGIN ISOLATION LEVEL READ COMMITTED;
SET LOCAL search_path = pg_catalog;
SET LOCAL quote_all_identifiers = off;
SET LOCAL statement_timeout = {statement_ms};
SET LOCAL lock_timeout = {lock_ms};
SET LOCAL idle_in_transaction_session_timeout = {idle_ms};
SELECT set_config('synchronous_commit', 'on', true)
 WHERE current_setting('synchronous_commit') IN ('off', 'local')";

/// The same for reading, on a standby too: no durability to raise.
const BEGIN_READ: &str = "\
BEGIN ISOLATION LEVEL READ COMMITTED READ ONLY;
SET LOCAL search_path = pg_catalog;
SET LOCAL quote_all_identifiers = off;
SET LOCAL statement_timeout = {statement_ms};
SET LOCAL lock_timeout = {lock_ms};
SET LOCAL idle_in_transaction_session_timeout = {idle_ms}";

/// Ends the transaction of an operation. Held back until the answer has arrived in time.
pub const COMMIT: &str = "COMMIT";

/// Takes the lease if it is free or expired, extends it if it is the caller's and unexpired, otherwise does nothing and
/// says who has it.
///
/// Parameters: key, holder, ttl, whether a later expiry of the caller's own stays. Answers `granted`, `inserted` and a
/// row; no row at all, or a row that is not in anybody's way, means that another claim came first, and that the statement
/// has to be asked again.
///
/// - A claim that loses writes nothing: `look` comes first, because ON CONFLICT DO UPDATE locks the row (transaction id,
///   WAL, flush) even where its WHERE is false.
/// - The WHERE and the SET of DO UPDATE are evaluated after the row lock was obtained, so the expiry counts from there. A
///   claim behind a row that is locked for longer than the ttl would otherwise be born expired.
/// - The fence stays for the same holder on an unexpired lease, so that a claim repeated because its answer was lost
///   returns the same term. Otherwise it is larger than its predecessor, and tied to the clock, so that it grows even
///   across the loss of the row.
/// - `least(acquired_at, now)`: where the server's clock was set back, the CHECK must not refuse a holder its own lease.
/// - `now` is the reading that the expiry was counted from, unless a later expiry has stayed.
/// - A new row's fence was computed before the INSERT could have waited for a row that was being deleted: see [`FRESHEN`].
const CLAIM: &str = "\
WITH look AS MATERIALIZED (
    SELECT key, holder, fence, acquired_at, expires_at, clock_timestamp() AS now
      FROM {t}
     WHERE key = $1
), attempt AS (
    INSERT INTO {t} AS l (key, holder, fence, acquired_at, expires_at)
    SELECT $1, $2, {micros:c.now}, c.now, c.now + $3 * interval '1 microsecond'
      FROM (SELECT clock_timestamp() AS now) AS c
     WHERE NOT EXISTS (SELECT FROM look WHERE look.holder <> $2 AND look.expires_at > look.now)
    ON CONFLICT (key) DO UPDATE
       SET (holder, fence, acquired_at, expires_at) = (
           SELECT EXCLUDED.holder,
                  CASE WHEN s.ours THEN l.fence ELSE greatest(l.fence + 1, {micros:s.now}) END,
                  CASE WHEN s.ours THEN least(l.acquired_at, s.now) ELSE s.now END,
                  greatest(
                      s.now + $3 * interval '1 microsecond',
                      CASE WHEN $4 AND s.ours AND l.acquired_at <= s.now THEN l.expires_at END)
             FROM (SELECT c.now, l.holder = EXCLUDED.holder AND l.expires_at > c.now AS ours
                     FROM (SELECT clock_timestamp() AS now) AS c) AS s)
     WHERE l.holder = EXCLUDED.holder OR l.expires_at <= clock_timestamp()
    RETURNING l.key, l.holder, l.fence, l.acquired_at, l.expires_at,
              least(l.expires_at - $3 * interval '1 microsecond', clock_timestamp()) AS now, (l.xmax = 0) AS inserted
)
SELECT true AS granted, r.inserted, {row:r}
  FROM attempt AS r
UNION ALL
SELECT false, false, {row:r}
  FROM look AS r
 WHERE NOT EXISTS (SELECT FROM attempt)";

/// Reads the clock again for a row that [`CLAIM`] has just inserted, in the same transaction.
///
/// Parameters: key, holder, ttl, fence. The INSERT may have waited for a row that was being deleted, while another holder
/// came and went; only a reading made once the row exists is later than every fence before it.
const FRESHEN: &str = "\
UPDATE {t} AS l
   SET (fence, acquired_at, expires_at) = (
       SELECT greatest(l.fence, {micros:c.now}), c.now, c.now + $3 * interval '1 microsecond'
         FROM (SELECT clock_timestamp() AS now) AS c)
 WHERE l.key = $1 AND l.holder = $2 AND l.fence = $4
RETURNING true AS granted, false AS inserted, {row:l,l.acquired_at}";

/// Extends an unexpired term. No row is final: the caller is no longer the holder.
///
/// Parameters: key, holder, ttl, fence, whether a later expiry stays. The clock is read once the row is locked: an UPDATE
/// that waits for a row which is only locked, not changed, would go on with the reading it made before, and bring an
/// expired lease back.
///
/// A term that began in the future was granted before the clock was set back: the rest of it is no measure.
const RENEW: &str = "\
WITH locked AS MATERIALIZED (
    SELECT key, acquired_at, expires_at
      FROM {t}
     WHERE key = $1 AND holder = $2 AND fence = $4
       FOR NO KEY UPDATE
), term AS MATERIALIZED (
    SELECT key, acquired_at, expires_at, clock_timestamp() AS now FROM locked
)
UPDATE {t} AS l
   SET acquired_at = least(l.acquired_at, term.now),
       expires_at = greatest(
           term.now + $3 * interval '1 microsecond',
           CASE WHEN $5 AND term.acquired_at <= term.now THEN term.expires_at END)
  FROM term
 WHERE l.key = term.key AND l.holder = $2 AND l.fence = $4 AND term.expires_at > term.now
RETURNING true AS granted, false AS inserted, {row:l,term.now}";

/// Ends a term, expired or not. The row stays, so that the fence goes on.
///
/// Parameters: key, holder, fence, hold. The expiry becomes now, or `acquired_at + hold` where that is later.
const RELEASE: &str = "\
UPDATE {t} AS l
   SET (holder, acquired_at, expires_at) = (SELECT '', {ended:l,$4})
 WHERE l.key = $1 AND l.holder = $2 AND l.fence = $3
RETURNING l.key";

/// Ends whatever term there is, or only the one with the given fence, and answers the row as it was before.
///
/// Parameters: key, fence (or NULL), hold. A cooling lease ends too: an operator who forces a release wants the next
/// claim to succeed.
const EVICT: &str = "\
WITH locked AS MATERIALIZED (
    SELECT key, holder, fence, acquired_at, expires_at
      FROM {t}
     WHERE key = $1 AND ($2::bigint IS NULL OR fence = $2)
       FOR NO KEY UPDATE
), term AS MATERIALIZED (
    SELECT locked.*, clock_timestamp() AS now FROM locked
)
UPDATE {t} AS l
   SET (holder, acquired_at, expires_at) = (SELECT '', {ended:l,$3})
  FROM term AS r
 WHERE l.key = r.key AND l.fence = r.fence AND (r.holder <> '' OR r.expires_at > r.now)
RETURNING {row:r}";

/// Answers the row of one key, if there is one. Parameter: key.
const LOOK: &str = "\
SELECT {row:r}
  FROM (SELECT l.*, clock_timestamp() AS now FROM {t} AS l WHERE l.key = $1) AS r";

/// Answers many rows, by key. Parameters: whether free ones too; LIKE patterns, or NULL for every key.
const STATUS: &str = "\
WITH clock AS MATERIALIZED (SELECT clock_timestamp() AS now)
SELECT {row:r}
  FROM (SELECT l.*, clock.now FROM {t} AS l CROSS JOIN clock) AS r
 WHERE ($1 OR r.holder <> '' OR r.expires_at > r.now)
   AND ($2::text[] IS NULL OR r.key LIKE ANY ($2))
 ORDER BY r.key COLLATE \"C\"";

/// Serializes the making of the table, by one lock for each table name: fifty replicas that start at once make it once.
///
/// The one place for an advisory lock: short, and released by COMMIT. Parameter: the table's quoted name.
pub const MAKE_LOCK: &str = "SELECT pg_advisory_xact_lock(hashtextextended('pglease ' || $1, 0))";

/// Whether the table exists already. CREATE TABLE IF NOT EXISTS demands the CREATE privilege even then.
/// Parameter: the table's quoted name.
pub const EXISTS: &str = "SELECT to_regclass($1) IS NOT NULL";

/// What keeps a table of this name from holding leases, or NULL. No row: there is no such table.
/// Parameter: the table's quoted name.
pub const MISSHAPEN: &str = "\
SELECT CASE
       WHEN c.relkind NOT IN ('r', 'p') THEN 'it is no table'
       WHEN (SELECT count(*)
               FROM pg_attribute AS a
              WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
                AND (a.attname, a.atttypid::regtype::text) IN (
                    ('key', 'text'), ('key', 'character varying'), ('holder', 'text'), ('holder', 'character varying'),
                    ('fence', 'bigint'), ('acquired_at', 'timestamp with time zone'),
                    ('expires_at', 'timestamp with time zone'))) < 5
       THEN 'it lacks columns: key text, holder text, fence bigint, acquired_at timestamptz, expires_at timestamptz'
       WHEN NOT EXISTS (
            SELECT FROM pg_index AS i
              JOIN pg_attribute AS a ON a.attrelid = i.indrelid AND a.attnum = i.indkey[0]
             WHERE i.indrelid = c.oid AND i.indisunique AND i.indisvalid AND i.indpred IS NULL
               AND i.indnkeyatts = 1 AND a.attname = 'key')
       THEN 'key is not its primary key'
       END
  FROM pg_class AS c
 WHERE c.oid = to_regclass($1)";

/// Whether a row that another program inserts without a fence gets one that is tied to the clock. No row: no such column,
/// or no table (a view has no default of its own). Parameter: the table's quoted name.
///
/// With another default, such as a constant or a sequence, or with none, where the program has to know a fence, a key whose
/// row was deleted can begin anew below the fences that it has had.
pub const FENCE_DEFAULT: &str = "\
SELECT coalesce(pg_get_expr(d.adbin, d.adrelid) LIKE '%clock_timestamp()%', false)
  FROM pg_attribute AS a
  JOIN pg_class AS c ON c.oid = a.attrelid AND c.relkind IN ('r', 'p')
  LEFT JOIN pg_attrdef AS d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
 WHERE a.attrelid = to_regclass($1) AND a.attname = 'fence'";

/// Gives the column that default.
const SAFE_DEFAULT: &str =
    "ALTER TABLE {t} ALTER COLUMN fence SET DEFAULT {micros:pg_catalog.clock_timestamp()}";

/// Makes the table.
///
/// - The CHECK turns a wrong duration into an error instead of a lease that nobody can see.
/// - No index but the primary key, and room in each page: heartbeats stay HOT updates, and the table does not grow.
/// - The default of `fence` is for programs that insert rows with statements of their own.
/// - Types, functions and operators by their schema: the printed script runs under whatever search path a migration has, and
///   what is found first there is evaluated by every claim afterwards.
const CREATE: &str = "\
CREATE TABLE IF NOT EXISTS {t} (
    key         pg_catalog.text PRIMARY KEY,
    holder      pg_catalog.text NOT NULL,
    fence       bigint          NOT NULL
                DEFAULT {micros:pg_catalog.clock_timestamp()},
    acquired_at timestamp with time zone NOT NULL DEFAULT pg_catalog.clock_timestamp(),
    expires_at  timestamp with time zone NOT NULL,
    CONSTRAINT lease_validity CHECK (expires_at OPERATOR(pg_catalog.>) acquired_at)
) WITH (fillfactor = 50)";

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

/// The opening flight of an operation. Zero would mean "no limit", so every limit is at least a millisecond.
#[must_use]
pub fn begin(writes: bool, limits: Limits) -> String {
    let text = if writes { BEGIN } else { BEGIN_READ };
    text.replace("{statement_ms}", &limits.statement_ms.max(1).to_string())
        .replace("{lock_ms}", &limits.lock_ms.max(1).to_string())
        .replace("{idle_ms}", &limits.idle_ms.max(1).to_string())
}

/// The statements for one table.
#[derive(Clone, Debug)]
pub struct Statements {
    /// See `CLAIM` in the source.
    pub claim: String,
    /// See `FRESHEN` in the source.
    pub freshen: String,
    /// See `RENEW` in the source.
    pub renew: String,
    /// See `RELEASE` in the source.
    pub release: String,
    /// See `EVICT` in the source.
    pub evict: String,
    /// See `LOOK` in the source.
    pub look: String,
    /// See `STATUS` in the source.
    pub status: String,
    /// See `CREATE` in the source.
    pub create: String,
    /// See `SAFE_DEFAULT` in the source.
    pub safe_default: String,
}

impl Statements {
    /// Fills in the table.
    #[must_use]
    pub fn new(table: &Table) -> Self {
        let fill = |text: &str| expand(text).replace("{t}", &table.quoted());
        Self {
            claim: fill(CLAIM),
            freshen: fill(FRESHEN),
            renew: fill(RENEW),
            release: fill(RELEASE),
            evict: fill(EVICT),
            look: fill(LOOK),
            status: fill(STATUS),
            create: fill(CREATE),
            safe_default: fill(SAFE_DEFAULT),
        }
    }
}

/// The SQL of `lease init --print`: what the first claim would run. No BEGIN and no COMMIT, since a migration tool has its
/// own; nothing in it depends on the search path.
#[must_use]
pub fn script(table: &Table) -> String {
    format!("{};\n", Statements::new(table).create)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_fragment_is_filled_in() {
        let s = Statements::new(&Table::parse("jobs.lease").expect("a table"));
        for text in [
            &s.claim, &s.freshen, &s.renew, &s.release, &s.evict, &s.look, &s.status, &s.create,
        ] {
            assert!(!text.contains(['{', '}']), "{text}");
            assert!(text.contains(r#""jobs"."lease""#), "{text}");
        }
        let flight = begin(
            true,
            Limits {
                statement_ms: 0,
                lock_ms: 5,
                idle_ms: 7,
            },
        );
        assert!(!flight.contains(['{', '}']), "{flight}");
        assert!(
            flight.contains("statement_timeout = 1;"),
            "zero would mean no limit: {flight}"
        );
    }
}
