-- Whether a row that another program inserts without a fence gets one that is tied to the clock. No row: no such column,
-- or no table (a view has no default of its own). Parameter: the table's quoted name.
--
-- With another default, such as a constant or a sequence, a key whose row was deleted can begin again below the fences that
-- it has had. The same can happen without a default, because the program must then know a fence.
SELECT coalesce(pg_get_expr(d.adbin, d.adrelid) LIKE '%clock_timestamp()%', false)
  FROM pg_attribute AS a
  JOIN pg_class AS c ON c.oid = a.attrelid AND c.relkind IN ('r', 'p')
  LEFT JOIN pg_attrdef AS d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
 WHERE a.attrelid = to_regclass($1) AND a.attname = 'fence'
