-- The same as begin.sql for an operation that only reads, on a standby too: there is no durability to raise.
BEGIN ISOLATION LEVEL READ COMMITTED READ ONLY;
SET LOCAL search_path = pg_catalog;
SET LOCAL timezone = 'UTC';
SET LOCAL quote_all_identifiers = off;
SET LOCAL statement_timeout = :statement_ms;
SET LOCAL lock_timeout = :lock_ms;
SET LOCAL idle_in_transaction_session_timeout = :idle_ms;
SELECT set_config('client_encoding', 'SQL_ASCII', true)
 WHERE getdatabaseencoding() = 'SQL_ASCII';
SELECT set_config('transaction_timeout', '0', true)
 WHERE current_setting('transaction_timeout', true) IS NOT NULL
