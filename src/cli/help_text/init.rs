//! The page of `lease init`.

use super::section::{Block, EXIT, Section, VARIABLES};

pub(super) const INIT: &[Section] = &[
    Section {
        title: "EXAMPLES",
        blocks: &[
            Block::Text(
                "If jobs may not create tables, the owner of the schema creates the table once and grants its use:",
            ),
            Block::Code(
                "lease init\npsql \"$LEASE_DATABASE_URL\" -c 'GRANT SELECT, INSERT, UPDATE ON public.lease TO app'\npsql \"$LEASE_DATABASE_URL\" -c 'GRANT SELECT ON public.lease_history TO app'",
            ),
            Block::Text("For a migration tool:"),
            Block::Code("lease init --print >migrations/042_lease.sql"),
            Block::Text(
                "If jobs write to PostgreSQL, add the check that refuses the writes of a stale holder, and name the role that may call it; see lease-fencing(7):",
            ),
            Block::Code(
                "lease init --with-fencing\npsql \"$LEASE_DATABASE_URL\" -c 'GRANT EXECUTE ON FUNCTION public.lease_check_fence(text, bigint) TO app'",
            ),
        ],
    },
    VARIABLES,
    EXIT,
];
