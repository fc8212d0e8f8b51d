-- Reads the clock again for a row that claim.sql has just inserted, in the same transaction.
--
-- Parameters: key, holder, ttl, fence. The INSERT may have waited for a row that was being deleted, while another holder
-- came and went; only a reading made once the row exists is later than every fence before it.
UPDATE "public"."lease" AS l
   SET (fence, acquired_at, expires_at) = (
       SELECT greatest(l.fence, (extract(epoch FROM c.now) OPERATOR(pg_catalog.*) 1000000)::bigint), c.now, c.now + $3 * interval '1 microsecond'
         FROM (SELECT clock_timestamp() AS now) AS c)
 WHERE l.key = $1 AND l.holder = $2 AND l.fence = $4
RETURNING l.key, l.holder, l.fence, l.acquired_at, l.expires_at, l.acquired_at AS now
