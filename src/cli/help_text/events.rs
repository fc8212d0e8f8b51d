//! The messages of `lease run` as JSON.

use super::section::{Block, Section};

/// The events of `--log-format json`, with the fields that each has of its own.
const EVENTS: &[(&str, &str)] = &[
    (
        "waiting, busy",
        "someone else holds the lease, and run waits or is skipped; held_by (null if the key is cooling), held_fence, expires_at",
    ),
    (
        "held_by_outer_run",
        "lease run was called by a job that runs under the same key",
    ),
    (
        "not_due",
        "skipped because of --once-per; succeeded_on, succeeded_ago_ms, due_in_ms",
    ),
    ("claim_failing", "the claim failed, and is retried; reason"),
    ("not_eager", "--eager cannot keep a connection; reason"),
    (
        "claim_failed",
        "the claim failed, and is not retried; reason, unknown (true if it may have succeeded)",
    ),
    ("claimed, renewed", "with -v; expires_at"),
    (
        "slow_claim",
        "the claim took longer than a heartbeat; took_ms, heartbeat_ms",
    ),
    ("job_started", "with -v; pid"),
    (
        "not_started",
        "the job was not started; reason, if the database failed",
    ),
    (
        "renewal_failing, renewal_recovered",
        "a renewal failed and is retried, or succeeds again; reason",
    ),
    (
        "lost",
        "cause: evicted, released, taken, expired, mismatch, no_row, no_table or not_renewed; job: not_started, stopped, ended or runs_on; held_by, held_fence and expires_at if someone else holds the lease; evicted_by_role, evicted_by_host and evicted_by_pid if the history tells; reason, if the database failed",
    ),
    (
        "leftovers, leftovers_killed",
        "the job left processes in its group, and they are stopped or killed; processes (their number, null if unknown)",
    ),
    (
        "job_out_of_reach",
        "the job runs as another user, so lease cannot stop it",
    ),
    (
        "heartbeat_failed, watchdog_failed",
        "the heartbeat or the watchdog could not be started; reason",
    ),
    (
        "watchdog_replaced",
        "the watchdog was killed or stopped, and lease has started another one",
    ),
    (
        "watchdog_stopped_job",
        "written by the watchdog, if lease is gone; fence is null",
    ),
    ("released", "with -v"),
    (
        "release_failed",
        "reason, unknown (true if it may have succeeded), expires_at",
    ),
    (
        "run_ended",
        "with -v, the last one; job: not_started, ended or stopped; exit_code or exit_signal, took_ms",
    ),
    ("database", "with -v: a step of a database operation"),
    ("settings", "a warning about a connection setting"),
    ("history_unwritten", "the history could not be written"),
    ("error", "any other error; exit_code"),
    ("bug", "a bug in lease"),
];

pub(super) const MESSAGES: Section = Section {
    title: "MESSAGES AS JSON",
    blocks: &[
        Block::Text(
            "With --log-format json, lease writes each of its messages to stderr as one JSON object on one line. Errors in the command line itself are still reported as text. The job's own stderr passes through unchanged. Each object has these fields, and then those of its event:",
        ),
        Block::Terms(&[
            (
                "time",
                "when the message was made, by the clock of this machine, in RFC 3339 and UTC",
            ),
            ("level", "error, info (not with -q) or debug (only with -v)"),
            ("event", "a name from the list below"),
            (
                "key, holder",
                "the lease; holder is null until it is chosen",
            ),
            ("fence", "a number; null until the lease is claimed"),
            (
                "message",
                "the text that --log-format text shows; the last field",
            ),
        ]),
        Block::Text(
            "Names of events and fields do not change with a minor version, but new ones may be added:",
        ),
        Block::Terms(EVENTS),
    ],
};
