-- The same as runs.sql for keys that are given in full, which a long history does not slow down. The first parameter is the
-- keys.
WITH clock AS MATERIALIZED (SELECT clock_timestamp() AS now)
SELECT r.*
  FROM clock
 CROSS JOIN (SELECT DISTINCT key FROM unnest($1::text[]) AS k (key)) AS k
 CROSS JOIN LATERAL (
       SELECT r.*
         FROM (SELECT h.*, clock.now,
                      CASE WHEN h.ended_at IS NULL THEN (
                          SELECT l.expires_at
                            FROM "public"."lease" AS l
                           WHERE l.key = k.key AND l.fence = h.fence AND l.holder = h.holder) END AS expires_at
                 FROM "public"."lease_history" AS h
                WHERE h.key = k.key COLLATE "C"
                  AND ($2::bigint IS NULL OR h.acquired_at >= clock.now - $2 * interval '1 microsecond')) AS r
        WHERE NOT $3
           OR r.ended IN ('forced', 'expired', 'lost', 'deleted')
           OR r.exit_code <> 0
           OR r.exit_signal IS NOT NULL
           OR r.ended_at IS NULL AND (r.expires_at IS NULL OR r.expires_at <= r.now)
        ORDER BY r.fence DESC, r.acquired_at DESC
        LIMIT $4) AS r
 ORDER BY r.acquired_at DESC, r.key
 LIMIT $4
