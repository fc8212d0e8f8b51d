//! The page of `lease release`.

use super::section::{Block, COMMON_VARIABLES, EMPTY_VARIABLES, Section};
use super::term;

pub(super) const RELEASE: &[Section] = &[
    Section {
        title: "EXAMPLES",
        blocks: &[
            Block::Text(
                "At the end of a script that has claimed, with its exit code for the history:",
            ),
            Block::Code("lease release --job-code $?"),
            Block::Text("Evict a holder that hangs, if it still has the fence that status showed:"),
            Block::Code("lease release --force --fence 1796098343884123 nightly"),
        ],
    },
    Section {
        title: "WHAT A RELEASE DOES",
        blocks: &[
            Block::Text(
                "The next claim can get the lease at once, unless --hold-at-least keeps the key closed. The row of the lease stays, so that the fence can grow.",
            ),
            Block::Text(
                "Without --job-code, the history shows the term as released. For history --overdue and run --once-per, it is then not a success.",
            ),
            Block::Text(
                "The database role needs SELECT and UPDATE on the lease table, also for --force.",
            ),
        ],
    },
    Section {
        title: "ENVIRONMENT",
        blocks: &[
            COMMON_VARIABLES,
            Block::Terms(&[(
                "LEASE_KEY, LEASE_HOLDER, FENCE",
                "the term to release; see KEY, --holder and --fence",
            )]),
            EMPTY_VARIABLES,
        ],
    },
    term::EXIT_STATUS,
];
