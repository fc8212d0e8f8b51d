//! The pages of `lease` itself and of every verb but `run`.

use super::section::{Block, EXIT, Section, VARIABLES};

pub(super) const MAIN: &[Section] = &[
    Section {
        title: "EXAMPLES",
        blocks: &[
            Block::Text("A crontab line, the same on every replica:"),
            Block::Code(
                "0 4 * * * lease run -q --hold-at-least 5m nightly -- /usr/local/bin/report",
            ),
            Block::Text("Show who holds what:"),
            Block::Code("lease status"),
        ],
    },
    Section {
        title: "WHAT IS NOT PROMISED",
        blocks: &[Block::Text(
            "A lease alone is not mutual exclusion. A whole machine can freeze and thaw, a process can leave the job's process group, and the server's clock can jump. Only the resource that the job writes to can refuse a stale writer: it remembers the largest fence that it has seen; see lease-fencing(7). Until that check is in place, jobs must be idempotent.",
        )],
    },
    VARIABLES,
    EXIT,
];

const TERM_FIELDS: &[(&str, &str)] = &[
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
        "milliseconds from the printing to the expiry; never too many, because the ttl counts from when the request was sent",
    ),
];

/// What a claim adds to the fields of a term.
const NEW_FIELD: &[(&str, &str)] = &[(
    "new",
    "true if this claim began the term, false if the holder of --holder held the lease already and the claim extended it; LEASE_NEW is 1 or 0 in the shell format",
)];

const SLOW: Section = Section {
    title: "SLOW ANSWERS",
    blocks: &[
        Block::Text(
            "The time of a lease counts from when the request was sent. If the lease has almost expired when the answer comes, claim and renew ask once more. If the second answer is late too (69), or the lease is lost by then (76), they print nothing.",
        ),
        Block::Text(
            "After that, nothing watches the clock for the script. If the script is suspended, the lease may have expired when it goes on. The same can happen if lease is suspended after its last look at the clock. Only a fence check refuses what the script writes then; see lease-fencing(7).",
        ),
    ],
};

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
            Block::Terms(TERM_FIELDS),
            Block::Terms(NEW_FIELD),
            Block::Text(
                "Two processes that claim with the same --holder, such as a host name, both get the lease. Only the one that finds new has begun the term. If the database lost the answer to a first try, the second try cannot tell, and the claim is not called new.",
            ),
        ],
    },
    SLOW,
    VARIABLES,
    EXIT,
];

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
            Block::Terms(TERM_FIELDS),
        ],
    },
    SLOW,
    VARIABLES,
    EXIT,
];

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

