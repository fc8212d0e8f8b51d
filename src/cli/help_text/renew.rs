//! The page of `lease renew`.

use super::section::{Block, COMMON_VARIABLES, EMPTY_VARIABLES, Section, TTL};
use super::term;

pub(super) const RENEW: &[Section] = &[
    Section {
        title: "EXAMPLES",
        blocks: &[
            Block::Text("Between two steps of a script that has claimed:"),
            Block::Code("lease renew --ttl 5m >/dev/null || exit"),
        ],
    },
    Section {
        title: "HOW THE EXPIRY MOVES",
        blocks: &[
            Block::Text(
                "With --ttl, the lease expires that long from now, even if it had more time left. Without --ttl, it expires LEASE_TTL (or 60s) from now, and keeps the time that it has left if that is more. A claim with --holder by the current holder follows the same rules.",
            ),
            Block::Text(
                "Only a lease that has not expired can be renewed. If renew exits 76, the lease is lost: stop. After any other failure the lease still has the time that it had, and you can try again.",
            ),
            Block::Text(
                "A job under lease run does not need renew. If it renews the lease anyway, the next heartbeat sets the expiry back to the ttl of the run. If the --ttl ends before the next heartbeat, the lease is lost and the job is stopped. If lease is killed before the next heartbeat, the expiry stays as the job has set it.",
            ),
        ],
    },
    Section {
        title: "OUTPUT",
        blocks: &[
            Block::Text(
                "The same as the output of lease-claim(1), without new and LEASE_NEW, and with the new expiry. With --format json:",
            ),
            Block::Terms(term::FIELDS),
        ],
    },
    term::SLOW,
    Section {
        title: "ENVIRONMENT",
        blocks: &[
            COMMON_VARIABLES,
            Block::Terms(&[
                TTL,
                (
                    "LEASE_KEY, LEASE_HOLDER, FENCE",
                    "the term to renew; see KEY, --holder and --fence",
                ),
            ]),
            EMPTY_VARIABLES,
        ],
    },
    term::EXIT_STATUS,
];
