-- Makes the table.
--
-- - The CHECK turns a wrong duration into an error instead of a lease that nobody can see.
-- - No index but the primary key, and room in each page: heartbeats stay HOT updates, and the table does not grow.
-- - The default of fence is for programs that insert rows with statements of their own.
-- - Types, functions and operators by their schema: the printed script runs under whatever search path a migration has, and
--   what is found first there is evaluated by every claim afterwards.
CREATE TABLE IF NOT EXISTS "public"."lease" (
    key         pg_catalog.text PRIMARY KEY,
    holder      pg_catalog.text NOT NULL,
    fence       bigint          NOT NULL
                DEFAULT (extract(epoch FROM pg_catalog.clock_timestamp()) OPERATOR(pg_catalog.*) 1000000)::bigint,
    acquired_at timestamp with time zone NOT NULL DEFAULT pg_catalog.clock_timestamp(),
    expires_at  timestamp with time zone NOT NULL,
    CONSTRAINT lease_validity CHECK (expires_at OPERATOR(pg_catalog.>) acquired_at)
) WITH (fillfactor = 50)
