-- Ends a term, expired or not. The row stays, so that the fence goes on.
--
-- Parameters: key, holder, fence, hold. The expiry becomes now, or acquired_at + hold where that is later.
UPDATE "public"."lease" AS l
   SET (holder, acquired_at, expires_at) = (SELECT '', e.began, greatest(e.now, e.began + $4 * interval '1 microsecond')
          FROM (SELECT c.now, least(l.acquired_at, c.now - interval '1 microsecond') AS began
                  FROM (SELECT clock_timestamp() AS now) AS c) AS e)
 WHERE l.key = $1 AND l.holder = $2 AND l.fence = $3
RETURNING l.key
