//! The other half of fencing: SQL by which a PostgreSQL database that jobs write to refuses a holder that has been
//! overtaken.
//!
//! `lease_check_fence(resource, fence)` is called in the transaction that writes, before the write. It remembers the
//! largest fence that it has seen for the resource in `lease_fence`, one row each; a smaller one raises
//! [`SQLSTATE_STALE`]. The table and the function lie in the schema of the lease table, but need no lease table beside them.
//!
//! Why an older writer can't commit after a newer one, at any isolation level:
//! - Every call that passes holds a lock on the resource's row until its transaction ends, and a fence that rises needs a
//!   lock that conflicts with it. So a newer fence waits for older writers that have passed, and they are done before it
//!   writes; an older fence that waits for a newer one reads the row again, and raises.
//! - Under REPEATABLE READ and SERIALIZABLE, a snapshot from before the fence rose gives 40001 in its place, which
//!   is to be retried as a whole, like any other; the retry then passes or raises.
//!
//! An equal fence takes FOR SHARE only: it writes no new row version, and a job that writes through several connections
//! does not wait for itself. The row is read without a lock first, because two transactions that both hold the share
//! lock and both want to raise the fence would be a deadlock.

/// The SQLSTATE of a fence that is smaller than one seen before.
///
/// The class `LF` belongs to nobody: the SQL standard leaves classes that begin with I to Z to implementations, and
/// PostgreSQL uses none but P0 and XX of them (its documentation, appendix A).
pub const SQLSTATE_STALE: &str = "LF001";

/// The version of the function, kept as its comment. It rises with every change of the SQL, so that an older `lease init` does not
/// undo what a newer one has installed.
pub const VERSION: u32 = 1;

/// The SQL that installs both, or brings them up to date. `{s}` is the quoted schema, `{s'}` the same inside a string.
///
/// - The search path of whoever installs it is the first thing to go: an operator or a type of somebody's own could be in it.
/// - One installation at a time goes on; CREATE OR REPLACE fails in the others otherwise.
/// - The fillfactor leaves room in the page, so that a rising fence stays a HOT update.
/// - SECURITY DEFINER, so that a role needs EXECUTE and no right on the table, by which it could lower a fence. Hence the fixed
///   search path, with `pg_temp` last, and the schema before every name.
/// - A table that somebody else has put there before could have triggers, which would run with the owner's rights.
/// - EXECUTE is not left to PUBLIC: who may call the function with a huge fence can lock every holder out. It is taken away
///   at the first installation only, so that a later one keeps what an administrator has granted.
/// - Not STRICT: that would make a NULL fence, say from an unset variable, pass.
const INSTALL: &str = "\
SET LOCAL search_path = pg_catalog;

DO {q}
BEGIN
    PERFORM pg_catalog.pg_advisory_xact_lock(pg_catalog.hashtextextended('pglease fencing', 0));
END
{q};

CREATE TABLE IF NOT EXISTS {s}.lease_fence (
    resource text        PRIMARY KEY,
    fence    bigint      NOT NULL,
    since    timestamptz NOT NULL DEFAULT pg_catalog.clock_timestamp()
) WITH (fillfactor = 50);

CREATE OR REPLACE FUNCTION {s}.lease_check_fence(resource text, fence bigint) RETURNS void
    LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS {q}
#variable_conflict use_column
DECLARE
    asked   ALIAS FOR $1;
    offered ALIAS FOR $2;
    newest  bigint;
BEGIN
    IF asked IS NULL OR offered IS NULL THEN
        RAISE EXCEPTION USING
            ERRCODE = 'null_value_not_allowed',
            MESSAGE = 'lease_check_fence needs a resource and a fence, and got NULL',
            HINT = 'The fence is what lease run puts into FENCE, and lease claim prints.';
    END IF;
    LOOP
        SELECT f.fence INTO newest FROM {s}.lease_fence AS f WHERE f.resource = asked;
        IF newest = offered THEN
            SELECT f.fence INTO newest FROM {s}.lease_fence AS f WHERE f.resource = asked FOR SHARE;
            IF newest = offered THEN
                RETURN;
            END IF;
        END IF;
        IF newest > offered THEN
            RAISE EXCEPTION USING
                ERRCODE = '{stale}',
                MESSAGE = format('fence %s is stale: %s has seen fence %s', offered, quote_literal(asked), newest),
                HINT = 'Another holder has taken over. Stop this job; a retry needs a lease of its own.';
        END IF;
        INSERT INTO {s}.lease_fence AS f (resource, fence) VALUES (asked, offered)
            ON CONFLICT (resource)
            DO UPDATE SET fence = EXCLUDED.fence, since = EXCLUDED.since WHERE f.fence < EXCLUDED.fence;
        IF FOUND THEN
            RETURN;
        END IF;
    END LOOP;
END
{q};

DO {q}
DECLARE
    installed CONSTANT pg_catalog.regprocedure := '{s'}.lease_check_fence(pg_catalog.text,pg_catalog.int8)';
    version   CONSTANT pg_catalog.text := pg_catalog.obj_description(installed, 'pg_proc');
BEGIN
    IF (SELECT c.relowner <> p.proowner
          FROM pg_catalog.pg_class AS c, pg_catalog.pg_proc AS p
         WHERE c.oid = '{s'}.lease_fence'::pg_catalog.regclass AND p.oid = installed) THEN
        RAISE EXCEPTION USING
            ERRCODE = 'insufficient_privilege',
            MESSAGE = 'lease_fence and lease_check_fence have different owners',
            HINT = 'Find out who made the table, then drop it or ALTER its OWNER.';
    END IF;
    IF version IS NULL THEN
        REVOKE EXECUTE ON FUNCTION {s}.lease_check_fence(text, bigint) FROM PUBLIC;
    ELSIF pg_catalog.substring(version, '^lease fencing ([0-9]+)')::pg_catalog.int4 > {version} THEN
        RAISE EXCEPTION USING
            ERRCODE = 'object_not_in_prerequisite_state',
            MESSAGE = pg_catalog.format('a newer lease_check_fence is installed (%s)', version),
            HINT = 'Nothing was changed. Use the newer lease to install it again.';
    END IF;
END
{q};

COMMENT ON FUNCTION {s}.lease_check_fence(text, bigint) IS 'lease fencing {version}: raises {stale} for a fence smaller than one seen before';
";

/// The SQL that removes both. What was remembered is gone with them: a stale holder then writes again.
const REMOVE: &str = "\
DROP FUNCTION IF EXISTS {s}.lease_check_fence(text, bigint);
DROP TABLE IF EXISTS {s}.lease_fence;
";

/// The statements that install `lease_check_fence` and its table in a schema, or bring them up to date.
///
/// `schema` is an identifier in quotes. They are to be run in one transaction, by the role that shall own both: the function acts
/// with its rights. Whoever calls it needs `GRANT USAGE ON SCHEMA` and `GRANT EXECUTE ON FUNCTION`. Harmless where they
/// are installed; rows and grants stay.
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
    // The schema stands inside of dollar quotes too, and may hold any character.
    let mut quote = "$lease$".to_owned();
    while schema.contains(&quote) {
        quote.insert(quote.len() - 1, '_');
    }
    let within_string = schema.replace('\'', "''");
    // What is filled in last is not searched again: a schema may even be called {s}.
    let parts: Vec<String> = text
        .replace("{q}", &quote)
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
    fn a_schema_can_end_no_quotation() {
        let text = ddl("\"a$lease$'b\"");
        assert!(text.contains("AS $lease_$"), "{text}");
        assert!(text.contains("'\"a$lease$''b\".lease_fence'"), "{text}");
    }
}
