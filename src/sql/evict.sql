-- Ends whatever term there is, or only the one with the given fence, and answers the row as it was before.
--
-- Parameters: key, fence (or NULL), hold. A cooling lease ends too: an operator who forces a release wants the next
-- claim to succeed.
WITH locked AS MATERIALIZED (
    SELECT key, holder, fence, acquired_at, expires_at
      FROM "public"."lease"
     WHERE key = $1 AND ($2::bigint IS NULL OR fence = $2)
       FOR NO KEY UPDATE
), term AS MATERIALIZED (
    SELECT locked.*, clock_timestamp() AS now FROM locked
)
UPDATE "public"."lease" AS l
   SET (holder, acquired_at, expires_at) = (SELECT '', e.began, greatest(e.now, e.began + $3 * interval '1 microsecond')
          FROM (SELECT c.now, least(l.acquired_at, c.now - interval '1 microsecond') AS began
                  FROM (SELECT clock_timestamp() AS now) AS c) AS e)
  FROM term AS r
 WHERE l.key = r.key AND l.fence = r.fence AND (r.holder <> '' OR r.expires_at > r.now)
RETURNING r.key, r.holder, r.fence, r.acquired_at, r.expires_at, r.now
