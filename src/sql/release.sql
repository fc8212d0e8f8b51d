-- Ends a term, expired or not, and answers when it would have expired. The row stays, so that the fence goes on.
--
-- Parameters: key, holder, fence, hold. The expiry becomes now, or acquired_at + hold where that is later. The clock is read
-- once the row is locked, so whether the term had expired is certain.
WITH locked AS MATERIALIZED (
    SELECT key, expires_at
      FROM "public"."lease"
     WHERE key = $1 AND holder = $2 AND fence = $3
       FOR NO KEY UPDATE
), term AS MATERIALIZED (
    SELECT locked.*, clock_timestamp() AS now FROM locked
)
UPDATE "public"."lease" AS l
   SET (holder, acquired_at, expires_at) = (SELECT '', e.began, greatest(e.now, e.began + $4 * interval '1 microsecond')
          FROM (SELECT term.now, least(l.acquired_at, term.now - interval '1 microsecond') AS began) AS e)
  FROM term
 WHERE l.key = term.key AND l.holder = $2 AND l.fence = $3
RETURNING l.key, term.expires_at, term.now
