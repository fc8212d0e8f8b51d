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
//!   is to be retried as a whole, like any other. So does a fence that rises and had to wait for an older writer: that
//!   one's rows are not in the snapshot either. A retry has lost its place behind the older writers; only at READ COMMITTED
//!   does a call wait in line until it passes, which is why the manual has a term begin with one.
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
pub const VERSION: u32 = 3;

/// The table that the function remembers fences in, in the schema of the lease table.
pub const TABLE: &str = "lease_fence";

/// The SQL that installs both, or brings them up to date. `{s}` is the quoted schema, `{s'}` the same inside a string.
///
/// - One statement, so that all of it or nothing is done also where nobody has opened a transaction (`psql` with a printed
///   script); and so that the search path, which it has to set, is what it was for the rest of a migration.
/// - The search path of whoever installs it is the first thing to go: an operator or a type of somebody's own could be in it.
/// - One installation at a time goes on; CREATE OR REPLACE fails in the others otherwise.
/// - What is there already is looked at before anything is touched. Somebody else's table could have triggers, which would run
///   with the owner's rights, or an owner who lowers a fence; somebody else's function need not check anything. A trigger
///   may also be left from somebody who once had the right to make one; an UNLOGGED table is empty after a crash.
/// - Names are found in the newest catalogue, rows with the transaction's snapshot: under REPEATABLE READ what is there may have
///   no row to be looked at. And who may create things here can do so while CREATE TABLE waits, and would then own what CREATE
///   OR REPLACE replaces; so whose the function is, and whether it is the only one, is asked at the end.
/// - The fillfactor leaves room in the page, so that a rising fence stays a HOT update.
/// - SECURITY DEFINER, so that a role needs EXECUTE and no right on the table, by which it could lower a fence. Hence the fixed
///   search path, with `pg_temp` last, and the schema before every name.
/// - Nobody but the owner may write to the table, whatever default privileges or an earlier GRANT say.
/// - EXECUTE is not left to PUBLIC, nor to whom default privileges have given it: who may call the function with a huge fence
///   can lock every holder out. It is taken away at the first installation only, so that a later one keeps what an
///   administrator has granted.
/// - Under REPEATABLE READ and SERIALIZABLE, who raises the fence must see what was written under the older one. A writer that
///   only shares the row changes nothing in it, so the server lets the waiting transaction go on with its older snapshot.
/// - Not STRICT: that would make a NULL fence, say from an unset variable, pass. Nor does a fence below 1, which nobody was
///   ever given: it is what some languages make of a missing variable.
/// - Names are compared byte by byte: an index in the order of a C library that was upgraded may miss the row of a newer holder.
/// - A name no longer than a key may be, since one that does not fit into an index page would fail in words of its own; and
///   without control characters in the message, which goes to terminals.
const INSTALL: &str = "\
DO {q}
DECLARE
    path      CONSTANT pg_catalog.text := pg_catalog.current_setting('search_path');
    kept      pg_catalog.regclass;
    installed pg_catalog.regprocedure;
    remark    pg_catalog.text;
    me        pg_catalog.regrole;
    grantee   pg_catalog.text;
