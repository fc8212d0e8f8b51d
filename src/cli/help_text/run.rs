//! The page of `lease run`.

use super::section::{Block, Section, VARIABLES};
use crate::exit;

/// What happens to the job and the lease in each event. README.md shows the most common events.
pub const FATES: &[(&str, &str)] = &[
    (
        "the job ends",
        "lease stops the processes that the job left in its process group, releases the lease and exits with the job's exit code",
    ),
    (
        "a signal kills the job",
        "lease does the same, but ends by the same signal",
    ),
    (
        "lease gets INT, TERM, HUP, QUIT, USR1, USR2, WINCH or CONT",
        "the job's process group receives the signal once and is not killed, and the lease is renewed until the job ends",
    ),
    (
        "lease gets INT or TERM while it is stopping the job, or what the job left",
        "the job's process group is killed at once",
    ),
    (
        "lease is killed (KILL, a crash)",
        "the watchdog stops the job at once, and the lease expires at most a ttl after the last heartbeat",
    ),
    (
        "lease is stopped (STOP) or hangs",
        "the watchdog stops the job before the lease expires, and lease exits 76 when it runs again",
    ),
    (
        "the job starts so late that it would be stopped at once",
        "lease does not start the job, releases the lease and exits 76, even with --on-loss continue",
    ),
    (
        "the database is unreachable",
        "lease retries, and if no renewal succeeds, it stops the job before the lease expires and exits 76",
    ),
    (
        "the lease is evicted (release --force, a row changed by hand), or the job releases it",
        "lease notices at the next heartbeat or when the job ends, stops the job and exits 76",
    ),
    (
        "the terminal is closed",
        "the terminal sends HUP to the job's process group, and a job that goes on keeps its lease",
    ),
    (
        "Ctrl-Z, or lease gets TSTP",
        "the job and lease are suspended, and if they are resumed too late, the lease is lost and the job is stopped",
    ),
    (
        "the machine is suspended",
        "if it wakes up too late, the job is killed at once, but only a fence check refuses what the job writes before that",
    ),
    (
        "lease and its watchdog are killed or stopped together",
        "nothing stops the job, and only a fence check refuses what it writes after the lease has expired",
    ),
    (
        "the watchdog is killed",
        "lease starts another one, or stops the job if it cannot",
    ),
];

/// The events of `--log-format json`, with the fields that each has of its own.
const EVENTS: &[(&str, &str)] = &[
    (
        "waiting, busy",
        "someone else holds the lease, and is waited for or not; held_by (null if the key is cooling), held_fence, expires_at",
    ),
    (
        "held_by_outer_run",
        "the run around this one holds the lease",
    ),
    (
        "not_due",
        "--once-per; succeeded_on, succeeded_ago_ms, due_in_ms",
    ),
    ("claim_failing", "claims fail and are retried; reason"),
    (
        "claim_failed",
        "the claim is given up; reason, unknown (true if it may have been applied)",
    ),
    ("claimed, renewed", "with -v; expires_at"),
    ("slow_claim", "took_ms, heartbeat_ms"),
    ("job_started", "with -v; pid"),
    (
        "not_started",
        "the job was not started; reason, if the database failed",
    ),
    (
        "renewal_failing, renewal_recovered",
        "renewals fail and are retried, or succeed again; reason",
    ),
    (
        "lost",
        "cause: evicted, released, taken, expired, mismatch, no_row, no_table or not_renewed; job: not_started, stopped, ended or runs_on; held_by, held_fence and expires_at if someone else holds the lease; evicted_by_role, evicted_by_host and evicted_by_pid if the history tells; reason, if the database failed",
    ),
    (
        "leftovers, leftovers_killed",
        "the job left processes in its group; processes (null if unknown)",
    ),
    ("job_out_of_reach", "the job runs as another user"),
    (
        "heartbeat_failed, watchdog_failed",
        "the job is stopped; reason",
    ),
    ("watchdog_replaced", "the watchdog was killed or stopped"),
    (
        "watchdog_stopped_job",
        "written by the watchdog, which does not know the fence",
    ),
    ("released", "with -v"),
    (
        "release_failed",
        "reason, unknown (true if it may have been applied), expires_at",
    ),
    (
        "run_ended",
        "with -v, the last one; job: not_started, ended or stopped; exit_code or exit_signal, took_ms",
    ),
    ("database", "with -v: a step of a database operation"),
    ("settings", "a connection setting to look at"),
    ("history_unwritten", "the history could not be written"),
    ("error", "any other error; exit_code"),
    ("bug", "a bug in lease"),
];

