-- Answers many rows, by key. Parameters: whether free ones too; LIKE patterns, or NULL for every key; the keys, if all are
-- given in full, else NULL. Keys are looked up, however many there are in the table; a pattern needs a search.
WITH clock AS MATERIALIZED (SELECT clock_timestamp() AS now)
SELECT r.key, r.holder, r.fence, r.acquired_at, r.expires_at, r.now
  FROM (SELECT l.*, clock.now FROM "public"."lease" AS l CROSS JOIN clock) AS r
 WHERE ($1 OR r.holder <> '' OR r.expires_at > r.now)
   AND ($2::text[] IS NULL OR r.key LIKE ANY ($2))
   AND ($3::text[] IS NULL OR r.key = ANY ($3))
 ORDER BY r.key COLLATE "C"
