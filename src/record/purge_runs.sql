-- Removes old runs of keys that have no row in the lease table, and answers how many of each key.
--
-- Parameters: keys; how many microseconds ago a run must have ended; how many at most.
--
-- - A key that has been claimed again keeps its history.
-- - What another session has locked stays for the next purge: purge waits for nobody.
WITH old AS MATERIALIZED (
    SELECT h.key, h.fence, h.acquired_at
      FROM "public"."lease_history" AS h
     WHERE h.key = ANY ($1::text[])
       AND coalesce(h.ended_at, h.acquired_at) < clock_timestamp() - $2::bigint * interval '1 microsecond'
       AND NOT EXISTS (SELECT FROM "public"."lease" AS l WHERE l.key = h.key COLLATE "default")
     LIMIT $3
       FOR UPDATE OF h SKIP LOCKED
), gone AS (
    DELETE FROM "public"."lease_history" AS h
     USING old AS r
     WHERE h.key = r.key AND h.fence = r.fence AND h.acquired_at = r.acquired_at
    RETURNING h.key
)
SELECT key, count(*) AS runs
  FROM gone
 GROUP BY key
