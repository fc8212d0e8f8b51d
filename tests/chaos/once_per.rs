//! Sixteen replicas that run a job once per period: at most one success in each, and one as soon as it can be.

use std::io::Write as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::support::job::Journal;
use crate::support::pooler::{Mode, Pooler};
use crate::support::{Lease, Server, skip, until_within};

const REPLICAS: usize = 16;
const PERIOD: Duration = Duration::from_secs(3);
/// How many successes are wanted before the test ends.
const SUCCESSES: i64 = 8;

/// Fails, kills its replica, or succeeds. Notes its fence when it succeeds, as its last act.
const JOB: &str = r#"
sleep 0.$((RANDOM % 4))
case $((RANDOM % 4)) in
    0) exit 1 ;;
    1) kill -9 $PPID; sleep 60 ;;
    *) echo "$FENCE" >>"$0" ;;
esac"#;

#[test]
fn a_job_succeeds_at_most_once_in_a_period_and_as_soon_as_it_can() {
    let server = Server::start_plain();
    many_periods(&server, &server.url());
}

#[test]
fn a_job_succeeds_at_most_once_in_a_period_through_a_pooler_too() {
    if !Pooler::is_available() {
        return skip("PgBouncer");
    }
    let server = Server::start_plain();
    let pooler = Pooler::start(&server, Mode::Transaction, 4);
    many_periods(&server, &pooler.url());
}

/// For who looks with --nocapture, and for a failure.
fn report(text: &str) {
    let _ = writeln!(std::io::stderr(), "{text}");
}

fn many_periods(server: &Server, url: &str) {
    Lease::new(["init"]).url(url).output().expect_code(0);
    let seed = fastrand::u64(..);
    report(&format!("seed {seed}"));
    let mut random = fastrand::Rng::with_seed(seed);
    let (journal, over) = (Journal::new(), AtomicBool::new(false));
    let count = |what: &str| -> i64 {
        let sql = format!("SELECT count(*) FROM public.lease_history WHERE {what}");
        server
            .try_psql_in("postgres", &sql)
            .ok()
            .and_then(|count| count.parse().ok())
            .unwrap_or_default()
    };
    let succeeded = "ended = 'released' AND exit_code = 0";
    let failed = "exit_code = 1";
    let killed = "ended = 'expired' OR exit_signal IS NOT NULL";
    std::thread::scope(|scope| {
        for _ in 0..REPLICAS {
            let (mut random, journal, over) = (random.fork(), &journal, &over);
            scope.spawn(move || {
                while !over.load(Ordering::SeqCst) {
                    replica(url, journal, &mut random);
                }
            });
        }
        for wanted in [SUCCESSES / 3, 2 * SUCCESSES / 3, SUCCESSES] {
            until_within(
                "the job has succeeded often",
                Duration::from_secs(180),
                || count(succeeded) >= wanted,
            );
            if wanted < SUCCESSES {
                server.restart();
            }
        }
        // The jobs choose at random. A good draw of a few periods must not end the test before it has tested.
        until_within(
            "a job has failed, and a replica was killed",
            Duration::from_secs(180),
            || count(failed) > 0 && count(killed) > 0,
        );
        over.store(true, Ordering::SeqCst);
    });

    let early = format!(
        "SELECT count(*) FROM (
             SELECT acquired_at - lag(ended_at) OVER (ORDER BY fence) AS gap
               FROM public.lease_history WHERE {succeeded}) AS s
          WHERE gap < interval '{} s'",
        PERIOD.as_secs()
    );
    assert_eq!(server.psql(&early), "0", "a success within the period");
    report(&format!(
        "successes {}, failures {}, killed {}",
        count(succeeded),
        count(failed),
        count(killed)
    ));
    // What a job calls a success is one, unless its lease was lost or its replica killed.
    for fence in journal.lines() {
        let told = format!(
            "SELECT ({succeeded}) OR ended IN ('expired', 'lost') OR exit_signal IS NOT NULL
               FROM public.lease_history WHERE fence = {fence}"
        );
        assert_eq!(server.psql(&told), "t", "fence {fence}");
    }
}

/// One line of a crontab comes round.
fn replica(url: &str, journal: &Journal, random: &mut fastrand::Rng) {
    let period = format!("{}s", PERIOD.as_secs());
    let line = ["run", "-q", "--ttl", "2s", "--once-per", &period, "nightly"];
    let run = Lease::new(line)
        .args(["--", "bash", "-c", JOB, journal.path()])
        .url(url)
        .spawn();
    run.wait_exit(crate::support::LIMIT);
    // The time between two of them, not a wait for something.
    std::thread::sleep(Duration::from_millis(random.u64(200..1500)));
}
