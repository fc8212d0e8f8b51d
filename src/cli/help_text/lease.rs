//! The page of `lease` itself.

use super::section::{Block, COMMON_VARIABLES, EMPTY_VARIABLES, LOG_FORMAT, Section, TTL};
use crate::exit;

/// The words that all pages use.
const WORDS: &[exit::Row] = &[
    (
        "key",
        "the name of what is leased, such as the name of a job",
    ),
    (
        "holder",
        "who has the lease: by default the host name and a random part",
    ),
    (
        "ttl",
        "the time to live: the lease expires this long after the claim or the last renewal",
    ),
    (
        "heartbeat",
        "the renewal that run makes again and again, by default after each third of the ttl",
    ),
    (
        "grace period",
        "the time between TERM and KILL when a job is stopped",
    ),
    (
        "term",
        "the time in which one holder has the lease on a key, from the grant to its end",
    ),
    (
        "fence",
        "the number of a term; a later term of the same key has a larger one",
    ),
    (
        "lost",
        "the holder no longer has the lease: it has expired, or was evicted, released or deleted",
    ),
    (
        "evict",
        "to end the term of another holder, with release --force",
    ),
    (
        "cooling",
        "released, but kept closed by --hold-at-least: nobody can claim the key yet",
    ),
    (
        "job",
        "the command that run starts, and everything in its process group",
    ),
    (
        "watchdog",
        "a process that stops the job if lease itself is killed or hangs",
    ),
];

pub(super) const LEASE: &[Section] = &[
    Section {
        title: "EXAMPLES",
        blocks: &[
            Block::Text("Two lines for the crontab of every machine:"),
            Block::Code(
                "PATH=/usr/local/bin:/usr/bin:/bin\n0 4 * * *  lease run -q --hold-at-least 5m nightly -- report",
            ),
            Block::Text("Show who holds what:"),
            Block::Code("lease status"),
        ],
    },
    Section {
        title: "WORDS",
        blocks: &[Block::Terms(WORDS)],
    },
    Section {
        title: "WHAT IS NOT PROMISED",
        blocks: &[Block::Text(
            "A lease alone cannot rule out that two jobs run at the same time. A whole machine can freeze and thaw, a process can leave the job's process group, the server's clock can jump, lease and its watchdog can be killed together, and an evicted job runs on until its next heartbeat. Only the resource that the job writes to can refuse a stale writer: it remembers the largest fence that it has seen; see lease-fencing(7). Until that check is in place, jobs must be idempotent: running one twice must do no harm.",
        )],
    },
    Section {
        title: "ENVIRONMENT",
        blocks: &[
            COMMON_VARIABLES,
            Block::Terms(&[
                TTL,
                LOG_FORMAT,
                (
                    "LEASE_KEY, LEASE_HOLDER, FENCE",
                    "the term that renew and release act on; claim prints them, and run sets them for its job",
                ),
            ]),
            EMPTY_VARIABLES,
        ],
    },
    Section {
        title: "EXIT STATUS",
        blocks: &[Block::Terms(exit::TABLE)],
    },
];
