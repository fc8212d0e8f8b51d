//! The other half of fencing: the SQL with which a PostgreSQL database refuses the writes of a holder whose term is
//! over.
//!
//! A job calls `lease_check_fence(resource, fence)` in the transaction that writes, before the write. The function
//! remembers the largest fence of each resource in `lease_fence`, one row each. A smaller fence raises
//! [`SQLSTATE_STALE`]. The table and the function are in the schema of the lease table, but need no lease table.
//!
//! Why an older writer cannot commit after a newer one, at any isolation level:
//! - Every call that passes holds a lock on the row of the resource until its transaction ends, and raising the fence
//!   needs a conflicting lock. So a newer fence waits for older writers that have passed, and they have finished before it
//!   writes. An older fence that waits for a newer one reads the row again, and raises.
//! - Under REPEATABLE READ and SERIALIZABLE, a snapshot from before the fence rose gives 40001 instead. The transaction must
//!   then be retried as a whole, as always. The same happens to a transaction that raises the fence and had to wait for an
//!   older writer, because its snapshot does not show that writer's rows. A retry loses its place behind the older writers.
//!   Only at READ COMMITTED does a call wait in line until it passes. This is why the manual begins a term with one.
//!
//! An equal fence takes only FOR SHARE. It writes no new row version, and a job that writes through several connections does
//! not wait for itself. The row is read without a lock first: two transactions that both hold the share lock and both want to
//! raise the fence would be a deadlock.

/// The SQLSTATE of a fence that is smaller than one seen before.
///
/// The SQL standard leaves the classes that begin with I to Z to implementations, and PostgreSQL uses only P0 and XX of
/// them (its documentation, appendix A). So the class `LF` is not in use.
pub const SQLSTATE_STALE: &str = "LF001";

/// The version of the function, kept in its comment. It rises with every change of the function, so that an older `lease init` does
/// not undo what a newer one has installed.
pub const VERSION: u32 = 3;

/// The table in which the function remembers fences, in the schema of the lease table.
pub const TABLE: &str = "lease_fence";

/// The SQL that installs both, or brings them up to date. `{s}` is the quoted schema, `{s'}` the same inside a string.
///
/// - It is one statement. So all of it or nothing is done, even without an open transaction (a printed script in
///   `psql`), and the search path that it sets is restored for the rest of a migration.
/// - The search path of the caller is replaced first: it could contain an operator or a type of another user.
/// - Only one installation runs at a time. CREATE OR REPLACE would fail in the others.
/// - What exists is inspected before anything is touched. A table of another owner could have triggers, which would run
///   with the owner's rights, and its owner could lower a fence. A function of another owner may check nothing. A
///   trigger may also remain from a role that once had the right to create one. An UNLOGGED table is empty after a
///   crash.
/// - Names are looked up in the newest catalogue, rows with the transaction's snapshot. So under REPEATABLE READ an existing
///   object may have no visible row. And while CREATE TABLE waits, another role with CREATE could create the function, and
///   would own what CREATE OR REPLACE replaces. So the owner, and whether the function is the only one, is checked at the end.
/// - The fillfactor leaves room in the page, so that raising a fence stays a HOT update.
/// - SECURITY DEFINER, so that a role needs EXECUTE and no right on the table, with which it could lower a fence. This requires
///   the fixed search path, with `pg_temp` last, and the schema before every name.
/// - Only the owner may write to the table, whatever default privileges or an earlier GRANT say.
/// - EXECUTE is revoked from PUBLIC and from the roles that default privileges name: a caller can lock out every holder with a
///   huge fence. This is done at the first installation only, so that later ones keep the grants of an administrator.
/// - Under REPEATABLE READ and SERIALIZABLE, the transaction that raises the fence must see what was written under the older
///   one. A writer that only shares the row changes nothing in it, so the server would let the waiting transaction go on with
///   its older snapshot.
/// - Not STRICT: a NULL fence, for example from an unset variable, would pass. A fence below 1 is refused too: it was never
///   granted, and some languages make it out of a missing variable.
/// - Names are compared byte by byte. An index in the order of a C library that was upgraded could miss the row of a newer
///   holder.
/// - A name must not be longer than a key: one that does not fit into an index page would fail with a message of its own. Messages
///   contain no control characters, because they go to terminals.
const INSTALL: &str = include_str!("fencing/install.sql");

/// The SQL that removes both. The remembered fences are lost, so a stale holder can write again.
const REMOVE: &str = include_str!("fencing/remove.sql");

/// The statement that installs `lease_check_fence` and its table in a schema, or brings them up to date.
///
/// `schema` is an identifier in quotes. The role that runs the statement owns both, and the function acts with its rights. The
/// statement does all or nothing, and leaves no setting behind. Callers need `GRANT USAGE ON SCHEMA` and `GRANT EXECUTE ON
/// FUNCTION`. Running it again keeps the remembered fences and the grants.
#[must_use]
pub fn ddl(schema: &str) -> String {
    fill(INSTALL, schema)
}

/// The statements that remove `lease_check_fence` and its table from a schema, given as for [`ddl`].
#[must_use]
pub fn drop_ddl(schema: &str) -> String {
    fill(REMOVE, schema)
}

fn fill(text: &str, schema: &str) -> String {
    // The schema also appears inside dollar quotes, and may contain any character.
    let tag = |name: &str| {
        let mut tag = format!("${name}$");
        while schema.contains(&tag) {
            tag.insert(tag.len() - 1, '_');
        }
        tag
    };
    let within_string = schema.replace('\'', "''");
    // The text that is filled in last is not searched again: a schema may even be called {s}.
    let parts: Vec<String> = text
        .replace("{q}", &tag("lease"))
        .replace("{b}", &tag("body"))
        .replace("{stale}", SQLSTATE_STALE)
        .replace("{version}", &VERSION.to_string())
        .split("{s}")
        .map(|part| part.replace("{s'}", &within_string))
        .collect();
    parts.join(schema)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_place_is_filled_in() {
        for text in [ddl("\"jobs\""), drop_ddl("\"jobs\"")] {
            assert!(!text.contains(['{', '}']), "{text}");
            assert!(text.contains("\"jobs\".lease_fence"), "{text}");
        }
    }

    #[test]
    fn a_schema_cannot_end_a_quotation() {
        let text = ddl("\"a$lease$'b\"");
        assert!(text.starts_with("DO $lease_$\n"), "{text}");
        assert!(text.contains("'\"a$lease$''b\".lease_fence'"), "{text}");
    }
}
