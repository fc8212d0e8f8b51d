-- Serializes the making of the table, by one lock for each table name: fifty replicas that start at once make it once.
--
-- The one place for an advisory lock: short, and released by COMMIT. Parameter: the table's quoted name.
SELECT pg_advisory_xact_lock(hashtextextended('pglease ' || $1, 0))