BEGIN
    PERFORM pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true);
    PERFORM pg_advisory_xact_lock(hashtextextended('pglease fencing', 0));

    SELECT r.oid INTO me FROM pg_roles AS r WHERE r.rolname = current_user;
    kept := to_regclass('{s'}.lease_fence');
    installed := to_regprocedure('{s'}.lease_check_fence(pg_catalog.text,pg_catalog.int8)');
    IF kept IS NOT NULL AND NOT EXISTS (SELECT FROM pg_class AS c WHERE c.oid = kept)
        OR installed IS NOT NULL AND NOT EXISTS (SELECT FROM pg_proc AS p WHERE p.oid = installed) THEN
        RAISE EXCEPTION USING
            ERRCODE = 'serialization_failure',
            MESSAGE = 'lease_fence or lease_check_fence was made after this transaction had begun',
            HINT = 'Run it again.';
    END IF;
    SELECT other.what || ' is there already, and belongs to ' || other.owner INTO remark
      FROM (SELECT kept::text AS what, c.relowner::regrole AS owner FROM pg_class AS c WHERE c.oid = kept
             UNION ALL
            SELECT installed::text, p.proowner::regrole FROM pg_proc AS p WHERE p.oid = installed) AS other
     WHERE other.owner <> me;
    IF FOUND THEN
        RAISE EXCEPTION USING
            ERRCODE = 'object_not_in_prerequisite_state',
            MESSAGE = remark,
            HINT = 'Find out who made it. If it is in use, install as that role; if not, rename it. If it is dropped, a stale'
                || ' holder can write until a newer one has.';
    END IF;

    SELECT CASE
           WHEN c.relkind <> 'r' THEN 'it is no plain table'
           WHEN c.relpersistence <> 'p' THEN 'it is not logged, so that it is empty after a crash'
           WHEN EXISTS (SELECT FROM pg_trigger AS t WHERE t.tgrelid = c.oid AND NOT t.tgisinternal) THEN 'it has triggers'
           WHEN EXISTS (SELECT FROM pg_rewrite AS r WHERE r.ev_class = c.oid) THEN 'it has rules'
           WHEN EXISTS (SELECT FROM pg_inherits AS h WHERE c.oid IN (h.inhrelid, h.inhparent)) THEN 'it has a parent or children'
           WHEN c.relrowsecurity THEN 'it has row level security'
           WHEN 3 <> (SELECT count(*) FROM pg_attribute AS a WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped)
             OR 3 <> (SELECT count(*)
                        FROM pg_attribute AS a
                       WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
                         AND (a.attname, a.atttypid, a.attnotnull, a.atthasdef) IN (
                             ('resource', 'text'::regtype, true, false), ('fence', 'int8'::regtype, true, false),
                             ('since', 'timestamptz'::regtype, true, true)))
           THEN 'its columns are not resource text, fence bigint and since timestamptz, all NOT NULL, the last with a default'
           WHEN NOT EXISTS (
                SELECT FROM pg_index AS i
                  JOIN pg_attribute AS k ON k.attrelid = i.indrelid AND k.attnum = i.indkey[0] AND k.attname = 'resource'
                 WHERE i.indrelid = c.oid AND i.indisunique AND i.indisvalid AND i.indimmediate AND i.indnkeyatts = 1
                   AND i.indpred IS NULL)
           THEN 'resource is not its primary key'
           END INTO remark
      FROM pg_class AS c
     WHERE c.oid = kept;
    IF remark IS NOT NULL THEN
        RAISE EXCEPTION USING
            ERRCODE = 'object_not_in_prerequisite_state',
            MESSAGE = kept || ' is there already, and is not as lease_check_fence needs it: ' || remark,
            HINT = 'Put that right, or rename it if it is something else. If it is dropped, a stale holder can write until'
                || ' a newer one has.';
    END IF;

    IF installed IS NOT NULL THEN
        remark := obj_description(installed, 'pg_proc');
        IF remark IS NULL OR remark !~ '^lease fencing [0-9]+:' THEN
            RAISE EXCEPTION USING
                ERRCODE = 'object_not_in_prerequisite_state',
                MESSAGE = installed || ' is there already, and is not what lease has installed',
                HINT = 'Find out what it is for. Then rename it, or drop it. (Where it is, but was restored without its comment,'
                    || ' drop the function alone: what is remembered is in lease_fence.)';
        ELSIF substring(remark, '^lease fencing ([0-9]+)')::numeric > {version} THEN
            RAISE EXCEPTION USING
                ERRCODE = 'object_not_in_prerequisite_state',
                MESSAGE = 'a newer lease_check_fence is installed (' || remark || ')',
                HINT = 'It was left as it is. Use the newer lease to install it again.';
        END IF;
    END IF;

    IF kept IS NULL THEN
        CREATE TABLE {s}.lease_fence (
            resource text COLLATE \"C\" PRIMARY KEY,
            fence    bigint      NOT NULL,
            since    timestamptz NOT NULL DEFAULT clock_timestamp()
        ) WITH (fillfactor = 50);
    END IF;

    CREATE OR REPLACE FUNCTION {s}.lease_check_fence(resource text, fence bigint) RETURNS void
        LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS {b}
#variable_conflict use_column
DECLARE
    asked   CONSTANT text COLLATE \"C\" := $1;
    offered ALIAS FOR $2;
    newest  bigint;
    shown   text;
BEGIN
    IF asked IS NULL OR offered IS NULL THEN
        RAISE EXCEPTION USING
            ERRCODE = 'null_value_not_allowed',
            MESSAGE = 'lease_check_fence needs a resource and a fence, and got NULL',
            HINT = 'The fence is what lease run puts into FENCE, and lease claim prints.';
    ELSIF offered < 1 THEN
        RAISE EXCEPTION USING
            ERRCODE = 'invalid_parameter_value',
            MESSAGE = format('lease_check_fence needs a fence of at least 1, and got %s', offered),
            HINT = 'The fence is what lease run puts into FENCE, and lease claim prints.';
    ELSIF octet_length(asked) NOT BETWEEN 1 AND 1024 THEN
        RAISE EXCEPTION USING
            ERRCODE = 'invalid_parameter_value',
            MESSAGE = format('lease_check_fence needs a resource of 1 to 1024 bytes, and got %s', octet_length(asked)),
            HINT = 'Give each thing that a lease protects a short name.';
    END IF;
    LOOP
        SELECT f.fence INTO newest FROM {s}.lease_fence AS f WHERE f.resource = asked;
        IF newest = offered THEN
            SELECT f.fence INTO newest FROM {s}.lease_fence AS f WHERE f.resource = asked FOR SHARE;
            IF newest = offered THEN
                RETURN;
            END IF;
        END IF;
        shown := regexp_replace(quote_literal(asked), '[[:cntrl:]]', '?', 'g');
        IF newest > offered THEN
            RAISE EXCEPTION USING
                ERRCODE = '{stale}',
                MESSAGE = format('fence %s is stale: %s has seen fence %s', offered, shown, newest),
                HINT = 'Another holder has taken over. Stop this job; a retry needs a lease of its own.';
        END IF;
        IF newest < offered AND current_setting('transaction_isolation') IN ('repeatable read', 'serializable') THEN
            PERFORM FROM {s}.lease_fence AS f WHERE f.resource = asked FOR NO KEY UPDATE SKIP LOCKED;
            IF NOT FOUND THEN
                PERFORM FROM {s}.lease_fence AS f WHERE f.resource = asked FOR NO KEY UPDATE;
                RAISE EXCEPTION USING
                    ERRCODE = 'serialization_failure',
                    MESSAGE = format('could not serialize access: %s may have been written to under an older fence meanwhile', shown),
                    HINT = 'Run the transaction again as a whole: it then sees what was written.';
            END IF;
        END IF;
        INSERT INTO {s}.lease_fence AS f (resource, fence) VALUES (asked, offered)
            ON CONFLICT (resource)
            DO UPDATE SET fence = EXCLUDED.fence, since = EXCLUDED.since WHERE f.fence < EXCLUDED.fence;
        IF FOUND THEN
            RETURN;
        END IF;
    END LOOP;
