//! The page of `lease renew`.

use super::section::{Block, EXIT, Section, VARIABLES};
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
                "--ttl sets the expiry to that long from now, even if this shortens it. Without --ttl, the expiry is LEASE_TTL (or 60s) from now, or stays as it is if that is later. A claim with --holder by the current holder follows the same rules.",
            ),
            Block::Text(
                "Only a lease that has not expired can be renewed. After a failed renewal the old expiry still counts, unless the exit code is 76.",
            ),
            Block::Text(
                "Nothing renews the lease of a script by itself, and nothing stops the script when the lease is lost. Use lease run where you can.",
            ),
            Block::Text(
                "A job under lease run does not need renew, because lease run renews for it. If the job renews its lease anyway, the next heartbeat sets the expiry back to the ttl of the run. If the job gives a --ttl that ends before the next heartbeat, the lease is lost and the job is stopped. If lease is killed before the next heartbeat, the expiry stays as the job has set it.",
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
    VARIABLES,
    EXIT,
];
