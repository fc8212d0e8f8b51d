-- Answers the keys that nobody has used for a long time, by key, and whether the row must stay because its fence is newer
-- than that: see purge.sql.
--
-- Parameters: for how many microseconds nobody has used them; LIKE patterns, or NULL for every key.
SELECT l.key, l.fence >= (extract(epoch FROM clock_timestamp()) OPERATOR(pg_catalog.*) 1000000)::bigint - $1::bigint AS is_ahead
  FROM "public"."lease" AS l
 WHERE greatest(l.acquired_at, l.expires_at) < clock_timestamp() - $1 * interval '1 microsecond'
   AND ($2::text[] IS NULL OR l.key LIKE ANY ($2))
 ORDER BY l.key COLLATE "C"
