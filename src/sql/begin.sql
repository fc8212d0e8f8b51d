-- Opens the transaction of an operation that writes, together with the settings that a role, a database or another client
-- may have changed, in one flight.
--
-- - READ COMMITTED, because under a role whose default is serializable a contended statement fails with 40001 instead of
--   answering.
-- - SET LOCAL works through PgBouncer in transaction mode. It ends with the transaction, and it overrides what another
--   client has left behind.
-- - The search path comes first, so that nothing after it can be looked up elsewhere.
-- - What the functions of the catalogue print is compared as text: the names of types, the default of a column.
-- - The limits come before the statement, since a statement_timeout that is set inside a statement does not bound it.
--   idle_in_transaction_session_timeout ends the transaction if this machine freezes before COMMIT, with the row locked.
-- - transaction_timeout (PostgreSQL 17 and later) would cut an operation short that is bounded here already.
-- - A database without an encoding may hold any bytes. Asked for UTF-8, the server would refuse the whole answer.
-- - Durability is raised, never lowered: a grant that a crash can undo is not a grant.
--
-- :statement_ms, :lock_ms and :idle_ms are milliseconds; zero would mean "no limit".
BEGIN ISOLATION LEVEL READ COMMITTED;
SET LOCAL search_path = pg_catalog;
SET LOCAL timezone = 'UTC';
SET LOCAL quote_all_identifiers = off;
SET LOCAL statement_timeout = :statement_ms;
SET LOCAL lock_timeout = :lock_ms;
SET LOCAL idle_in_transaction_session_timeout = :idle_ms;
SELECT set_config('client_encoding', 'SQL_ASCII', true)
 WHERE getdatabaseencoding() = 'SQL_ASCII';
SELECT set_config('transaction_timeout', '0', true)
 WHERE current_setting('transaction_timeout', true) IS NOT NULL;
SELECT set_config('synchronous_commit', 'on', true)
 WHERE current_setting('synchronous_commit') IN ('off', 'local')
