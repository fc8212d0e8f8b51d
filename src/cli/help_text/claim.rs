//! The page of `lease claim`.

use super::section::{Block, COMMON_VARIABLES, EMPTY_VARIABLES, Section, TTL};
use super::term;
use crate::exit;

/// What a claim adds to the fields of a term.
const NEW_FIELD: &[(&str, &str)] = &[(
    "new",
    "true if this claim began a new term; false if the holder of --holder had the lease already, and the claim extended it; LEASE_NEW is 1 or 0 in the shell format",
)];

pub(super) const CLAIM: &[Section] = &[
    Section {
        title: "EXAMPLES",
        blocks: &[
            Block::Text(
                "A whole script. Claim in one step and eval in the next: eval \"$(lease claim nightly)\" would go on without a lease if the claim failed. The script releases the lease however it ends, and the history shows its exit code. dash needs the traps for HUP, INT and TERM, because it does not run the EXIT trap after a signal.",
            ),
            Block::Code(
                "term=$(lease claim --ttl 5m nightly) || exit\neval \"$term\"\ntrap 'lease release --job-code $?' EXIT\ntrap 'exit 129' HUP; trap 'exit 130' INT; trap 'exit 143' TERM\n./first-half\nlease renew --ttl 5m >/dev/null || exit\n./second-half",
            ),
        ],
    },
    Section {
        title: "OUTPUT",
        blocks: &[
            Block::Text(
                "In the shell format, claim prints export commands for LEASE_KEY, LEASE_HOLDER, FENCE, LEASE_EXPIRES_AT and LEASE_NEW, with the values quoted for a POSIX shell. With --format json it prints one object on one line:",
            ),
            Block::Terms(term::FIELDS),
            Block::Terms(NEW_FIELD),
            Block::Text(
                "Two processes that claim with the same --holder, such as a host name, both get the lease. new is true only for the one that began the term. It is false for both if the answer to a first try was lost and lease tried again.",
            ),
        ],
    },
    term::SLOW,
    Section {
        title: "ENVIRONMENT",
        blocks: &[COMMON_VARIABLES, Block::Terms(&[TTL]), EMPTY_VARIABLES],
    },
    Section {
        title: "EXIT STATUS",
        blocks: &[Block::Terms(&[
            exit::DONE,
            exit::USAGE,
            exit::UNAVAILABLE,
            (
                "75",
                "not now: someone else holds the lease, or the key is cooling; -E sets another code",
            ),
            (
                "76",
                "the lease was lost before claim could print it; see SLOW ANSWERS",
            ),
            exit::FAILED,
        ])],
    },
];
