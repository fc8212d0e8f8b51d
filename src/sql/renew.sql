-- Extends an unexpired term. No row is final: the caller is no longer the holder.
--
-- Parameters: key, holder, ttl, fence, whether a later expiry stays. The clock is read once the row is locked: an UPDATE
-- that waits for a row which is only locked, not changed, would go on with the reading it made before, and bring an
-- expired lease back.
--
-- A term that began in the future was granted before the clock was set back, so what is left of it is ignored.
WITH locked AS MATERIALIZED (
    SELECT key, acquired_at, expires_at
      FROM "public"."lease"
     WHERE key = $1 AND holder = $2 AND fence = $4
       FOR NO KEY UPDATE
), term AS MATERIALIZED (
    SELECT key, acquired_at, expires_at, clock_timestamp() AS now FROM locked
)
UPDATE "public"."lease" AS l
   SET acquired_at = least(l.acquired_at, term.now),
       expires_at = greatest(
           term.now + $3 * interval '1 microsecond',
           CASE WHEN $5 AND term.acquired_at <= term.now THEN term.expires_at END)
  FROM term
 WHERE l.key = term.key AND l.holder = $2 AND l.fence = $4 AND term.expires_at > term.now
RETURNING l.key, l.holder, l.fence, l.acquired_at, l.expires_at, term.now
