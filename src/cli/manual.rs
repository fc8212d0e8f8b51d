//! What the manual says beyond the options: exit codes, environment, examples. Plain data; the man pages and `--help` are
//! made from it.

use crate::exit;

/// A piece of a section.
#[derive(Clone, Copy, Debug)]
pub enum Block {
    /// A paragraph.
    Text(&'static str),
    /// Lines to be typed, or shown as they are.
    Code(&'static str),
    /// Terms and their meanings.
    Terms(&'static [(&'static str, &'static str)]),
}

/// A section of a page.
#[derive(Clone, Copy, Debug)]
pub struct Section {
    /// In capitals, as man(7) has it.
    pub title: &'static str,
    /// What it says.
    pub blocks: &'static [Block],
}

/// The variables that `lease` itself reads, besides those of libpq.
pub const ENVIRONMENT: &[(&str, &str)] = &[
    (
        "LEASE_DATABASE_URL",
        "where the database is; see --database-url",
    ),
    ("LEASE_TABLE", "the table; see --table"),
    (
        "LEASE_DB_TIMEOUT",
        "the most that one database operation may take; see --db-timeout",
    ),
    (
        "LEASE_TTL",
        "how long a lease outlives its last heartbeat; see --ttl of run, claim and renew",
    ),
    (
        "LEASE_QUIET",
        "errors only, unless it is 0, no, off or false; see --quiet",
    ),
    (
        "LEASE_KEY, LEASE_HOLDER, FENCE",
        "the term that renew and release act on; claim prints them, run gives them to its job",
    ),
    (
        "PGHOST, PGPORT, PGUSER, PGDATABASE, PGPASSFILE, PGSERVICE, PGSSLMODE, ...",
        "as for psql, where --database-url leaves something open",
    ),
];

/// What becomes of the job and of the lease, whatever happens. README.md shows the same table.
pub const FATES: &[(&str, &str)] = &[
    (
        "the job ends",
        "what it left in its process group is stopped (TERM, grace, KILL); then the lease is released, and lease exits as the job did",
    ),
    (
        "the job is killed by a signal",
        "the same; lease dies by the same signal",
    ),
    (
        "lease gets INT, TERM, HUP, QUIT, USR1, USR2, WINCH or CONT",
        "the job's group gets that very signal, once, and is not killed for it; the lease is renewed for as long as the job takes to end",
    ),
    (
        "lease gets INT or TERM while it stops the job itself, or what the job has left",
        "the job's group is killed at once",
    ),
    (
        "lease is killed (KILL, a crash)",
        "the watchdog stops the job at once: TERM, grace, KILL, before the lease expires; the lease expires by itself, at most a ttl after its last heartbeat",
    ),
    (
        "lease is stopped (STOP), or hangs",
        "the watchdog stops the job before the lease expires; continued, lease says so and exits 76",
    ),
    (
        "starting the job takes so long that it would have to stop at once",
        "the job is not started; lease releases the lease, says so and exits 76, also with --on-loss continue",
    ),
    (
        "the database can't be reached",
        "renewals are tried again; if none succeeds in time, the job is stopped before the lease expires, and lease exits 76",
    ),
    (
        "the lease is taken (release --force, a row changed by hand) or the job releases it itself",
        "the next heartbeat notices, the job is stopped, and lease exits 76 and names the new holder; if the job ended before that, lease says so and exits 76 too",
    ),
    (
        "the terminal is closed",
        "the job's group gets HUP from the terminal; a job that goes on keeps its lease",
    ),
    (
        "Ctrl-Z, or TSTP to lease",
        "the job and lease stop; continued in time they go on; after the ttl less the grace since the last heartbeat the job is stopped, for its lease is lost",
    ),
    (
        "the machine is suspended",
        "as when lease is stopped: on waking up past the deadline, the job is killed before it can do much; only a fence check keeps out what it does in that moment",
    ),
    (
        "lease and its watchdog are killed, or stopped, together",
        "nobody is left to stop the job, which outlives its lease; only a fence check keeps its writes out",
    ),
    (
        "the watchdog is killed",
        "another one takes its place; where none can be had, the job is stopped",
    ),
];

const EXIT: Section = Section {
    title: "EXIT STATUS",
    blocks: &[Block::Terms(exit::TABLE)],
};
const VARIABLES: Section = Section {
    title: "ENVIRONMENT",
    blocks: &[
        Block::Terms(ENVIRONMENT),
        Block::Text("A variable that is set and empty counts as unset."),
    ],
};

const MAIN: &[Section] = &[
    Section {
        title: "EXAMPLES",
        blocks: &[
            Block::Text("A crontab line, on every replica:"),
            Block::Code(
                "0 4 * * * lease run -q --hold-at-least 5m nightly -- /usr/local/bin/report",
            ),
            Block::Text("Who holds what:"),
            Block::Code("lease status"),
        ],
    },
    Section {
        title: "WHAT IS NOT PROMISED",
        blocks: &[Block::Text(
            "A lease alone is not mutual exclusion. A whole machine can freeze and thaw, a job can have left its process group, the server's clock can jump. Only the resource that is written to can refuse a stale writer, by remembering the largest FENCE that it has seen; see lease-fencing(7). Jobs must be idempotent until that check is in place.",
        )],
    },
    VARIABLES,
    EXIT,
];

const RUN: &[Section] = &[
    Section {
        title: "EXAMPLES",
        blocks: &[
            Block::Text(
                "One of several replicas runs the report; the others skip it silently. Replicas whose clocks differ by less than 5 minutes do not run the same night twice, however short the job is:",
            ),
            Block::Code(
                "0 4 * * * lease run -q --hold-at-least 5m nightly -- /usr/local/bin/report",
            ),
            Block::Text("Wait for the other one instead of skipping:"),
            Block::Code("lease run --wait 10m deploy -- ./deploy.sh"),
            Block::Text("Several commands, or a pipeline, need a shell:"),
            Block::Code("lease run backup -- sh -c 'pg_dump app | gzip >/backup/app.gz'"),
        ],
    },
    Section {
        title: "WHAT BECOMES OF THE JOB AND THE LEASE",
        blocks: &[
            Block::Terms(FATES),
            Block::Text(
                "A process that has left the job's group on purpose (a daemon, setsid) is not touched. With --on-loss continue no watchdog guards the job, and a loss is only reported.",
            ),
        ],
    },
    VARIABLES,
    EXIT,
];

const CLAIM: &[Section] = &[
    Section {
        title: "EXAMPLES",
        blocks: &[
            Block::Text("eval of nothing succeeds, so keep the exit code of claim:"),
            Block::Code(
                "term=$(lease claim --ttl 5m nightly) || exit\neval \"$term\"\ntrap 'lease release' EXIT\ntrap 'exit 129' HUP; trap 'exit 130' INT; trap 'exit 143' TERM\n./first-half\nlease renew --ttl 5m >/dev/null || exit\n./second-half",
            ),
        ],
    },
    VARIABLES,
    EXIT,
];

const RENEW: &[Section] = &[
    Section {
        title: "EXAMPLES",
        blocks: &[
            Block::Text("Between two steps of a script that has claimed:"),
            Block::Code("lease renew --ttl 5m >/dev/null || exit"),
        ],
    },
    VARIABLES,
    EXIT,
];

const RELEASE: &[Section] = &[
    Section {
        title: "EXAMPLES",
        blocks: &[
            Block::Text("At the end of a script that has claimed:"),
            Block::Code("lease release"),
            Block::Text(
                "Take the lease from a holder that hangs, if it is still the one that status showed:",
            ),
            Block::Code("lease release --force --fence 1796098343884123 nightly"),
        ],
    },
    VARIABLES,
    EXIT,
];

const STATUS: &[Section] = &[
    Section {
        title: "STATES",
        blocks: &[Block::Terms(&[
            ("held", "somebody has it"),
            (
                "expired",
                "the holder vanished without releasing; the next claim takes it",
            ),
            (
                "cooling",
                "released, but not claimable yet (--hold-at-least)",
            ),
            ("free", "released, or never claimed"),
        ])],
    },
    Section {
        title: "EXAMPLES",
        blocks: &[
            Block::Text("For a monitor: has the nightly job lost its holder?"),
            Block::Code("lease status --exit-code nightly"),
            Block::Text("The keys of one service, as JSON:"),
            Block::Code("lease status --format json 'billing-*'"),
        ],
    },
    VARIABLES,
    EXIT,
];

const INIT: &[Section] = &[
    Section {
        title: "EXAMPLES",
        blocks: &[
            Block::Text(
                "Where jobs may not create tables, the owner of the schema makes it once, and lets them use it:",
            ),
            Block::Code(
                "lease init\npsql \"$LEASE_DATABASE_URL\" -c 'GRANT SELECT, INSERT, UPDATE ON public.lease TO app'",
            ),
            Block::Text("For a migration tool:"),
            Block::Code("lease init --print >migrations/042_lease.sql"),
            Block::Text(
                "Where jobs write to PostgreSQL, a check that refuses the writes of a stale holder, and the role that may call it; see lease-fencing(7):",
            ),
            Block::Code(
                "lease init --with-fencing\npsql \"$LEASE_DATABASE_URL\" -c 'GRANT EXECUTE ON FUNCTION public.lease_check_fence(text, bigint) TO app'",
            ),
        ],
    },
    VARIABLES,
    EXIT,
];

/// The sections of the page of a verb; of `lease` itself for any other word.
#[must_use]
pub fn sections(verb: &str) -> &'static [Section] {
    match verb {
        "run" => RUN,
        "claim" => CLAIM,
        "renew" => RENEW,
        "release" => RELEASE,
        "status" => STATUS,
        "init" => INIT,
        _ => MAIN,
    }
}

/// The sections that `--help` shows after the options: the examples, and for `lease` itself the exit codes.
#[must_use]
pub fn after_help(verb: &str) -> String {
    let shown = |title: &str| title == "EXAMPLES" || (verb == "lease" && title == "EXIT STATUS");
    let mut out = String::new();
    for section in sections(verb).iter().filter(|s| shown(s.title)) {
        let mut title = section.title.to_lowercase();
        title[..1].make_ascii_uppercase();
        out.push_str(&format!("{title}:\n"));
        for block in section.blocks {
            match block {
                Block::Text(text) => out.push_str(&format!("  {text}\n")),
                Block::Code(code) => {
                    for line in code.lines() {
                        out.push_str(&format!("      {line}\n"));
                    }
                }
                Block::Terms(terms) => {
                    for (term, meaning) in *terms {
                        out.push_str(&format!("  {term:<9} {meaning}\n"));
                    }
                }
            }
        }
        out.push('\n');
    }
    out.truncate(out.trim_end().len());
    out
}
