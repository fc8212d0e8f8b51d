-- Counts the old runs of some keys. Parameters: keys; how many microseconds ago a run must have ended.
SELECT count(*) AS runs
  FROM "public"."lease_history" AS h
 WHERE h.key = ANY ($1::text[])
   AND coalesce(h.ended_at, h.acquired_at) < clock_timestamp() - $2::bigint * interval '1 microsecond'
