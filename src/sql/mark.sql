-- Notes the version of the table in its comment, for a later `lease init` that has something to upgrade.
--
-- Only the owner of the table may do that. A comment that is not ours is not replaced: see version.sql.
COMMENT ON TABLE "public"."lease" IS 'lease table, version 1'