END
{b};
    COMMENT ON FUNCTION {s}.lease_check_fence(text, bigint) IS 'lease fencing {version}: raises {stale} for a fence smaller than one seen before';

    SELECT p.oid::regprocedure || ' of ' || p.proowner::regrole || ' is there, and a call could mean it' INTO remark
      FROM pg_proc AS p
     WHERE p.pronamespace = to_regnamespace('{s'}') AND p.proname = 'lease_check_fence'
       AND (p.proowner <> me OR p.oid <> '{s'}.lease_check_fence(text,int8)'::regprocedure);
    IF FOUND THEN
        RAISE EXCEPTION USING
            ERRCODE = 'object_not_in_prerequisite_state',
            MESSAGE = remark,
            HINT = 'Only lease_check_fence(text, bigint) may have that name. Find out what the other is for. Then rename it, or drop it.';
    END IF;

    FOR grantee IN
        SELECT DISTINCT CASE acl.grantee WHEN 0 THEN 'PUBLIC' ELSE acl.grantee::regrole::text END
          FROM pg_class AS c, pg_attribute AS a, aclexplode(c.relacl || a.attacl) AS acl
         WHERE c.oid = '{s'}.lease_fence'::regclass AND a.attrelid = c.oid AND acl.grantee <> c.relowner
           AND acl.privilege_type <> 'SELECT'
    LOOP
        EXECUTE 'REVOKE INSERT, UPDATE, DELETE, TRUNCATE, REFERENCES, TRIGGER ON {s'}.lease_fence FROM ' || grantee || ' CASCADE';
    END LOOP;
    IF installed IS NULL THEN
        FOR grantee IN
            SELECT DISTINCT CASE acl.grantee WHEN 0 THEN 'PUBLIC' ELSE acl.grantee::regrole::text END
              FROM pg_proc AS p, aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) AS acl
             WHERE p.oid = '{s'}.lease_check_fence(text,int8)'::regprocedure AND acl.grantee <> p.proowner
        LOOP
            EXECUTE 'REVOKE EXECUTE ON FUNCTION {s'}.lease_check_fence(text, bigint) FROM ' || grantee || ' CASCADE';
        END LOOP;
    END IF;

    PERFORM set_config('search_path', path, true);
END
{q};
";

/// The SQL that removes both. What was remembered is gone with them: a stale holder then writes again.
const REMOVE: &str = "\
DROP FUNCTION IF EXISTS {s}.lease_check_fence(text, bigint);
DROP TABLE IF EXISTS {s}.lease_fence;
";

/// The statement that installs `lease_check_fence` and its table in a schema, or brings them up to date.
///
/// `schema` is an identifier in quotes. To be run by the role that shall own both, with whose rights the function acts. It is
/// one statement, which does all or nothing and leaves no setting behind. Whoever calls the function needs `GRANT USAGE ON
/// SCHEMA` and `GRANT EXECUTE ON FUNCTION`. Harmless where both are installed; what is remembered stays, and so does who may call.
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
    let tag = |name: &str| {
        let mut tag = format!("${name}$");
        while schema.contains(&tag) {
            tag.insert(tag.len() - 1, '_');
        }
        tag
    };
    let within_string = schema.replace('\'', "''");
    // What is filled in last is not searched again: a schema may even be called {s}.
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
    fn a_schema_can_end_no_quotation() {
        let text = ddl("\"a$lease$'b\"");
        assert!(text.starts_with("DO $lease_$\n"), "{text}");
        assert!(text.contains("'\"a$lease$''b\".lease_fence'"), "{text}");
    }
}
