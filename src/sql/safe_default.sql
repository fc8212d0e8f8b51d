-- Gives the column that default.
ALTER TABLE "public"."lease" ALTER COLUMN fence SET DEFAULT (extract(epoch FROM pg_catalog.clock_timestamp()) OPERATOR(pg_catalog.*) 1000000)::bigint
