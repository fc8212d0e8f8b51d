-- Removes the rows of keys that nobody has used for a long time, and answers the keys.
--
-- Parameters: keys; for how many microseconds nobody has used them.
--
-- - The row remembers the fence of its key. After it is gone, the next claim takes its fence from the clock. So a row goes
--   only if its fence is that old too: even if the clock is then set back by less than that time, the fence grows.
-- - A row is judged once it is locked, by a new reading of the clock, because somebody may have claimed it since it was
--   listed.
-- - A row that another session has locked stays, because somebody is using it. A claim of a row that is locked here waits
--   for the end of this short transaction. It then finds no row, and inserts one.
WITH unused AS MATERIALIZED (
    SELECT key
      FROM "public"."lease"
     WHERE key = ANY ($1::text[])
       AND greatest(acquired_at, expires_at) < clock_timestamp() - $2::bigint * interval '1 microsecond'
       AND fence < (extract(epoch FROM clock_timestamp()) OPERATOR(pg_catalog.*) 1000000)::bigint - $2
       FOR UPDATE SKIP LOCKED
)
DELETE FROM "public"."lease" AS l
 USING unused AS r
 WHERE l.key = r.key
RETURNING l.key
