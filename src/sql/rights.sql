-- Who owns each of these tables, and what this role may do with it. A table that does not exist has no row.
--
-- Parameter: quoted names. Removing rows takes UPDATE as well, because they are locked first.
SELECT t.name, pg_get_userbyid(c.relowner)::text AS owner,
       has_table_privilege(c.oid, 'SELECT') AS may_read,
       has_table_privilege(c.oid, 'SELECT') AND has_table_privilege(c.oid, 'UPDATE')
           AND has_table_privilege(c.oid, 'DELETE') AS may_remove
  FROM unnest($1::text[]) AS t (name)
  JOIN pg_class AS c ON c.oid = to_regclass(t.name)
