-- Whether there is a history that this role may read; NULL: there is none. Whether there is a lease table, and whether this
-- role has some right to each thing that a claim does there. Parameters: their quoted names.
SELECT has_table_privilege(to_regclass($1), 'SELECT') AS is_readable, to_regclass($2) IS NOT NULL AS has_leases,
       has_any_column_privilege(to_regclass($2), 'SELECT') AND has_any_column_privilege(to_regclass($2), 'INSERT')
           AND has_any_column_privilege(to_regclass($2), 'UPDATE') AS may_claim
