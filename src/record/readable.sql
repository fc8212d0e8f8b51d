-- Whether there is a history that this role may read; NULL: there is none. And whether there is a lease table. Parameters:
-- their quoted names.
SELECT has_table_privilege(to_regclass($1), 'SELECT') AS is_readable, to_regclass($2) IS NOT NULL AS has_leases
