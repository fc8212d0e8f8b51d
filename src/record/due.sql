-- Answers the last success of a key if it is younger than a period, and whether the history has noted the term with this
-- fence, which goes on. Always one row; the columns of the success are NULL if there is none. Parameters: key, period in
-- microseconds, fence or NULL.
--
-- It is asked in the transaction of a claim, after the claim. The row of the lease is locked then, so every release of the
-- key that came before has committed, and this statement sees what it wrote into the history. A term that is not noted
-- would leave no success behind, and the job would run again.
SELECT c.now, s.ended_at, s.host, s.holder,
       EXISTS (
           SELECT FROM "public"."lease_history" AS h
            WHERE h.key = $1 COLLATE "C" AND h.fence = $3 AND h.ended_at IS NULL) AS is_noted
  FROM (SELECT clock_timestamp() AS now) AS c
  LEFT JOIN LATERAL (
       SELECT h.ended_at, h.host, h.holder
         FROM "public"."lease_history" AS h
        WHERE h.key = $1 COLLATE "C" AND h.ended = 'released' AND h.exit_code = 0
        ORDER BY h.fence DESC
        LIMIT 1) AS s ON s.ended_at + $2 * interval '1 microsecond' > c.now
