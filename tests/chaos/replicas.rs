//! Two replicas, and the one that holds the lease is cut off.

use crate::support::job::{Journal, run};
use crate::support::{Lease, Proxy, key, shared};
use crate::{deaf, nothing_left, ticks, until_it_ticks};

const LANES: usize = 10;
const ROUNDS: usize = 5;

/// Notes the moment of its start.
const SECOND: &str = "echo second $EPOCHREALTIME >>$0";

#[test]
fn the_job_of_a_replica_that_is_cut_off_is_dead_before_the_next_one_starts() {
    std::thread::scope(|scope| {
        for lane in 0..LANES {
            let key = format!("{}-{lane}", key());
            scope.spawn(move || {
                for _ in 0..ROUNDS {
                    one_round(&key);
                }
            });
        }
    });
}

/// Both jobs note the time by one clock, in one file.
fn one_round(key: &str) {
    let (journal, proxy) = (Journal::new(), Proxy::to(shared()));
    let first: Lease = deaf(&["--ttl", "3s", "--name", "first"], key, &journal).url(proxy.url());
    let first = first.spawn();
    until_it_ticks(&journal);
    let second = run(
        &["--wait", "1m", "--name", "second"],
        key,
        &["bash", "-c", SECOND, journal.path()],
    )
    .on(shared())
    .spawn();
    proxy.stall();
    second.wait().expect_code(0);
    let lines = journal.lines();
    let started: f64 = lines
        .iter()
        .find_map(|line| line.strip_prefix("second "))
        .and_then(|at| at.parse().ok())
        .expect("the start of the second job");
    let lived = ticks(&journal).into_iter().fold(0.0, f64::max);
    assert!(lived < started, "{} s of overlap", lived - started);
    let status = first.wait_exit(crate::support::LIMIT);
    assert_eq!(status.code(), Some(76), "{}", first.stderr());
    nothing_left(&first, key);
}
