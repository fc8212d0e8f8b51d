//! The page of `lease status`.

use super::section::{Block, Section, VARIABLES};
use crate::exit;

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
                "released, but kept closed by --hold-at-least; EXPIRES IN says for how long",
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
                    "the holder; in the state expired, the holder that vanished",
                ),
                (
                    "FENCE",
                    "the fence of the current term, or of the last one if there is none",
                ),
                (
                    "HELD FOR",
                    "how long the holder has had the lease; in the state expired, how long it had the lease",
                ),
                (
                    "EXPIRES IN",
                    "the time until the expiry; in the state expired, how long ago that was",
                ),
                (
                    "LAST RUN",
                    "how the last run ended, and when; see lease-history(1)",
                ),
            ]),
            Block::Text(
                "A dash means that there is no such value. All times are by the server's clock. If there is no lease table, there are no leases. status needs only SELECT on the table, and works on a standby.",
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
                "With --watch, the table is shown on the alternate screen. The first line names the server that answered, the database, and the local time of the answer. If there are more keys than lines, the last line says how many are not shown. If the leases cannot be read, the reason is shown above the last table, and the watch goes on. It ends with exit code 69 if waiting cannot help, for example if the password is wrong.",
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
                    "the exit code of the last run, or 128 + n after signal n; no sample while it runs, or if it is unknown",
                ),
            ]),
            Block::Text(
                "The collector reads only files whose names end with .prom. So write to another name and rename the file when it is complete, as below. If the database is unreachable, the old file stays: alert on the age of node_textfile_mtime_seconds.",
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
            Block::Text(
                "For Prometheus, a script to be run by cron, which replaces the file in one step:",
            ),
            Block::Code(
                "cd /var/lib/prometheus/node-exporter &&\n    lease status --format openmetrics >lease.new &&\n    mv lease.new lease.prom",
            ),
        ],
    },
    VARIABLES,
    Section {
        title: "EXIT STATUS",
        blocks: &[Block::Terms(&[
            exit::DONE,
            ("1", "with --exit-code: a named key is not held"),
            exit::USAGE,
            exit::UNAVAILABLE,
            exit::FAILED,
        ])],
    },
];
