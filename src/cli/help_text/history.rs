//! The page of `lease history`.

use super::section::{Block, COMMON_VARIABLES, EMPTY_VARIABLES, Section};
use crate::exit;

pub(super) const HISTORY: &[Section] = &[
    Section {
        title: "COLUMNS",
        blocks: &[
            Block::Terms(&[
                ("KEY", "the key"),
                (
                    "STARTED",
                    "when the lease was granted, in the time zone of TZ",
                ),
                (
                    "TOOK",
                    "the time from the grant to the end; a dash if the holder vanished, because nobody knows when",
                ),
                ("HOLDER", "the holder"),
                (
                    "LAST SUCCESS",
                    "with --last and --overdue: the end of the last run that succeeded",
                ),
                ("ENDED", "how the run ended"),
            ]),
            Block::Text("ENDED is one of these:"),
            Block::Terms(&[
                (
                    "exit N",
                    "the job ended with code N, and the lease was released; exit 0 is a success, and 125, 126 or 127 can mean that the command could not be started",
                ),
                (
                    "signal N",
                    "signal N ended the job, and the lease was released",
                ),
                ("running", "the holder has the lease"),
                (
                    "released",
                    "the lease was released; how the job ended is not known, as in a script without --job-code",
                ),
                (
                    "vanished",
                    "the lease expired, and the holder was not heard of again",
                ),
                (
                    "evicted",
                    "somebody else ended the term: with release --force, or with a statement of their own that changed or emptied the holder",
                ),
                (
                    "lost",
                    "the holder released the lease after it had expired, or the job of a run released it with lease release",
                ),
                ("row deleted", "somebody deleted the row of the lease"),
                (
                    "end not recorded",
                    "the history could not be written when the lease was released, for example because it was locked",
                ),
            ]),
            Block::Text(
                "All times are by the server's clock. A failure is red at a terminal, unless NO_COLOR is set. history needs SELECT on the lease table and on its history, and works on a standby.",
            ),
        ],
    },
    Section {
        title: "CHART",
        blocks: &[
            Block::Text(
                "With --chart, history draws a line for each key that has a history, and for each named key, from --since ago to now. The times above it are in the time zone of TZ. Several runs in one column show as the worst of them: failed, then running, then ran. A run failed if --failed would show it.",
            ),
            Block::Text(
                "The chart is as wide as the terminal, but at least 40 columns, and long keys are shortened to fit. If stdout is not a terminal, keys are not shortened, and the chart is 80 columns wide, or wider if keys are long. Its marks are ASCII unless LC_ALL, LC_CTYPE or LANG names a locale with UTF-8.",
            ),
        ],
    },
    Section {
        title: "JSON",
        blocks: &[
            Block::Text(
                "With --format json, history prints an array with one object for each run. A field without a value is null. Times are in RFC 3339 and UTC.",
            ),
            Block::Terms(&[
                ("key", "the key"),
                ("fence", "the fence, a number"),
                ("holder", "the holder"),
                (
                    "host, pid",
                    "the machine and the process that claimed, if it was lease",
                ),
                ("program", "the file name of the job, without its arguments"),
                ("acquired_at", "the time of the grant"),
                (
                    "ended_at",
                    "the time of the end; null while it runs, or if it is unknown",
                ),
                (
                    "took_ms",
                    "milliseconds from the grant to the end, or to now while it runs; null if the holder vanished, or if it is unknown",
                ),
                (
                    "ended",
                    "running, released, forced, expired, lost, deleted or unknown",
                ),
                (
                    "ended_by",
                    "for forced and deleted: role, host and pid of who did it",
                ),
                ("exit_code, exit_signal", "how the job ended"),
                (
                    "success",
                    "whether the job ended with code 0, and its lease was released",
                ),
            ]),
            Block::Text(
                "With --last and --overdue, there is one object for each key: key, last_run (such an object, or null) and last_success (a time, or null).",
            ),
        ],
    },
    Section {
        title: "THE HISTORY",
        blocks: &[
            Block::Text(
                "A trigger on the lease table writes one row for each term into the table public.lease_history. So it also records other programs that share the table, and statements by hand. If the history cannot be written, lease warns once, and the lease is not affected.",
            ),
            Block::Text(
                "The first claim creates the history together with the lease table. If the lease table is older, its owner runs lease init to add the history. Rows are kept for at least 90 days (lease init --keep-history). The first claim of a key on each day removes older rows of that key, and so does about one in sixteen of the other claims. The last success of a key is always kept.",
            ),
        ],
    },
    Section {
        title: "EXAMPLES",
        blocks: &[
            Block::Text("Did the nightly job run, and how did it end?"),
            Block::Code("lease history nightly"),
            Block::Text("All jobs at a glance:"),
            Block::Code("lease history --last"),
            Block::Text("Which nights are missing?"),
            Block::Code("lease history --chart --since 7d"),
            Block::Text(
                "Alert if a job has not succeeded for 26 hours, also because a run hangs and all others are skipped. cron mails the output, and there is none if all is well:",
            ),
            Block::Code(
                "PATH=/usr/local/bin:/usr/bin:/bin\n0 9 * * *  lease history --overdue 26h nightly backup",
            ),
        ],
    },
    Section {
        title: "ENVIRONMENT",
        blocks: &[
            COMMON_VARIABLES,
            Block::Terms(&[
                ("TZ", "the time zone of the printed times"),
                ("NO_COLOR", "no colours, if it is set and not empty"),
                (
                    "LC_ALL, LC_CTYPE, LANG",
                    "whether --chart may draw with UTF-8",
                ),
            ]),
            EMPTY_VARIABLES,
        ],
    },
    Section {
        title: "EXIT STATUS",
        blocks: &[Block::Terms(&[
            exit::DONE,
            ("1", "with --overdue: a key is overdue"),
            exit::USAGE,
            exit::UNAVAILABLE,
            exit::FAILED,
        ])],
    },
];
