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
            resource text COLLATE "C" PRIMARY KEY,
            fence    bigint      NOT NULL,
            since    timestamptz NOT NULL DEFAULT clock_timestamp()
        ) WITH (fillfactor = 50);
    END IF;

    CREATE OR REPLACE FUNCTION {s}.lease_check_fence(resource text, fence bigint) RETURNS void
        LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS {b}
#variable_conflict use_column
DECLARE
    asked   CONSTANT text COLLATE "C" := $1;
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
