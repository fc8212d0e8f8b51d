-- Whether the table exists already. CREATE TABLE IF NOT EXISTS demands the CREATE privilege even then.
-- Parameter: the table's quoted name.
SELECT to_regclass($1) IS NOT NULL
