//! The page of `lease claim`.

use super::section::{Block, EXIT, Section, VARIABLES};
use super::term;

/// What a claim adds to the fields of a term.
const NEW_FIELD: &[(&str, &str)] = &[(
    "new",
    "true if this claim began the term, false if the holder of --holder held the lease already and the claim extended it; LEASE_NEW is 1 or 0 in the shell format",
)];

pub(super) const CLAIM: &[Section] = &[
    Section {
        title: "EXAMPLES",
        blocks: &[
            Block::Text(
                "A whole script. Claim in one step and eval in the next: eval \"$(lease claim nightly)\" would go on without a lease if the claim failed, because eval of nothing succeeds. The traps for HUP, INT and TERM are for dash, which otherwise skips the EXIT trap.",
            ),
            Block::Code(
                "term=$(lease claim --ttl 5m nightly) || exit\neval \"$term\"\ntrap 'lease release' EXIT\ntrap 'exit 129' HUP; trap 'exit 130' INT; trap 'exit 143' TERM\n./first-half\nlease renew --ttl 5m >/dev/null || exit\n./second-half",
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
                "Two processes that claim with the same --holder, such as a host name, both get the lease. Only the one that finds new has begun the term. If the database lost the answer to a first try, the second try cannot tell, and the claim is not called new.",
            ),
        ],
    },
    term::SLOW,
    VARIABLES,
    EXIT,
];
