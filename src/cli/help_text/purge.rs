//! The page of `lease purge`.

use super::section::{Block, EXIT, Section, VARIABLES};

pub(super) const PURGE: &[Section] = &[
    Section {
        title: "EXAMPLES",
        blocks: &[
            Block::Text("See what would be removed, and then remove it:"),
            Block::Code("lease purge --older-than 90d --dry-run\nlease purge --older-than 90d"),
            Block::Text("A crontab line for keys with a date in their names:"),
            Block::Code("30 5 * * 0  lease purge -q --older-than 30d 'import-*'"),
        ],
    },
    Section {
        title: "WHAT IS REMOVED",
        blocks: &[
            Block::Text(
                "A key is removed if it is free or expired, and if its last term ended longer ago than --older-than, by the server's clock. --hold-at-least counts as part of the term. All runs of the key go with it, also its last success. The history of a key whose row was deleted goes in the same way.",
            ),
            Block::Text(
                "Fences still grow. The next claim of a removed key takes its fence from the server's clock, so purge keeps a key whose fence is newer than --older-than, and says so. That can happen after the clock was set back. A clock that is set back after a purge, by more than --older-than, can make the fence of a removed key go down. purge refuses a table whose fences have a default that does not follow the clock.",
            ),
            Block::Text(
                "purge may run at any time. It works in short transactions of at most 500 keys, and skips a key that somebody is claiming. If it is interrupted, some keys are removed and the others are as before; run it again.",
            ),
            Block::Text(
                "lease history --overdue reports a removed key only if it is named in full. Choose --older-than longer than the time between two runs of any job, and longer than any --once-per: the last success is removed too.",
            ),
        ],
    },
    Section {
        title: "OUTPUT",
        blocks: &[Block::Text(
            "With --dry-run, purge prints the keys that would be removed, one on each line, with control characters shown as escapes. How many keys and runs are removed, or would be, is a message on stderr. A missing table counts as a table without keys.",
        )],
    },
    Section {
        title: "PRIVILEGES",
        blocks: &[Block::Text(
            "Run purge as the owner of the lease table. The role needs SELECT, UPDATE and DELETE on the lease table and on its history, and lease init takes the last two on the history away from every other role. --dry-run needs only SELECT.",
        )],
    },
    VARIABLES,
    EXIT,
];
