-- Answers the row of one key, if there is one, to a waiter that looks many times a second. Parameter: key.
--
-- As look.sql, but it runs outside of a transaction, so that nothing is open between two looks and a pooler can give the
-- server's connection to somebody else. Every name has its schema: no search path is set.
SELECT r.key, r.holder, r.fence, r.acquired_at, r.expires_at, r.now
  FROM (SELECT l.*, pg_catalog.clock_timestamp() AS now
          FROM "public"."lease" AS l WHERE l.key OPERATOR(pg_catalog.=) $1) AS r
