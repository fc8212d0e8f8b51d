-- Makes the history of a lease table, or brings it up to date: a table, the function that writes it, and the triggers that
-- call the function.
--
-- The name of the lease table and of its history are filled in, and the NULL of `asked`: how long a row is kept, in seconds,
-- or 'forever'. NULL keeps what an earlier installation has set, and else 90 days.
--
-- - Everything belongs to the owner of the lease table, also where a superuser installs it. The function has the rights of
--   its owner (SECURITY DEFINER), and whoever owns the lease table can make it run code of theirs. So it must not have more
--   rights than they have.
-- - It is one statement: all of it is done or nothing, with or without a transaction around it.
-- - The search path is set first, since somebody's own operators or types could be in it. It is put back at the end, for the
--   rest of a migration.
-- - It waits for a lock for a second at most, because every claim and renewal waits behind it. Triggers that are in place
--   stay, since replacing them locks everybody out for a moment.
-- - Nobody but the owner may write to the history, or call the function: a trigger on a table of their own could write
--   a history of things that never happened.
DO $lease$
DECLARE
    asked   CONSTANT pg_catalog.text := NULL;
    path    CONSTANT pg_catalog.text := pg_catalog.current_setting('search_path');
    patient CONSTANT pg_catalog.text := pg_catalog.current_setting('lock_timeout');
    history CONSTANT pg_catalog.text := '"public"."lease_history"';
    leases  pg_catalog.regclass;
    kept    pg_catalog.regclass;
    writer  pg_catalog.regprocedure;
    master  pg_catalog.regrole;
    remark  pg_catalog.text;
    keep    pg_catalog.text;
    grantee pg_catalog.text;
    trigger record;
    source  CONSTANT pg_catalog.text := $source$
CREATE OR REPLACE FUNCTION "public"."lease_history"() RETURNS trigger
    LANGUAGE plpgsql VOLATILE SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp
    SET lock_timeout = '500ms'
AS $body$
#variable_conflict use_column
DECLARE
    moment   CONSTANT timestamptz := clock_timestamp();
    setting  text := current_setting('lease.run', true);
    is_mended boolean;
    its_host text;
    its_pid  text;
    job      text;
    manner   text;
    code     text;
    ours_to  text;
    signal   text;
    is_emptied boolean;
    instead  text;
    oldest   timestamptz;