pub(super) const RUN: &[Section] = &[
    Section {
        title: "EXAMPLES",
        blocks: &[
            Block::Text(
                "One of several replicas runs the report and the others skip it silently. --hold-at-least keeps replicas whose clocks differ by less than 5 minutes from running the same night twice:",
            ),
            Block::Code(
                "0 4 * * * lease run -q --hold-at-least 5m nightly -- /usr/local/bin/report",
            ),
            Block::Text(
                "Run the report once a night. If it failed, or if all replicas were down, the next line that comes round makes up for it:",
            ),
            Block::Code(
                "*/10 4-8 * * * lease run -q --once-per 20h nightly -- /usr/local/bin/report",
            ),
            Block::Text("Wait for the other replica instead of skipping:"),
            Block::Code("lease run --wait 10m deploy -- ./deploy.sh"),
            Block::Text(
                "At a terminal, a line then says whom the run waits for; it disappears when the wait ends. With -q there is none.",
            ),
            Block::Text(
                "Several commands need a shell. In a pipeline, pipefail keeps the failure of pg_dump from being hidden by gzip:",
            ),
            Block::Code("lease run backup -- bash -o pipefail -c 'pg_dump app | gzip >app.gz'"),
        ],
    },
    Section {
        title: "WHAT HAPPENS TO THE JOB AND THE LEASE",
        blocks: &[
            Block::Terms(FATES),
            Block::Text(
                "\"In time\" means before the deadline minus the grace period. The deadline is shortly before the lease expires; see DURATIONS. If the watchdog has stopped the job, lease reports it. If lease is gone, the watchdog reports it.",
            ),
            Block::Text(
                "If the lease was evicted, lease looks into the history for the role and the host that did it, for a second at most. The role of lease needs SELECT on the history for that.",
            ),
            Block::Text(
                "If the database fails temporarily at the claim or at the release, lease retries for up to --db-timeout. With --wait, it retries the claim for as long as --wait allows.",
            ),
            Block::Text(
                "In ps, the watchdog is job-watchdog, a child of lease. Neither its name nor its command line contains lease or the key. So killall lease and pkill -f KEY, even with -9, leave the watchdog alive to stop the job.",
            ),
            Block::Text(
                "With --on-loss continue there is no watchdog. lease only reports the loss, and the job runs on without the lease.",
            ),
        ],
    },
    Section {
        title: "THE JOB",
        blocks: &[
            Block::Text(
                "The job is COMMAND with its arguments, started without a shell, in a process group of its own. It gets FENCE, LEASE_KEY and LEASE_HOLDER in its environment, the stdin, stdout and stderr of lease, and the terminal if there is one.",
            ),
            Block::Text(
                "Only the job's process group is stopped. A process that has left the group (a daemon, setsid) is not touched. Neither is work that the job has started elsewhere, as docker run, ssh and kubectl exec do.",
            ),
            Block::Text(
                "If the job itself calls lease run or lease claim with the key of its own run, that call exits 75 at once, even with --wait.",
            ),
            Block::Text(
                "lease cannot stop a job that runs as another user, unless lease is root. Write sudo -u app lease run ..., not lease run ... sudo -u app ....",
            ),
            Block::Text(
                "With -v, the last line on stderr says how the job ended and how long it took.",
            ),
        ],
    },
    Section {
        title: "HOLD AT LEAST",
        blocks: &[
            Block::Text(
                "A job can be shorter than the clock skew between two machines. The late replica would then find the key free and run the job a second time. With --hold-at-least the key stays closed (cooling) until that long after the claim, however short the job was. Make it longer than the clock skew between the machines, and shorter than the time between two runs.",
            ),
            Block::Text("The key opens earlier in these cases:"),
            Block::Terms(&[
                (
                    "lease is killed, or cannot release within --db-timeout",
                    "the key opens when the ttl ends; in the second case a message says when",
                ),
                (
                    "somebody evicts the run, or the job releases its own lease",
                    "the key opens at once, unless that release has a --hold-at-least of its own",
                ),
                ("COMMAND cannot be started", "the key opens at once"),
            ]),
        ],
    },
    Section {
        title: "ONCE PER PERIOD",
        blocks: &[
            Block::Text(
                "With --once-per the job is started only if the last success of the key is older than the period. A success is a job that ended with code 0 and did not lose its lease, or a script that called lease release --job-code 0. Failures do not count, so the next attempt runs the job again. The period is counted from the end of the success, by the clock of the database.",
            ),
            Block::Text(
                "The database decides while it holds the lock of the row, so two replicas cannot both decide that the job is due. With --wait, a run that waited for a job that then succeeded is done: it is not due either.",
            ),
            Block::Text(
                "--once-per needs the history of runs and the right to read it (GRANT SELECT). Without them, or if the history does not note the claim, nothing is claimed, and lease exits 69 and says what to do. It can run a job a second time if the history has lost its last rows (a failover to a standby that missed them, a restore), or if the success could not be noted: lease was killed between the end of the job and the release, or it said \"cannot release\" or \"the history of leases could not be written\".",
            ),
            Block::Text(
                "Choose a period that is shorter than the time between two planned runs, and longer than the time in which the crontab tries: 20h for a job that runs every night between 4 and 9.",
            ),
        ],
    },
    Section {
        title: "DURATIONS",
        blocks: &[
            Block::Text(
                "Durations are written 500ms, 30s, 5m or '1h 30m'. A longer ttl survives a longer outage of the database, and makes others wait longer for a holder that died. With a ttl below 2 seconds, a pause of a busy machine can be enough to lose the lease.",
            ),
            Block::Terms(&[
                ("--ttl", "60s; from 100ms to 30days"),
                (
                    "--heartbeat",
                    "ttl / 3, or less if --grace leaves less room; at least 10ms",
                ),
                (
                    "--grace",
                    "ttl / 6 but at most 10s, or less if --heartbeat leaves less room",
                ),
                ("--db-timeout", "10s; from 10ms to 1day"),
            ]),
            Block::Text(
                "Two heartbeats and the grace period must fit into the ttl, with a margin to spare: 250ms, but at most a tenth and at least a hundredth of the ttl. The deadline is the end of the ttl minus this margin, counted from the moment when the last successful renewal was sent. TERM is sent a grace period before the deadline, and KILL at the deadline.",
            ),
        ],
    },
    Section {
        title: "SLOW LINKS",
        blocks: &[
            Block::Text(
                "Each renewal opens a connection, which takes 5 round trips between lease and the database. Add 2 for TLS, or 1 if TLS is tried and refused; 2 for a password (SCRAM); and 1 for several hosts. With TLS and a password, a renewal takes 9. The first claim of a key takes 1 more.",
            ),
            Block::Text(
                "No connection stays open between two renewals. Only the connection of the claim stays open for as long as it took to make it, at most 100 ms, so that a job that ends at once is released through it.",
            ),
            Block::Text(
                "Give a --ttl of at least 30 round trips: 3s where a round trip takes 100ms, 9s where it takes 300ms. That leaves time for a second try. The shortest ttl that worked in tests was 13 round trips without TLS, and 18 to 22 with TLS and a password. With a shorter one, no renewal is in time, and the job is stopped.",
            ),
            Block::Text(
                "The time limit of a renewal is a heartbeat, or twice the time of the last successful renewal if that is longer. Each timeout doubles it. The limit is never longer than --db-timeout, and never ends after the moment at which the job must be stopped. Where possible, it leaves time for one more try on a new connection. If renewals are slow, they begin before the heartbeat is over. If the claim took longer than a heartbeat, lease says so when the job starts.",
            ),
        ],
    },
    Section {
        title: "MESSAGES AS JSON",
        blocks: &[
            Block::Text(
                "With --log-format json, lease writes each of its messages to stderr as one JSON object on one line. Wrong usage that is noticed while the command line is read is still reported as text. The job's own stderr passes through unchanged. Each object has these fields, and then those of its event:",
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
    },
    VARIABLES,
    Section {
        title: "EXIT STATUS",
        blocks: &[
            Block::Terms(exit::TABLE),
            Block::Text(
                "The exit code of the job is passed on. A job that itself exits 69, 75, 76 or 125 can be told apart only by the messages on stderr; -E sets another code for a conflict. Where a non-zero code causes a retry, as in a Kubernetes CronJob, use -E 0.",
            ),
        ],
    },
];
