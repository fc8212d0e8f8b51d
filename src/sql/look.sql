-- Answers the row of one key, if there is one. Parameter: key.
SELECT r.key, r.holder, r.fence, r.acquired_at, r.expires_at, r.now
  FROM (SELECT l.*, clock_timestamp() AS now FROM "public"."lease" AS l WHERE l.key = $1) AS r
