-- The comment of the table, and whether this role may change it. No row: there is no such table.
--
-- Parameter: the table's quoted name.
SELECT obj_description(c.oid, 'pg_class') AS comment, pg_has_role(c.relowner, 'USAGE') AS is_owner
  FROM pg_class AS c
 WHERE c.oid = to_regclass($1)