BEGIN
    -- What only the client knows. Anybody can put anything there, so what can't be read has not been said. A name may have
    -- letters that the encoding of this database does not have: without them the rest can be read.
    -- Texts here; each is checked where it is used, because planning the checks of all of them takes time.
    IF octet_length(setting) BETWEEN 2 AND 2000 THEN
        LOOP
            BEGIN
                SELECT nullif(left(setting::json ->> 'host', 255), ''),
                       CASE WHEN setting::json ->> 'pid' ~ '^[1-9][0-9]{0,8}$' THEN setting::json ->> 'pid' END,
                       nullif(left(setting::json ->> 'program', 255), ''), setting::json ->> 'ended',
                       setting::json ->> 'exit_code', setting::json ->> 'exit_signal', setting::json ->> 'ours_to'
                  INTO its_host, its_pid, job, manner, code, signal, ours_to;
                EXIT;
            EXCEPTION WHEN OTHERS THEN
                EXIT WHEN is_mended;
                is_mended := true;
                setting := regexp_replace(setting, E'\\\\(\\\\|u[0-9a-fA-F]{4})', '?', 'g');
            END;
        END LOOP;
    END IF;

    IF TG_OP = 'TRUNCATE' THEN
        -- No row trigger sees the rows that are removed.
        UPDATE "public"."lease_history" AS h
           SET ended_at = least(moment, l.expires_at),
               (ended, ended_by, ended_by_host, ended_by_pid) = (
                   SELECT CASE WHEN going THEN 'deleted' ELSE 'expired' END,
                          CASE WHEN going THEN session_user::text END,
                          CASE WHEN going THEN its_host END,
                          CASE WHEN going THEN its_pid::int END
                     FROM (SELECT l.expires_at > moment AS going) AS g)
          FROM "public"."lease" AS l
         WHERE l.holder <> '' AND h.key = l.key COLLATE "C" AND h.fence = l.fence AND h.ended_at IS NULL;
        RETURN NULL;
    END IF;

    -- A history that somebody has locked must not use up the time that the statement has, or most of a short term.
    IF current_setting('statement_timeout') ~ '^(1s|1?[0-9]{1,3}ms)$'
        OR NEW.holder <> '' AND NEW.expires_at < moment + interval '2 s' THEN
        PERFORM set_config('lock_timeout', greatest(10, (1000 * extract(epoch FROM least(
                    '500 ms',
                    nullif(current_setting('statement_timeout')::interval, '0 s') / 4,
                    CASE WHEN NEW.holder <> '' AND isfinite(NEW.expires_at) THEN (NEW.expires_at - moment) / 4 END
                )))::int)::text, true);
    END IF;

    IF TG_OP <> 'INSERT' AND OLD.holder <> '' THEN
        IF TG_OP = 'UPDATE' AND OLD.key = NEW.key AND OLD.holder = NEW.holder
            AND OLD.xmin::text::bigint = txid_current() % 4294967296 THEN
            -- A first claim reads the clock again once its row exists, in the same transaction. That is still one term.
            UPDATE "public"."lease_history" AS h
               SET fence = NEW.fence, acquired_at = NEW.acquired_at
             WHERE h.key = OLD.key COLLATE "C" AND h.fence = OLD.fence AND h.ended_at IS NULL;
            RETURN NULL;
        END IF;

        is_emptied := TG_OP = 'UPDATE' AND OLD.key = NEW.key AND coalesce(NEW.holder, '') = '';
        IF is_emptied THEN
            manner := CASE
                WHEN manner = 'forced' THEN CASE WHEN OLD.expires_at > moment THEN 'forced' ELSE 'expired' END
                -- Unless the job had ended in time, only its release came late, and nobody had moved the expiry.
                WHEN OLD.expires_at <= moment AND (
                    CASE WHEN ours_to ~ '^[0-9]{1,18}$'
                         THEN 'epoch'::timestamptz + ours_to::bigint * interval '1 microsecond' END
                    <= OLD.expires_at) IS NOT TRUE THEN 'lost'
                ELSE 'released' END;
        ELSE
            manner := CASE
                WHEN OLD.expires_at <= moment THEN 'expired'
                WHEN TG_OP = 'DELETE' OR OLD.key <> NEW.key THEN 'deleted'
                WHEN OLD.holder = NEW.holder THEN 'released'
                ELSE 'forced' END;
            code := NULL;
            signal := NULL;
        END IF;
        -- lease claimed it, and another program has emptied the row: its holder did not.
        IF is_emptied AND its_pid IS NULL THEN
            instead := CASE WHEN OLD.expires_at > moment THEN 'forced' ELSE 'expired' END;
        END IF;
        LOOP
            -- One level, without a subquery: every level takes time to plan.
            UPDATE "public"."lease_history" AS h
               SET ended_at = least(moment, OLD.expires_at),
                   ended = CASE
                       WHEN h.pid IS NOT NULL AND instead IS NOT NULL THEN instead
                       -- A run releases its lease itself, once its job has ended. Until then it is lost.
                       WHEN is_emptied AND manner = 'released' AND h.program IS NOT NULL
                        AND (h.host, h.pid::text) IS DISTINCT FROM (its_host, its_pid)
                       THEN 'lost'
                       ELSE manner END,
                   ended_by = CASE WHEN CASE WHEN h.pid IS NOT NULL THEN coalesce(instead, manner) ELSE manner END
                                   IN ('forced', 'deleted') THEN session_user::text END,
                   ended_by_host = CASE WHEN CASE WHEN h.pid IS NOT NULL THEN coalesce(instead, manner) ELSE manner END
                                        IN ('forced', 'deleted') THEN its_host END,
                   ended_by_pid = CASE WHEN manner IN ('forced', 'deleted') THEN its_pid::int END,
                   exit_code = CASE WHEN manner IN ('released', 'lost') AND (h.pid IS NULL OR instead IS NULL)
                                     AND code ~ '^([0-9]|[1-9][0-9]|1[0-9][0-9]|2[0-4][0-9]|25[0-5])$' THEN code::int END,
                   exit_signal = CASE WHEN manner IN ('released', 'lost') AND (h.pid IS NULL OR instead IS NULL)
                                       AND signal ~ '^([1-9]|[1-9][0-9]|1[01][0-9]|12[0-7])$' THEN signal::int END
             WHERE h.key = OLD.key COLLATE "C" AND h.fence = OLD.fence AND h.ended_at IS NULL;
            EXIT WHEN FOUND;
            -- It began before there was a history.
            INSERT INTO "public"."lease_history" (key, fence, holder, acquired_at)
            VALUES (OLD.key, OLD.fence, OLD.holder, OLD.acquired_at)
                ON CONFLICT DO NOTHING;
            EXIT WHEN NOT FOUND;
        END LOOP;
    END IF;

    IF TG_OP <> 'DELETE' AND NEW.holder <> '' THEN
        INSERT INTO "public"."lease_history" AS h (key, fence, holder, host, pid, program, acquired_at)
        VALUES (NEW.key, NEW.fence, NEW.holder, its_host, its_pid::int, job, NEW.acquired_at)
            -- The row of the lease was deleted, and put back as it had been. How any other term has ended stays as it is:
            -- whoever may update the lease table must not be able to change what was recorded.
            ON CONFLICT (key, fence, acquired_at) DO UPDATE
           SET ended_at = NULL, ended = NULL, ended_by = NULL, ended_by_host = NULL, ended_by_pid = NULL
         WHERE h.ended = 'deleted' AND h.holder = EXCLUDED.holder;
        -- Not at every term, because planning this takes longer than all else here: at the first term of a day, and at about
        -- one in sixteen of the others. Some at a time, and the oldest only: a claim must not wait until a long history is
        -- read or removed. The last success stays, however old it is: it says when the job is due again.
        -- A fence that lease has made is a time in microseconds.
        IF NEW.fence % '16' = '0' OR NEW.fence / '86400000000' IS DISTINCT FROM OLD.fence / '86400000000' THEN
            SELECT h.acquired_at INTO oldest
              FROM "public"."lease_history" AS h
             WHERE h.key = NEW.key COLLATE "C"
             ORDER BY h.fence, h.acquired_at
             LIMIT 1;
            IF oldest < moment - KEEP::interval THEN
                DELETE FROM "public"."lease_history" AS h
                 WHERE h.ctid = ANY (ARRAY(
                       SELECT o.ctid
                         FROM (SELECT b.ctid, coalesce(b.ended_at, b.acquired_at) AS last, b.fence
                                 FROM "public"."lease_history" AS b
                                WHERE b.key = NEW.key COLLATE "C"
                                ORDER BY b.fence, b.acquired_at
                                LIMIT 320) AS o
                        WHERE o.last < moment - KEEP::interval
                          AND o.fence <> NEW.fence
                          AND o.fence IS DISTINCT FROM (
                              SELECT max(s.fence)
                                FROM "public"."lease_history" AS s
                               WHERE s.key = NEW.key COLLATE "C" AND s.ended = 'released' AND s.exit_code = 0)));
            END IF;
        END IF;
    END IF;
    RETURN NULL;
