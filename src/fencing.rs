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
    SELECT other.what || ' exists already, and belongs to ' || other.owner INTO remark
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
           WHEN c.relkind <> 'r' THEN 'it is not an ordinary table'
           WHEN c.relpersistence <> 'p' THEN 'it is unlogged, and so empty after a crash'
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
            MESSAGE = kept || ' exists already, and is not as lease_check_fence needs it: ' || remark,
            HINT = 'Correct that, or rename it if it is something else. If it is dropped, a stale holder can write until'
                || ' a newer one has.';
    END IF;

    IF installed IS NOT NULL THEN
        remark := obj_description(installed, 'pg_proc');
        IF remark IS NULL OR remark !~ '^lease fencing [0-9]+:' THEN
            RAISE EXCEPTION USING
                ERRCODE = 'object_not_in_prerequisite_state',
                MESSAGE = installed || ' exists already, and was not installed by lease',
                HINT = 'Find out what it is for. Then rename it, or drop it. (If it was, but was restored without its comment,'
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

    SELECT p.oid::regprocedure || ' of ' || p.proowner::regrole || ' exists, and a call could mean it' INTO remark
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

/// The SQL that removes both. The remembered fences are lost, so a stale holder can write again.
const REMOVE: &str = "\
DROP FUNCTION IF EXISTS {s}.lease_check_fence(text, bigint);
DROP TABLE IF EXISTS {s}.lease_fence;
";

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