pub(super) const STATUS: &[Section] = &[
    Section {
        title: "STATES",
        blocks: &[Block::Terms(&[
            ("held", "a holder has it"),
            (
                "expired",
                "the holder vanished without releasing the lease; the next claim gets it",
            ),
            (
                "cooling",
                "released, but kept closed by --hold-at-least until it expires",
            ),
            ("free", "released, or never claimed"),
        ])],
    },
    Section {
        title: "COLUMNS",
        blocks: &[
            Block::Terms(&[
                (
                    "KEY",
                    "the key; control characters are shown as escapes, here and in HOLDER",
                ),
                ("STATE", "see STATES"),
                (
                    "HOLDER",
                    "the holder; in state expired, the holder that vanished",
                ),
                (
                    "FENCE",
                    "the fence of the current term, or of the last one if there is none",
                ),
                (
                    "HELD FOR",
                    "how long the holder has had the lease; in state expired, how long it had it until the expiry",
                ),
                (
                    "EXPIRES IN",
                    "the time until the expiry; in state expired, how long ago that was",
                ),
                (
                    "LAST RUN",
                    "how the last run ended, and when; see lease-history(1)",
                ),
            ]),
            Block::Text(
                "A dash means that there is no such value. All times are by the server's clock. A missing table counts as a table without leases. status needs only SELECT on the table, and works on a standby.",
            ),
        ],
    },
    Section {
        title: "AT A TERMINAL",
        blocks: &[
            Block::Text(
                "If the table is wider than the terminal, long keys and holders are shortened and end with an ellipsis. In a pipe or a file they are always whole.",
            ),
            Block::Text(
                "With --watch, the table is shown on the alternate screen. The first line names the server that answered, the database, and the local time of the answer. If there are more keys than lines, the last line says how many are not shown. If the leases cannot be read, the reason is shown above the table of the last answer, and the watch goes on. A failure that waiting cannot mend ends it with exit code 69.",
            ),
            Block::Text(
                "The keys q and Ctrl-C end the watch and restore the terminal; so do HUP, INT and TERM. The exit code is then 0. In the background, the watch draws nothing and waits.",
            ),
        ],
    },
    Section {
        title: "JSON",
        blocks: &[
            Block::Text(
                "With --format json, status prints an array with one object for each key. A field without a value is null.",
            ),
            Block::Terms(&[
                ("key", "the key"),
                ("state", "held, expired, cooling or free"),
                ("holder", "the holder; null in the states cooling and free"),
                ("fence", "the fence of the current or last term, a number"),
                ("acquired_at", "the time of the grant, in RFC 3339 and UTC"),
                ("expires_at", "the time of the expiry, in RFC 3339 and UTC"),
                (
                    "expires_in_ms",
                    "milliseconds until the expiry; negative once it has passed",
                ),
                (
                    "held_for_ms",
                    "milliseconds since the grant, or from the grant to the expiry once that has passed; null if there is no holder",
                ),
                (
                    "last_run",
                    "the last run as an object, as lease-history(1) describes it; null if there is no history that the role may read",
                ),
                (
                    "last_success",
                    "the time of the last success, in RFC 3339 and UTC; null if there is none",
                ),
            ]),
        ],
    },
    Section {
        title: "METRICS",
        blocks: &[
            Block::Text(
                "With --format openmetrics, status prints gauges with the label key, also for free keys. The text is valid both as OpenMetrics and in the older text format of Prometheus, which node_exporter's textfile collector reads. A value that is unknown has no sample. Times are seconds since 1970, by the server's clock.",
            ),
            Block::Terms(&[
                ("lease_held", "1 if a holder has the lease, else 0"),
                (
                    "lease_cooling",
                    "1 if the lease is kept closed by --hold-at-least, else 0",
                ),
                (
                    "lease_expires_timestamp_seconds",
                    "when the current term or the cooling ends, or when the holder vanished; +Inf if it never ends",
                ),
                (
                    "lease_acquired_timestamp_seconds",
                    "when the current term began",
                ),
                (
                    "lease_last_success_timestamp_seconds",
                    "when the key has last succeeded",
                ),
                (
                    "lease_last_run_start_timestamp_seconds",
                    "when the last run began",
                ),
                (
                    "lease_last_run_duration_seconds",
                    "how long the last run took; no sample while it runs, or if its holder vanished",
                ),
                (
                    "lease_last_run_exit_code",
                    "the exit code of the last run, 128 + n after signal n; no sample while it runs, or if it is unknown",
                ),
            ]),
            Block::Text(
                "The collector does not read a file that is being written, if its name does not end with .prom. So write to another name and rename the file, as below. If the database is unreachable, the old file stays: alert on the age of node_textfile_mtime_seconds.",
            ),
        ],
    },
    Section {
        title: "EXAMPLES",
        blocks: &[
            Block::Text("For a monitor: does anybody hold the nightly job?"),
            Block::Code("lease status -q --exit-code nightly"),
            Block::Text("The keys of one service, as JSON:"),
            Block::Code("lease status --format json 'billing-*'"),
            Block::Text("For Prometheus, a crontab line that replaces the file in one step:"),
            Block::Code(
                "* * * * *  cd /var/lib/prometheus/node-exporter && lease status --format openmetrics >lease.new && mv lease.new lease.prom",
            ),
        ],
    },
    VARIABLES,
    EXIT,
];

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
                    "the time from the grant to the end; a dash if the holder vanished, since nobody knows when",
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
                    "somebody else ended the term: with release --force, or with a statement that gave the key to another holder",
                ),
                ("lost", "the holder released the lease after it had expired"),
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
                "The chart is as wide as the terminal, and 80 columns wide if stdout is not a terminal. Its marks are ASCII unless LC_ALL, LC_CTYPE or LANG names a locale with UTF-8.",
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
                "A trigger on the lease table writes one row for each term into the table public.lease_history. So other programs that share the table, and statements by hand, are recorded too. If the history cannot be written, lease warns once, and the lease is not affected.",
            ),
            Block::Text(
                "The first claim creates the history together with the lease table. For a lease table that existed before, its owner runs lease init. Rows are kept for 90 days (lease init --keep-history); older ones of a key are removed when it is claimed, a few at a time. The last success of a key is always kept.",
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
                "Alert if a job has not succeeded for 26 hours. cron mails the output of this line. There is none if all is well. It also finds a job that hangs, while its other runs are skipped:",
            ),
            Block::Code("0 9 * * *  lease history --overdue 26h nightly backup"),
        ],
    },
    VARIABLES,
    EXIT,
];

pub(super) const INIT: &[Section] = &[
    Section {
        title: "EXAMPLES",
        blocks: &[
            Block::Text(
                "If jobs may not create tables, the owner of the schema creates the table once and grants its use:",
            ),
            Block::Code(
                "lease init\npsql \"$LEASE_DATABASE_URL\" -c 'GRANT SELECT, INSERT, UPDATE ON public.lease TO app'\npsql \"$LEASE_DATABASE_URL\" -c 'GRANT SELECT ON public.lease_history TO app'",
            ),
            Block::Text("For a migration tool:"),
            Block::Code("lease init --print >migrations/042_lease.sql"),
            Block::Text(
                "If jobs write to PostgreSQL, add the check that refuses the writes of a stale holder, and name the role that may call it; see lease-fencing(7):",
            ),
            Block::Code(
                "lease init --with-fencing\npsql \"$LEASE_DATABASE_URL\" -c 'GRANT EXECUTE ON FUNCTION public.lease_check_fence(text, bigint) TO app'",
            ),
        ],
    },
    VARIABLES,
    EXIT,
];
