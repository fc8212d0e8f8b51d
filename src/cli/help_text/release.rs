//! The page of `lease release`.

use super::section::{Block, EXIT, Section, VARIABLES};

pub(super) const RELEASE: &[Section] = &[
    Section {
        title: "EXAMPLES",
        blocks: &[
            Block::Text("At the end of a script that has claimed:"),
            Block::Code("lease release"),
            Block::Text("Evict a holder that hangs, if it still has the fence that status showed:"),
            Block::Code("lease release --force --fence 1796098343884123 nightly"),
        ],
    },
    VARIABLES,
    EXIT,
];
