//! The page of `lease` itself.

use super::section::{Block, EXIT, Section, VARIABLES};

pub(super) const LEASE: &[Section] = &[
    Section {
        title: "EXAMPLES",
        blocks: &[
            Block::Text("A crontab line, the same on every replica:"),
            Block::Code(
                "0 4 * * * lease run -q --hold-at-least 5m nightly -- /usr/local/bin/report",
            ),
            Block::Text("Show who holds what:"),
            Block::Code("lease status"),
        ],
    },
    Section {
        title: "WHAT IS NOT PROMISED",
        blocks: &[Block::Text(
            "A lease alone is not mutual exclusion. A whole machine can freeze and thaw, a process can leave the job's process group, and the server's clock can jump. Only the resource that the job writes to can refuse a stale writer: it remembers the largest fence that it has seen; see lease-fencing(7). Until that check is in place, jobs must be idempotent.",
        )],
    },
    VARIABLES,
    EXIT,
];
