//! The page of `lease purge`.

use super::section::{Block, EXIT, Section, VARIABLES};

pub(super) const PURGE: &[Section] = &[
    Section {
        title: "EXAMPLES",
        blocks: &[
            Block::Text("See what would be removed, and then remove it:"),
            Block::Code("lease purge --older-than 90d --dry-run\nlease purge --older-than 90d"),
            Block::Text("A crontab line for keys with a date in their names:"),
            Block::Code(
                "PATH=/usr/local/bin:/usr/bin:/bin\n30 5 * * 0  lease purge -q --older-than 30d 'import-*'",
            ),
        ],
    },
    Section {
        title: "WHAT IS REMOVED",
        blocks: &[
            Block::Text(
                "A key is removed if it is free or expired, and if its last term ended longer ago than --older-than, by the server's clock. --hold-at-least counts as part of the term. The history of the key is removed with it. The history of a key whose row was deleted is removed in the same way.",
            ),
            Block::Text(
                "The fence of a removed key still grows, because the next claim takes it from the server's clock. If the clock was set back, a fence can be newer than --older-than. purge keeps such a key and says so. If the clock is set back after a purge by more than --older-than, the fence of a removed key can go down. purge refuses a table in which the default of fence does not follow the clock.",
            ),
            Block::Text(
                "purge may run at any time. It works in short transactions of at most 500 keys, and skips a key that somebody is claiming. If it is interrupted, some keys are removed and the others are as before; run it again.",
            ),
            Block::Text(
                "The last success of a key is removed too. So --older-than must be longer than the time between two runs of any job, and longer than any --once-per. lease history --overdue reports a removed key only if it is named in full.",
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
            "Run purge as the owner of the lease table. It needs SELECT, UPDATE and DELETE on the lease table and on its history, and lease init makes sure that only the owner may change the history. --dry-run needs only SELECT.",
        )],
    },
    VARIABLES,
    EXIT,
];
