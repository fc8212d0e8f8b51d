//! The page of `lease run`.

use super::events;
use super::section::{Block, COMMON_VARIABLES, EMPTY_VARIABLES, LOG_FORMAT, Section, TTL};
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

pub(super) const RUN: &[Section] = &[
    Section {
        title: "EXAMPLES",
        blocks: &[
            Block::Text(
                "In the crontab of every machine. One machine runs the report, and the others skip it silently. The clocks of the machines may differ by up to 5 minutes:",
            ),
            Block::Code(
                "PATH=/usr/local/bin:/usr/bin:/bin\n0 4 * * *  lease run -q --hold-at-least 5m nightly -- report",
            ),
            Block::Text(
                "Run the report until it has succeeded once a night. If it failed, or if all machines were down, the next try runs it:",
            ),
            Block::Code(
                "PATH=/usr/local/bin:/usr/bin:/bin\n*/10 4-8 * * *  lease run -q --once-per 20h nightly -- report",
            ),
            Block::Text("Wait for the other machine instead of skipping:"),
            Block::Code("lease run --wait 10m deploy -- ./deploy.sh"),
            Block::Text(
                "Several commands need a shell. With pipefail, the job fails if pg_dump fails, and not only if gzip fails:",
            ),
            Block::Code("lease run backup -- bash -o pipefail -c 'pg_dump app | gzip >app.gz'"),
        ],
    },
    Section {
        title: "WHAT HAPPENS TO THE JOB AND THE LEASE",
        blocks: &[
            Block::Terms(FATES),
            Block::Text(
                "To stop the job, lease sends TERM to the job's process group, and KILL after the grace period. \"Too late\" means after the deadline, which is shortly before the lease expires; see DURATIONS. If the watchdog has stopped the job, lease reports it. If lease is gone, the watchdog reports it.",
            ),
            Block::Text(
                "If the lease was evicted, lease says which role on which host did it. It reads that from the history within a second, and needs SELECT on the history for that.",
            ),
            Block::Text(
                "If the database fails for a moment during the claim or the release, lease retries for up to --db-timeout. With --wait, it retries the claim for as long as --wait allows.",
            ),
            Block::Text(
                "ps shows the watchdog as job-watchdog, a child of lease. Neither its name nor its command line contains lease or the key. So it survives killall lease and pkill -f KEY, even with -9, and stops the job.",
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
                "Only the job's process group is stopped. A process that has left the group runs on: a daemon, setsid, a job of a shell with set -m, or the command of a timeout in a script (write timeout --foreground). So does work that the job has started elsewhere, as docker run, ssh and kubectl exec do.",
            ),
            Block::Text(
                "If the job itself calls lease run or lease claim with its own key, that call exits 75 at once, even with --wait.",
            ),
            Block::Text(
                "lease cannot stop a job that runs as another user, unless lease is root. Write sudo -u app lease run ..., not lease run ... sudo -u app ....",
            ),
            Block::Text(
                "With --wait, lease looks twice a second whether the key is free, and after five minutes every two seconds, with a new connection each time. It also looks exactly when the lease expires. With --eager it keeps one connection while it waits, and looks about 50 times a second, or less often if the answers are slow. The job then starts a few milliseconds after a release, but each waiter takes one connection of the server. Between two looks no transaction is open, so a pooler needs only a few. If the server has no connection left, lease says so and waits without --eager.",
            ),
            Block::Text(
                "While run waits at a terminal (--wait), a line says for whom. With -v, the last line on stderr says how the job ended and how long it took.",
            ),
            Block::Text(
                "Under systemd, KillMode=mixed sends TERM only to lease, and lease passes it on. In Kubernetes, terminationGracePeriodSeconds must be longer than the job needs after TERM, plus --grace and --db-timeout. Where a non-zero exit code causes a retry, use -E 0.",
            ),
        ],
    },
    Section {
        title: "HOLD AT LEAST",
        blocks: &[
            Block::Text(
                "A job can be shorter than the clock skew between two machines. The late machine would then find the key free and run the job a second time. With --hold-at-least, the key stays closed (cooling) until that long after the claim. Make it longer than the clock skew between the machines, and shorter than the time between two runs.",
            ),
            Block::Text("The key opens earlier in these cases:"),
            Block::Terms(&[
                (
                    "lease is killed, or cannot release within --db-timeout",
                    "the key opens when the lease expires",
                ),
                (
                    "somebody evicts the run, or the job releases its own lease",
                    "the key opens at once, unless lease release was called with --hold-at-least",
                ),
                ("COMMAND cannot be started", "the key opens at once"),
            ]),
        ],
    },
    Section {
        title: "ONCE PER PERIOD",
        blocks: &[
            Block::Text(
                "With --once-per, the job is started only if the last success of the key is older than the period. A success is a job that ended with code 0 and did not lose its lease, or a script that called lease release --job-code 0. After a failure, the next try runs the job again. The period begins when the successful job has ended. It is measured by the server's clock.",
            ),
            Block::Text(
                "The check and the claim are one step in the database, so two machines cannot both find that the job is due. If a run waits (--wait) for another one that then succeeds, it is not due, and is skipped.",
            ),
            Block::Text(
                "--once-per needs the history of runs, and SELECT on it. If it cannot read the history, or if the history does not note the claim, lease claims nothing, exits 69 and says what to do.",
            ),
            Block::Text("A job can still run a second time in these cases:"),
            Block::Terms(&[
                (
                    "the history has lost its last rows",
                    "after a restore, or a failover to a standby that missed them",
                ),
                (
                    "the success was not noted",
                    "because lease was killed after the job had ended, or could not write it; then it said \"cannot release\" or \"the history of leases could not be written\"",
                ),
            ]),
            Block::Text(""),
            Block::Text(
                "Choose a period that is shorter than the time between two planned runs, and longer than the time in which the crontab tries. For a job that is tried every night between 4 and 9, 20h is right.",
            ),
        ],
    },
    Section {
        title: "DURATIONS",
        blocks: &[
            Block::Text(
                "Durations are written 500ms, 30s, 5m or '1h 30m'. With a longer ttl, a run survives a longer outage of the database, but others wait longer for a holder that died. With a ttl below 2 seconds, a run on a busy machine can lose its lease.",
            ),
            Block::Text(
                "Two heartbeats and the grace period must fit into the ttl, and a margin must remain. A heartbeat is at least 10ms. The margin is 250ms, but at most a tenth and at least a hundredth of the ttl. The deadline is the end of the ttl minus the margin; the ttl counts from when the last successful renewal was sent. TERM is sent a grace period before the deadline, and KILL at the deadline.",
            ),
        ],
    },
    Section {
        title: "SLOW LINKS",
        blocks: &[
            Block::Text(
                "A renewal takes 5 round trips between lease and the database, because it opens a connection. Add 2 for TLS (1 if the server refuses it), 2 for a password (SCRAM), and 1 for several hosts. The first claim of a key takes 1 more.",
            ),
            Block::Text(
                "No connection stays open between two renewals. Only the connection of the claim stays open for as long as it took to make it, at most 100 ms, so that a job that ends at once is released through it.",
            ),
            Block::Text(
                "Give a --ttl of at least 30 round trips: 3s where a round trip takes 100ms, 9s where it takes 300ms. That leaves time for a second try. The shortest ttl that worked in tests was 13 round trips without TLS, and 18 to 22 with TLS and a password. With a shorter one, no renewal is in time, and the job is stopped.",
            ),
            Block::Text(
                "The time limit of a renewal is a heartbeat, or twice the time of the last successful renewal if that is longer. Each timeout doubles it. The limit is at most --db-timeout, and it ends before the job must be stopped. Where possible, it leaves time for one more try on a new connection. If renewals are slow, the next one begins earlier. If the claim took longer than a heartbeat, lease says so when the job starts.",
            ),
        ],
    },
    events::MESSAGES,
    Section {
        title: "ENVIRONMENT",
        blocks: &[
            COMMON_VARIABLES,
            Block::Terms(&[
                TTL,
                LOG_FORMAT,
                ("LEASE_KEY, LEASE_HOLDER, FENCE", "set for the job"),
            ]),
            EMPTY_VARIABLES,
        ],
    },
    Section {
        title: "EXIT STATUS",
        blocks: &[
            Block::Terms(&[
                exit::USAGE,
                exit::UNAVAILABLE,
                (
                    "75",
                    "not now: someone else holds the lease, the key is cooling, or the run is not due (--once-per); -E sets another code",
                ),
                ("76", "the lease was lost before the run had ended"),
                exit::FAILED,
                ("126", "the command was found but can't be executed"),
                ("127", "the command was not found"),
                (
                    "other",
                    "the job's own exit code; if a signal ended the job, lease ends by the same signal (128 + n in a shell)",
                ),
            ]),
            Block::Text(
                "A job that itself exits 69, 75, 76 or 125 can be told apart only by the messages on stderr. -E sets another code for a skipped run.",
            ),
        ],
    },
];