EXCEPTION WHEN OTHERS THEN
    RAISE WARNING USING
        ERRCODE = 'LF002',
        MESSAGE = 'the history of leases could not be written: ' || SQLERRM,
        HINT = 'The lease itself is not affected.';
    RETURN NULL;
END
$body$
$source$;
BEGIN
    PERFORM pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true);
    IF patient = '0' OR patient::interval > '1 s' THEN
        PERFORM set_config('lock_timeout', '1s', true);
    END IF;
    PERFORM pg_advisory_xact_lock(hashtextextended('pglease history', 0));

    leases := '"public"."lease"'::regclass;
    SELECT c.relowner INTO master FROM pg_class AS c WHERE c.oid = leases;
    IF NOT pg_has_role(master, 'MEMBER') THEN
        RAISE EXCEPTION USING
            ERRCODE = 'insufficient_privilege',
            MESSAGE = 'only ' || master || ', the owner of ' || leases || ', can install its history',
            HINT = 'Run lease init as that role.';
    END IF;

    kept := to_regclass(history);
    writer := to_regprocedure(history || '()');
    SELECT other.what || ' exists already, and belongs to ' || other.owner INTO remark
      FROM (SELECT kept::text AS what, c.relowner::regrole AS owner FROM pg_class AS c WHERE c.oid = kept
             UNION ALL
            SELECT writer::text, p.proowner::regrole FROM pg_proc AS p WHERE p.oid = writer) AS other
     WHERE other.owner <> master;
    IF FOUND THEN
        RAISE EXCEPTION USING
            ERRCODE = 'object_not_in_prerequisite_state',
            MESSAGE = remark,
            HINT = 'Find out what it is for. Then rename it, or drop it.';
    END IF;
    SELECT CASE
           WHEN c.relkind <> 'r' THEN 'it is not an ordinary table'
           WHEN EXISTS (SELECT FROM pg_trigger AS t WHERE t.tgrelid = c.oid AND NOT t.tgisinternal) THEN 'it has triggers'
           WHEN 14 <> (SELECT count(*)
                         FROM pg_attribute AS a
                        WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
                          AND (a.attname, a.atttypid) IN (
                              ('key', 'text'::regtype), ('fence', 'int8'::regtype), ('holder', 'text'::regtype),
                              ('host', 'text'::regtype), ('pid', 'int4'::regtype), ('program', 'text'::regtype),
                              ('acquired_at', 'timestamptz'::regtype), ('ended_at', 'timestamptz'::regtype),
                              ('ended', 'text'::regtype), ('ended_by', 'text'::regtype),
                              ('ended_by_host', 'text'::regtype), ('ended_by_pid', 'int4'::regtype),
                              ('exit_code', 'int4'::regtype), ('exit_signal', 'int4'::regtype)))
           THEN 'its columns are others'
           WHEN NOT EXISTS (
                SELECT FROM pg_index AS i
                 WHERE i.indrelid = c.oid AND i.indisprimary
                   AND ARRAY['acquired_at', 'fence', 'key']::name[] = (
                       SELECT array_agg(a.attname ORDER BY a.attname)
                         FROM pg_attribute AS a
                        WHERE a.attrelid = c.oid AND a.attnum = ANY (i.indkey)))
           THEN 'it has no primary key (key, fence, acquired_at)'
           END INTO remark
      FROM pg_class AS c
     WHERE c.oid = kept;
    IF remark IS NOT NULL THEN
        RAISE EXCEPTION USING
            ERRCODE = 'object_not_in_prerequisite_state',
            MESSAGE = kept || ' exists already, and is not a history of leases: ' || remark,
            HINT = 'Find out what it is for. Then rename it, or drop it.';
    END IF;

    IF writer IS NOT NULL THEN
        remark := obj_description(writer, 'pg_proc');
        IF remark IS NULL OR remark !~ '^lease history, version [0-9]{1,6},' THEN
            RAISE EXCEPTION USING
                ERRCODE = 'object_not_in_prerequisite_state',
                MESSAGE = 'the function ' || writer || ' exists already, and was not installed by lease',
                HINT = 'Find out what it is for. Then rename it, or drop it.';
        ELSIF substring(remark, '^lease history, version ([0-9]+)')::int > 1 THEN
            RAISE EXCEPTION USING
                ERRCODE = 'object_not_in_prerequisite_state',
                MESSAGE = 'a newer history is installed (' || remark || ')',
                HINT = 'It was left as it is. Use the newer lease to install it again.';
        END IF;
    END IF;
    keep := coalesce(asked, substring(remark, 'kept ([0-9]+) s$'), substring(remark, 'kept (forever)$'), '7776000');

    IF kept IS NULL THEN
        CREATE TABLE "public"."lease_history" (
            key           text COLLATE "C" NOT NULL,
            fence         bigint           NOT NULL,
            holder        text             NOT NULL,
            host          text,
            pid           int,
            program       text,
            acquired_at   timestamptz      NOT NULL,
            ended_at      timestamptz,
            ended         text,
            ended_by      text,
            ended_by_host text,
            ended_by_pid  int,
            exit_code     int,
            exit_signal   int,
            PRIMARY KEY (key, fence, acquired_at)
        );
        -- What ran last, of all keys; and when each key has last succeeded.
        CREATE INDEX ON "public"."lease_history" (acquired_at);
        CREATE INDEX ON "public"."lease_history" (key, fence) WHERE ended = 'released' AND exit_code = 0;
        kept := history::regclass;
        EXECUTE format('ALTER TABLE %s OWNER TO %s', kept, master);
    END IF;
    FOR grantee IN
        SELECT DISTINCT CASE acl.grantee WHEN 0 THEN 'PUBLIC' ELSE acl.grantee::regrole::text END
          FROM pg_class AS c, pg_attribute AS a, aclexplode(c.relacl || a.attacl) AS acl
         WHERE c.oid = kept AND a.attrelid = c.oid AND acl.grantee <> c.relowner
           AND acl.privilege_type <> 'SELECT'
    LOOP
        EXECUTE format('REVOKE INSERT, UPDATE, DELETE, TRUNCATE, REFERENCES, TRIGGER ON %s FROM %s CASCADE', kept, grantee);
    END LOOP;

    EXECUTE replace(source, 'KEEP', CASE keep WHEN 'forever' THEN 'NULL' ELSE quote_literal(keep || ' s') END);
    writer := (history || '()')::regprocedure;
    EXECUTE format('COMMENT ON FUNCTION %s IS %L', writer,
        'lease history, version 1, kept ' || CASE keep WHEN 'forever' THEN keep ELSE keep || ' s' END);
    EXECUTE format('ALTER FUNCTION %s OWNER TO %s', writer, master);
    FOR grantee IN
        SELECT DISTINCT CASE acl.grantee WHEN 0 THEN 'PUBLIC' ELSE acl.grantee::regrole::text END
          FROM pg_proc AS p, aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) AS acl
         WHERE p.oid = writer AND acl.grantee <> p.proowner
    LOOP
        EXECUTE format('REVOKE EXECUTE ON FUNCTION %s FROM %s CASCADE', writer, grantee);
    END LOOP;

    FOR trigger IN
        SELECT * FROM (VALUES
            ('lease_history_insert', 'AFTER INSERT', 'FOR EACH ROW WHEN (NEW.holder <> '''')'),
            ('lease_history_update', 'AFTER UPDATE OF key, holder, fence',
                'FOR EACH ROW WHEN (OLD.key <> NEW.key OR OLD.holder IS DISTINCT FROM NEW.holder OR OLD.fence <> NEW.fence)'),
            ('lease_history_delete', 'AFTER DELETE', 'FOR EACH ROW WHEN (OLD.holder <> '''')'),
            ('lease_history_truncate', 'BEFORE TRUNCATE', 'FOR EACH STATEMENT')) AS t (name, event, condition)
         WHERE NOT EXISTS (
               SELECT FROM pg_trigger AS g
                WHERE g.tgrelid = leases AND g.tgname = t.name AND g.tgfoid = writer)
    LOOP
        EXECUTE format('CREATE TRIGGER %s %s ON %s %s EXECUTE FUNCTION %s', trigger.name, trigger.event, leases,
            trigger.condition, writer);
    END LOOP;

    PERFORM set_config('lock_timeout', patient, true);
    PERFORM set_config('search_path', path, true);
END
$lease$
