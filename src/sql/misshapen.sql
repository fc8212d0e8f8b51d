-- What keeps a table of this name from holding leases, or NULL. No row: there is no such table.
--
-- Parameter: the table's quoted name.
--
-- - Types: a timestamp without time zone means another instant in each session's time zone, and one that is rounded to
--   less than a millisecond is another expiry than the one that was computed. Two holders could then both be right.
-- - Collations: under a nondeterministic one two keys, or two holders, are one.
-- - Partitions: a new row can't be told from an old one there.
SELECT CASE
       WHEN c.relkind = 'p' THEN 'it is partitioned'
       WHEN c.relkind <> 'r' THEN 'it is not a table'
       WHEN f.flaws IS NOT NULL THEN f.flaws
       WHEN NOT EXISTS (
            SELECT FROM pg_index AS i
              JOIN pg_attribute AS a ON a.attrelid = i.indrelid AND a.attnum = i.indkey[0]
             WHERE i.indrelid = c.oid AND i.indisunique AND i.indisvalid AND i.indpred IS NULL
               AND i.indnkeyatts = 1 AND a.attname = 'key')
       THEN 'key is not its primary key'
       END
  FROM pg_class AS c
  CROSS JOIN LATERAL (
       SELECT string_agg(
                  CASE WHEN a.attname IS NULL THEN format('it has no column %s %s', w.name, w.type)
                       WHEN o.collisdeterministic = false THEN format('%s has a nondeterministic collation', w.name)
                       ELSE format('%s is %s, not %s', w.name, format_type(a.atttypid, a.atttypmod), w.type) END,
                  ', ' ORDER BY w.position) AS flaws
         FROM (VALUES (1, 'key', 'text', ARRAY['text', 'character varying']),
                      (2, 'holder', 'text', ARRAY['text', 'character varying']),
                      (3, 'fence', 'bigint', ARRAY['bigint']),
                      (4, 'acquired_at', 'timestamp with time zone', ARRAY['timestamp with time zone']),
                      (5, 'expires_at', 'timestamp with time zone', ARRAY['timestamp with time zone'])
              ) AS w (position, name, type, types)
         LEFT JOIN pg_attribute AS a
                ON a.attrelid = c.oid AND a.attname = w.name AND a.attnum > 0 AND NOT a.attisdropped
         LEFT JOIN pg_collation AS o ON o.oid = a.attcollation
        WHERE a.attname IS NULL
           OR NOT format_type(a.atttypid, NULL) = ANY (w.types)
           OR (w.position > 3 AND a.atttypmod BETWEEN 0 AND 2)
           OR o.collisdeterministic = false
       ) AS f
 WHERE c.oid = to_regclass($1)
