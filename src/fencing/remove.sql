DROP FUNCTION IF EXISTS {s}.lease_check_fence(text, bigint);
DROP TABLE IF EXISTS {s}.lease_fence;
