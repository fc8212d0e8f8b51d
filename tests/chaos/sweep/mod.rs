//! A process of a run stands still at each of its system calls in turn, until the next holder's job has begun.
//!
//! Wherever a fact is taken from one look and acted upon later, `lease` may be stopped in between: by a person, a suspend, a
//! machine that swaps. The sweep goes through all of these places. After each one it demands that
//!
//! - the job did nothing outside its lease, by the clock and the rows of the server;
//! - exit code and messages are true;
//! - the row says how it ended;
//! - no process is left.
//!
//! The normal run of the tests takes a sample of the places. This one takes all of them, in about 15 minutes:
//!
//! ```sh
//! LEASE_SWEEP=all tests/sandbox cargo test --test chaos sweep -- --nocapture
//! ```

mod judge;
mod one;

use std::collections::BTreeMap;
use std::io::Write as _;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex};

use self::one::{Came, Case, one};
use crate::support::tracer::Point;
use crate::support::{lock, skip};

/// How many places are held at the same time, by all tests of the sweep together. Most of the time each of them waits
/// for an expiry; with more of them, this machine could not renew the leases of the runs that are not frozen in time.
const LANES: usize = 24;

/// How many places are held now, and news of that.
static HELD: (Mutex<usize>, Condvar) = (Mutex::new(0), Condvar::new());

/// One of the [`LANES`], while it is there.
struct Lane;

impl Lane {
    fn wait_for() -> Self {
        let (held, changed) = &HELD;
        let full = |held: &mut usize| *held >= LANES;
        let mut held = changed.wait_while(lock(held), full).expect("a count");
        *held += 1;
        Self
    }
}

impl Drop for Lane {
    fn drop(&mut self) {
        *lock(&HELD.0) -= 1;
        HELD.1.notify_one();
    }
}

/// All places of a run that is not frozen; `None` if nothing can be traced.
fn places(case: Case) -> Option<Vec<Point>> {
    let (came, violations) = one(case, None);
    assert_eq!(
        violations,
        Vec::<String>::new(),
        "of a run that nobody froze"
    );
    let Came::Past(stops) = came else {
        return None;
    };
    let points = stops.iter().enumerate();
    Some(
        points
            .flat_map(|(thread, stops)| (1..=*stops).map(move |stop| Point::Stop { thread, stop }))
            .collect(),
    )
}

/// Goes through a sample of so many places, evenly spread, or through all of them.
fn sweep(case: Case, sample: usize) {
    sweep_most(case, sample, usize::MAX);
}

/// The same, but never through more than `most` places.
fn sweep_most(case: Case, sample: usize, most: usize) {
    let Some(mut points) = places(case) else {
        return skip("ptrace");
    };
    let all = points.len();
    let is_full = std::env::var_os("LEASE_SWEEP").is_some_and(|which| which == "all");
    let wanted = if is_full { most } else { sample }.min(all);
    points = (0..wanted).map(|at| points[at * all / wanted]).collect();
    let (next, found) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let exits = Mutex::new(BTreeMap::<String, usize>::new());
    std::thread::scope(|scope| {
        for _ in 0..LANES {
            scope.spawn(|| {
                while let Some(point) = points.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let _lane = Lane::wait_for();
                    let (came, violations) = one(case, Some(*point));
                    let (place, exit) = match came {
                        Came::Past(_) => ("never reached".to_owned(), "never reached".to_owned()),
                        Came::Frozen { call, exit } => (call, exit),
                        Came::Untraceable => return,
                    };
                    *lock(&exits).entry(exit).or_default() += 1;
                    lock(&found).extend(
                        violations
                            .into_iter()
                            .map(|what| format!("{point:?}, {place}: {what}")),
                    );
                }
            });
        }
    });
    let (exits, found) = (lock(&exits), lock(&found));
    let _ = writeln!(
        std::io::stderr(),
        "{case:?}: {} of {all} places, by exit code {exits:?}, {} violations",
        points.len(),
        found.len()
    );
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn a_lease_that_is_frozen_anywhere_keeps_its_promises() {
    sweep(Case::Lease, 48);
}

/// A look at what is left reads all of /proc, with thousands of calls, so never all places are taken.
#[test]
fn a_lease_that_is_frozen_while_its_job_has_left_something_keeps_its_promises() {
    sweep_most(Case::Leftovers, 24, 800);
}

#[test]
fn a_lease_that_is_frozen_for_less_than_its_time_reports_that_the_job_was_stopped() {
    sweep(Case::LeaseForLess, 32);
}

#[test]
fn a_child_that_is_frozen_anywhere_before_it_is_the_job_keeps_the_promises() {
    sweep(Case::Child, 16);
}

#[test]
fn a_watchdog_that_is_frozen_anywhere_harms_no_job() {
    sweep(Case::Watchdog, 16);
}

/// The outcome at one place, by exit code; `None` if nothing can be traced.
fn at(case: Case, point: Point) -> Option<String> {
    // A thread of its own, which traces nothing else.
    let _lane = Lane::wait_for();
    let (came, violations) = std::thread::scope(|scope| {
        let one = scope.spawn(|| one(case, Some(point)));
        one.join().expect("a run")
    });
    assert!(
        violations.is_empty(),
        "{point:?}: {}",
        violations.join("\n")
    );
    match came {
        Came::Untraceable => None,
        Came::Past(_) => panic!("{point:?} was never reached"),
        Came::Frozen { exit, .. } => Some(exit),
    }
}

#[test]
fn a_lease_that_is_frozen_as_it_replaces_its_watchdog_leaves_no_job_without_one() {
    // The third process that it forks, after the first watchdog and the job.
    let third = Point::After {
        call: libc::SYS_clone,
        time: 3,
    };
    match at(Case::Bereft, third) {
        Some(exit) => assert_eq!(exit, "76"),
        None => skip("ptrace"),
    }
}

#[test]
fn a_watchdog_that_is_frozen_after_reading_its_pipe_follows_an_order_that_came_meanwhile() {
    std::thread::scope(|scope| {
        // The watchdog hears of its deadline, of the job, and of the first renewal.
        for time in 1..=7 {
            scope.spawn(move || {
                let look = Point::After {
                    call: libc::SYS_read,
                    time,
                };
                if at(Case::Watchdog, look).is_none() {
                    skip("ptrace");
                }
            });
        }
    });
}

#[test]
fn a_watchdog_that_is_stopped_anywhere_is_replaced_without_harm() {
    sweep(Case::StoppedWatchdog, 16);
}
