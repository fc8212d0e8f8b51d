-- Answers the terms that a time up to now overlaps, by key, the oldest first; and for each key the last term before that
-- time, so that a key without a term is there too. One row without a key if there is none at all. Parameters: keys that are
-- given in full, or NULL for every key; LIKE patterns, or NULL; how many microseconds the time is long.
--
-- The time is counted back from statement_timestamp(), which the planner can reckon with: see runs.sql.
--
-- The terms of a key do not overlap, so of those that began earlier only the last one can reach into the time.
WITH RECURSIVE clock AS MATERIALIZED (SELECT clock_timestamp() AS now),
next AS (
    (SELECT h.key FROM "public"."lease_history" AS h WHERE $1::text[] IS NULL ORDER BY h.key LIMIT 1)
    UNION ALL
    SELECT (SELECT h.key FROM "public"."lease_history" AS h WHERE h.key > next.key ORDER BY h.key LIMIT 1)
      FROM next
     WHERE next.key IS NOT NULL
), wanted AS (
    SELECT key FROM next WHERE key IS NOT NULL AND ($2::text[] IS NULL OR key LIKE ANY ($2))
    UNION ALL
    SELECT DISTINCT k.key COLLATE "C" FROM unnest($1::text[]) AS k (key)
)
SELECT r.*, clock.now,
       CASE WHEN r.ended_at IS NULL THEN (
           SELECT l.expires_at
             FROM "public"."lease" AS l
            WHERE l.key = r.key COLLATE "default" AND l.fence = r.fence AND l.holder = r.holder) END AS expires_at
  FROM clock
  LEFT JOIN LATERAL (
       SELECT h.* FROM wanted JOIN "public"."lease_history" AS h USING (key) WHERE h.acquired_at >= statement_timestamp() - $3 * interval '1 microsecond'
        UNION ALL
       SELECT b.*
         FROM wanted
        CROSS JOIN LATERAL (
              SELECT h.*
                FROM "public"."lease_history" AS h
               WHERE h.key = wanted.key AND h.acquired_at < statement_timestamp() - $3 * interval '1 microsecond'
               ORDER BY h.fence DESC, h.acquired_at DESC
               LIMIT 1) AS b) AS r ON true
 ORDER BY r.key, r.acquired_at
