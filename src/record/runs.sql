-- Answers terms, the newest first. Parameters: LIKE patterns, or NULL for every key; for how many microseconds back, or NULL;
-- only failed ones; how many at most.
--
-- - The time is counted back from statement_timestamp(), which the planner can reckon with: it then reads only the recent part
--   of a long history. It can't reckon with a reading of the clock.
-- - A term that goes on has no end in the history. What the lease table says about it decides whether its holder vanished.
-- - A term has failed if its job did not end with code 0, or if it was not released. How the job of a script has ended is not
--   known unless the script says so.
WITH clock AS MATERIALIZED (SELECT clock_timestamp() AS now)
SELECT r.*
  FROM (SELECT h.*, clock.now,
               CASE WHEN h.ended_at IS NULL THEN (
                   SELECT l.expires_at
                     FROM "public"."lease" AS l
                    WHERE l.key = h.key COLLATE "default" AND l.fence = h.fence AND l.holder = h.holder) END AS expires_at
          FROM clock CROSS JOIN "public"."lease_history" AS h
         WHERE ($1::text[] IS NULL OR h.key LIKE ANY ($1))
           AND ($2::bigint IS NULL OR h.acquired_at >= statement_timestamp() - $2 * interval '1 microsecond')) AS r
 WHERE NOT $3
    OR r.ended IN ('forced', 'expired', 'lost', 'deleted')
    OR r.exit_code <> 0
    OR r.exit_signal IS NOT NULL
    OR r.ended_at IS NULL AND (r.expires_at IS NULL OR r.expires_at <= r.now)
 ORDER BY r.acquired_at DESC, r.key
 LIMIT $4
