-- Takes the lease if it is free or expired, extends it if it is the caller's and unexpired, otherwise does nothing and
-- says who has it.
--
-- Parameters: key, holder, ttl, whether a later expiry of the caller's own stays. Returns granted, inserted and a row.
-- No row, or a row that does not stop the caller, means that another claim came first. The statement must then be
-- repeated.
--
-- - A claim that loses writes nothing: look comes first, because ON CONFLICT DO UPDATE locks the row (transaction id,
--   WAL, flush) even where its WHERE is false.
-- - The WHERE and the SET of DO UPDATE are evaluated after the row lock was obtained, so the expiry counts from there. A
--   claim behind a row that is locked for longer than the ttl would otherwise be born expired.
-- - The fence stays for the same holder on an unexpired lease, so that a claim repeated because its answer was lost
--   returns the same term. Otherwise it is larger than its predecessor, and tied to the clock, so that it grows even
--   across the loss of the row.
-- - least(acquired_at, now): where the server's clock was set back, the CHECK must not refuse a holder its own lease.
-- - now is the reading that the expiry was counted from, unless a later expiry has stayed.
-- - A new row's fence was computed before the INSERT could have waited for a row that was being deleted: see freshen.sql.
WITH look AS MATERIALIZED (
    SELECT key, holder, fence, acquired_at, expires_at, clock_timestamp() AS now
      FROM "public"."lease"
     WHERE key = $1
), attempt AS (
    INSERT INTO "public"."lease" AS l (key, holder, fence, acquired_at, expires_at)
    SELECT $1, $2, (extract(epoch FROM c.now) OPERATOR(pg_catalog.*) 1000000)::bigint, c.now, c.now + $3 * interval '1 microsecond'
      FROM (SELECT clock_timestamp() AS now) AS c
     WHERE NOT EXISTS (SELECT FROM look WHERE look.holder <> $2 AND look.expires_at > look.now)
    ON CONFLICT (key) DO UPDATE
       SET (holder, fence, acquired_at, expires_at) = (
           SELECT EXCLUDED.holder,
                  CASE WHEN s.ours THEN l.fence ELSE greatest(l.fence + 1, (extract(epoch FROM s.now) OPERATOR(pg_catalog.*) 1000000)::bigint) END,
                  CASE WHEN s.ours THEN least(l.acquired_at, s.now) ELSE s.now END,
                  greatest(
                      s.now + $3 * interval '1 microsecond',
                      CASE WHEN $4 AND s.ours AND l.acquired_at <= s.now THEN l.expires_at END)
             FROM (SELECT c.now, l.holder = EXCLUDED.holder AND l.expires_at > c.now AS ours
                     FROM (SELECT clock_timestamp() AS now) AS c) AS s)
     WHERE l.holder = EXCLUDED.holder OR l.expires_at <= clock_timestamp()
    RETURNING l.key, l.holder, l.fence, l.acquired_at, l.expires_at,
              least(l.expires_at - $3 * interval '1 microsecond', clock_timestamp()) AS now, (l.xmax = 0) AS inserted
)
SELECT true AS granted, r.inserted, r.key, r.holder, r.fence, r.acquired_at, r.expires_at, r.now
  FROM attempt AS r
UNION ALL
SELECT false, false, r.key, r.holder, r.fence, r.acquired_at, r.expires_at, r.now
  FROM look AS r
 WHERE NOT EXISTS (SELECT FROM attempt)
