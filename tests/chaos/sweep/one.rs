//! One run in which one process is frozen once.

use std::time::{Duration, Instant};

use super::judge;
use crate::support::frozen::Frozen;
use crate::support::job::{Journal, of_job, run};
use crate::support::tracer::{Point, Reached, Target, run_to, waiting};
use crate::support::{LIMIT, Lease, Running, key};

/// A job that makes notes of the time, some twenty a second. Its arguments: how many, how many more a child makes that it
/// leaves behind, what it does at a TERM, and what it does first.
const JOB: &str = r#"
trap "$3" TERM
eval "$4"
mkfifo $0.pipe && exec 9<>$0.pipe
tick() { n=$1; while [ $n -gt 0 ]; do echo "$EPOCHREALTIME" >>$0; read -t 0.05 -u 9; n=$((n-1)); done; }
tick $2 & tick $1; echo done >>$0; exit 0"#;
/// A TERM that is ignored, and one that ends the job as if it were done.
const DEAF: &str = "";
const TIDY: &str = "exit 0";

/// How long a process is frozen if no other holder gets its lease: longer than the ttl.
const LONG: Duration = Duration::from_millis(3400);

/// Between two looks.
const LOOK: Duration = Duration::from_millis(10);

/// What is frozen, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Case {
    /// `lease` itself, until the next job has begun.
    Lease,
    /// `lease` itself, until the watchdog has ended the job, and no longer.
    LeaseForLess,
    /// The same, and its job leaves a process behind.
    Leftovers,
    /// The same, and its job kills the watchdog.
    Bereft,
    /// The child before it is the job.
    Child,
    /// The watchdog. No process is notified.
    Watchdog,
    /// The watchdog, by STOP, which `lease` is told.
    StoppedWatchdog,
}

impl Case {
    const fn target(self) -> Target {
        match self {
            Self::Lease | Self::LeaseForLess | Self::Leftovers | Self::Bereft => Target::Lease,
            Self::Child => Target::Child,
            Self::Watchdog | Self::StoppedWatchdog => Target::Watchdog,
        }
    }

    /// The arguments of the job. Some outlive the freeze, others do not: by turns, for one that is frozen itself.
    const fn job(self, turn: usize) -> [&'static str; 4] {
        match (self, turn % 2) {
            (Self::Lease | Self::Child, 0) => ["90", "0", DEAF, ""],
            (Self::Lease | Self::Child | Self::StoppedWatchdog, _) => ["14", "0", DEAF, ""],
            (Self::Watchdog, _) => ["90", "0", DEAF, ""],
            (Self::LeaseForLess, _) => ["90", "0", TIDY, ""],
            (Self::Leftovers, _) => ["14", "100", DEAF, ""],
            (Self::Bereft, _) => ["90", "0", DEAF, "pkill -KILL -x -P $PPID job-watchdog"],
        }
    }
}

/// What came of one place.
pub(super) enum Came {
    /// It was never reached. The thread made fewer calls this time, or there was no place to reach: so many stops of each.
    Past(Vec<usize>),
    Frozen {
        call: String,
        exit: String,
    },
    Untraceable,
}

/// Runs it, and answers what came of it and what is wrong about that.
pub(super) fn one(case: Case, point: Option<Point>) -> (Came, Vec<String>) {
    let (server, key, journal) = (judge::server(), key(), Journal::new());
    let [notes, left, at_term, first_of_all] = case.job(match point {
        Some(Point::Stop { stop, .. }) => stop / 2,
        Some(Point::After { .. }) | None => 1,
    });
    let options = [
        "--wait",
        "1m",
        "--name",
        "first",
        "--ttl",
        "3s",
        "--heartbeat",
        "600ms",
        "--grace",
        "300ms",
    ];
    let job = [
        "bash",
        "-c",
        JOB,
        journal.path(),
        notes,
        left,
        at_term,
        first_of_all,
    ];
    let first = waiting(run(&options, &key, &job)).on(server).spawn();
    let Some(reached) = run_to(&first, case.target(), point) else {
        return (Came::Untraceable, Vec::new());
    };
    let mut second = None;
    let mut came = match reached {
        Reached::End(stops) => Came::Past(stops),
        Reached::Point(frozen) => {
            let call = frozen.call.clone();
            match case {
                Case::Lease | Case::Leftovers | Case::Bereft | Case::Child => {
                    second = Some(until_the_next_job_works(&frozen, &next(&key)));
                    frozen.thaw();
                }
                Case::LeaseForLess => {
                    if !journal.lines().is_empty() {
                        hold(|| of_job(&key).is_empty());
                    }
                    frozen.thaw();
                }
                Case::Watchdog => {
                    hold(|| frozen.was_killed() || first.exit().is_some());
                    frozen.thaw();
                }
                Case::StoppedWatchdog => {
                    frozen.stop();
                    hold(|| frozen.is_gone() || first.exit().is_some());
                    frozen.cont();
                }
            }
            Came::Frozen {
                call,
                exit: String::new(),
            }
        }
    };
    first.wait_exit(LIMIT);
    first.wait_gone(LIMIT);
    if let Some(second) = second {
        second.wait().expect_code(0);
    }
    let out = first.wait();
    if let Came::Frozen { exit, .. } = &mut came {
        *exit = out
            .code
            .map_or("signal".to_owned(), |code| code.to_string());
    }
    let mut violations = judge::violations(&key, &journal, &out);
    // Unless the machine is so busy that the database does not answer in time.
    let healthy = !out.stderr.contains("cannot renew");
    if matches!(case, Case::Watchdog | Case::StoppedWatchdog) && healthy && out.code != Some(0) {
        violations.push(format!("a healthy lease did not end as its job did: {out}"));
    }
    (came, violations)
}

/// The next holder's run. Its job says when it works.
fn next(key: &str) -> Lease {
    let options = ["--wait", "1m", "--name", "second", "--ttl", "10s"];
    run(&options, key, &["bash", "-c", "echo works; sleep 0.2"]).on(judge::server())
}

/// Waits until the next job works; but not for ever, for a frozen run may keep its row locked.
fn until_the_next_job_works(frozen: &Frozen, next: &Lease) -> Running {
    let (start, next) = (Instant::now(), next.spawn());
    while !next.stdout().contains("works") && start.elapsed() < 3 * LONG {
        let _ = frozen.was_killed();
        std::thread::sleep(LOOK);
    }
    next
}

fn hold(mut over: impl FnMut() -> bool) {
    let start = Instant::now();
    while !over() && start.elapsed() < LONG {
        std::thread::sleep(LOOK);
    }
}
