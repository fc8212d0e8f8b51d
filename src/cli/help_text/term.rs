//! What the pages of `claim`, `renew` and `release` have in common: the printed term, how far it can be trusted, and the
//! exit codes of what acts on a term.

use super::section::{Block, Section};
use crate::exit;

/// The fields of a term, as JSON names them.
pub(super) const FIELDS: &[(&str, &str)] = &[
    ("key", "the key"),
    ("holder", "the holder"),
    ("fence", "the fence, a number"),
    (
        "acquired_at",
        "the time of the grant, by the server's clock, in RFC 3339 and UTC",
    ),
    (
        "expires_at",
        "the time of the expiry, in the same form; LEASE_EXPIRES_AT in the shell format",
    ),
    (
        "expires_in_ms",
        "the milliseconds that are left when the answer is printed; the ttl counts from when the request was sent",
    ),
];

pub(super) const EXIT_STATUS: Section = Section {
    title: "EXIT STATUS",
    blocks: &[Block::Terms(&[
        exit::DONE,
        exit::USAGE,
        exit::UNAVAILABLE,
        exit::LOST,
        exit::FAILED,
    ])],
};

pub(super) const SLOW: Section = Section {
    title: "SLOW ANSWERS",
    blocks: &[
        Block::Text(
            "The ttl counts from when the request was sent. If the lease has almost expired when the answer comes, claim and renew ask once more. If the second answer is late too, they exit 69. If the lease is lost by then, they exit 76. In both cases they print nothing.",
        ),
        Block::Text(
            "After that, nothing watches the clock for the script. If the script or lease itself is suspended, the lease may have expired when it goes on. Only a fence check refuses what the script writes then; see lease-fencing(7).",
        ),
    ],
};
