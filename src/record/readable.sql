-- Whether there is a history that this role may read; NULL: there is none. Parameter: its quoted name.
SELECT has_table_privilege(to_regclass($1), 'SELECT')
