-- Answers the keys that have a history but no row in the lease table, and that nobody has used for a long time, by key.
--
-- Parameters: for how many microseconds nobody has used them; LIKE patterns, or NULL for every key.
--
-- Every key is found by looking for the next one in the index, as in last.sql.
WITH RECURSIVE next AS (
    (SELECT h.key FROM "public"."lease_history" AS h ORDER BY h.key LIMIT 1)
    UNION ALL
    SELECT (SELECT h.key FROM "public"."lease_history" AS h WHERE h.key > next.key ORDER BY h.key LIMIT 1)
      FROM next
     WHERE next.key IS NOT NULL
)
SELECT next.key
  FROM next
 CROSS JOIN LATERAL (
       SELECT coalesce(h.ended_at, h.acquired_at) AS used_at
         FROM "public"."lease_history" AS h
        WHERE h.key = next.key
        ORDER BY h.fence DESC, h.acquired_at DESC
        LIMIT 1) AS h
 WHERE h.used_at < clock_timestamp() - $1::bigint * interval '1 microsecond'
   AND ($2::text[] IS NULL OR next.key LIKE ANY ($2))
   AND NOT EXISTS (SELECT FROM "public"."lease" AS l WHERE l.key = next.key COLLATE "default")
 ORDER BY next.key
