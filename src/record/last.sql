-- Answers the last term of each key, by key, and when the key has last succeeded. Parameters: keys that are given in full,
-- or NULL for every key; LIKE patterns, or NULL.
--
-- Every key is found by looking for the next one in the index, so a long history costs no more than a short one.
WITH RECURSIVE clock AS MATERIALIZED (SELECT clock_timestamp() AS now),
next AS (
    (SELECT h.key FROM "public"."lease_history" AS h WHERE $1::text[] IS NULL ORDER BY h.key LIMIT 1)
    UNION ALL
    SELECT (SELECT h.key FROM "public"."lease_history" AS h WHERE h.key > next.key ORDER BY h.key LIMIT 1)
      FROM next
     WHERE next.key IS NOT NULL
), wanted AS (
    SELECT key FROM next WHERE key IS NOT NULL
    UNION ALL
    SELECT DISTINCT k.key COLLATE "C" FROM unnest($1::text[]) AS k (key)
)
SELECT h.*, clock.now,
       CASE WHEN h.ended_at IS NULL THEN (
           SELECT l.expires_at
             FROM "public"."lease" AS l
            WHERE l.key = h.key COLLATE "default" AND l.fence = h.fence AND l.holder = h.holder) END AS expires_at,
       (SELECT s.ended_at
          FROM "public"."lease_history" AS s
         WHERE s.key = wanted.key AND s.ended = 'released' AND s.exit_code = 0
         ORDER BY s.fence DESC
         LIMIT 1) AS last_success
  FROM clock CROSS JOIN wanted
 CROSS JOIN LATERAL (
       SELECT h.* FROM "public"."lease_history" AS h WHERE h.key = wanted.key ORDER BY h.fence DESC, h.acquired_at DESC LIMIT 1) AS h
 WHERE $2::text[] IS NULL OR h.key LIKE ANY ($2)
 ORDER BY h.key
