//! The page of `lease init`.

use super::section::{Block, EXIT, Section, VARIABLES};

pub(super) const INIT: &[Section] = &[
    Section {
        title: "EXAMPLES",
        blocks: &[
            Block::Text(
                "Since PostgreSQL 15, most roles may not create tables in public. Then an administrator creates the table once and grants its use to the role of the jobs, here app:",
            ),
            Block::Code(
                "lease init\npsql \"$LEASE_DATABASE_URL\" -c \\\n    'GRANT SELECT, INSERT, UPDATE ON public.lease TO app'\npsql \"$LEASE_DATABASE_URL\" -c \\\n    'GRANT SELECT ON public.lease_history TO app'",
            ),
            Block::Text("For a migration tool:"),
            Block::Code("lease init --print >migrations/042_lease.sql"),
            Block::Text(
                "If the jobs write to the same database, add the function that refuses the writes of a stale holder, and grant its use; see lease-fencing(7):",
            ),
            Block::Code(
                "lease init --with-fencing\npsql \"$LEASE_DATABASE_URL\" -c \\\n    'GRANT EXECUTE ON FUNCTION lease_check_fence(text, bigint) TO app'",
            ),
        ],
    },
    Section {
        title: "PRIVILEGES",
        blocks: &[Block::Text(
            "A job needs SELECT, INSERT and UPDATE on the lease table, and USAGE on its schema. It needs SELECT on the history for run --once-per, history and the LAST RUN of status. Only purge needs more: run it as the owner of the table.",
        )],
    },
    VARIABLES,
    EXIT,
];
