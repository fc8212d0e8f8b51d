//! The protocol of `lease` as a model: every order of events is tried, and the promises hold in each of them.
//!
//! Two or three clients claim, renew, release and run jobs against one server. Requests and answers are delayed and
//! lost; machines freeze, the server's clock jumps, the row is deleted, a replica takes over that missed the last
//! writes. Neither time nor the number of runs is bounded; the number of faults is (see `Protocol`).
//!
//! What is promised:
//! - a job within its deadline is the holder's, and jobs never overlap, as long as the lease is not taken away (deletes
//!   the row, loses a grant in a failover, sets the server's clock ahead);
//! - whatever happens, the fence only grows, and a resource that checks it never takes an older holder's write after a
//!   newer one's. The exception, tested as such: the row is lost *and* the clock was set back.
//!
//! Not in the model: clocks that run at different speeds, a server that forgets what it has committed other than by
//! failing over, and two processes that use one name at the same time in order to share a lease.

mod checker;
mod client;
mod normal;
mod protocol;
mod server;
mod steps;

use std::io::Write as _;
use std::time::Instant;

use checker::{Verdict, search};
use protocol::{Action, Names, Protocol, Variant, Writes};

/// The protocol as it is, with delay and loss as the only trouble. COMMIT is held back until the answer has come, so a
/// request that was given up is never carried out later.
const fn calm<const N: usize>() -> Protocol<N> {
    Protocol {
        variant: Variant::Lease,
        names: Names::Fresh,
        late_requests: false,
        writes: Writes::None,
        pauses: 0,
        jumps_ahead: 0,
        jumps_back: 0,
        deletions: 0,
        failovers: 0,
        exclusive: true,
    }
}

const CALM: Protocol<2> = calm();

/// Jobs may overlap here. Only the resource and the fence must hold.
const ROUGH: Protocol<2> = Protocol {
    exclusive: false,
    writes: Writes::Direct,
    ..CALM
};

const FENCE_FELL: &str = "a fence is not larger than all before it";
const STALE_WRITE: &str = "the resource took an older holder's write after a newer one's";
const NOT_THE_HOLDER: &str = "a job within its deadline is no longer the holder's";

#[track_caller]
fn holds<const N: usize>(protocol: Protocol<N>) {
    let started = Instant::now();
    match search(&protocol) {
        Verdict::Holds { states } => report(&format!("{states} states, {:.1?}", started.elapsed())),
        Verdict::Broken { rule, trace, .. } => panic!("{rule}:\n{trace:#?}"),
    }
}

#[track_caller]
fn breaks<const N: usize>(protocol: Protocol<N>, expected: &str) -> Vec<Action> {
    match search(&protocol) {
        Verdict::Holds { states } => panic!("no fault was found in {states} states: {protocol:?}"),
        Verdict::Broken {
            rule,
            trace,
            states,
        } => {
            report(&format!(
                "{rule}, found in {states} states, in {} steps",
                trace.len()
            ));
            assert_eq!(rule, expected, "{trace:#?}");
            trace
        }
    }
}

/// A line on the real standard error: how much was searched is worth seeing when the tests pass, too.
fn report(text: &str) {
    let thread = std::thread::current();
    let _ = writeln!(
        std::io::stderr(),
        "{}: {text}",
        thread.name().unwrap_or("model")
    );
}

#[test]
fn jobs_never_overlap_whatever_is_delayed_or_lost() {
    holds(CALM);
    holds(calm::<3>());
}

#[test]
fn with_a_new_name_for_every_run_even_requests_that_arrive_late_do_no_harm() {
    holds(Protocol {
        late_requests: true,
        ..CALM
    });
}

#[test]
fn one_name_for_every_run_is_safe_because_commit_is_held_back() {
    holds(Protocol {
        names: Names::Fixed,
        ..CALM
    });
    let trace = breaks(
        Protocol {
            names: Names::Fixed,
            late_requests: true,
            ..CALM
        },
        NOT_THE_HOLDER,
    );
    let late = |action: &Action| matches!(action, Action::ServerCarriesOutGivenUp(_));
    assert!(
        trace.iter().any(late),
        "a release that was given up ends the next run's lease: {trace:?}"
    );
}

#[test]
fn clients_that_share_a_name_exclude_each_other_because_the_fence_is_the_identity() {
    holds(Protocol {
        names: Names::Shared,
        pauses: 2,
        ..CALM
    });
    holds(Protocol {
        names: Names::Shared,
        ..calm::<3>()
    });
}

#[test]
fn a_machine_that_freezes_leaves_no_job_that_trusts_an_old_lease() {
    holds(Protocol { pauses: 2, ..CALM });
    holds(Protocol {
        pauses: 1,
        ..calm::<3>()
    });
}

#[test]
fn a_clock_that_is_set_back_leaves_no_two_jobs() {
    holds(Protocol {
        jumps_back: 1,
        ..CALM
    });
}

#[test]
fn the_resource_is_safe_from_a_frozen_machine_and_from_late_writes() {
    holds(Protocol {
        pauses: 1,
        writes: Writes::Late,
        ..ROUGH
    });
}

#[test]
fn the_resource_is_safe_when_the_clock_jumps_ahead_and_back() {
    holds(Protocol {
        jumps_ahead: 1,
        jumps_back: 1,
        ..ROUGH
    });
}

#[test]
fn the_resource_is_safe_when_the_row_is_deleted() {
    holds(Protocol {
        deletions: 2,
        pauses: 1,
        ..ROUGH
    });
}

#[test]
fn the_resource_is_safe_after_a_failover_or_a_restore_that_lost_writes() {
    holds(Protocol {
        failovers: 1,
        ..ROUGH
    });
}

#[test]
fn the_fence_grows_through_failover_after_failover() {
    holds(Protocol {
        failovers: 2,
        writes: Writes::None,
        ..ROUGH
    });
}

#[test]
fn found_a_resource_that_does_not_check_takes_a_stale_write() {
    breaks(
        Protocol {
            variant: Variant::ResourceWithoutCheck,
            pauses: 1,
            ..ROUGH
        },
        STALE_WRITE,
    );
}

#[test]
fn found_release_by_delete_with_a_counter_from_one_gives_a_fence_twice() {
    breaks(
        Protocol {
            variant: Variant::CounterFromOne,
            ..CALM
        },
        FENCE_FELL,
    );
}

#[test]
fn found_renewal_without_the_fence_confirms_a_lease_that_is_another_holders() {
    let wrong = Protocol {
        variant: Variant::RenewalWithoutFence,
        names: Names::Shared,
        pauses: 1,
        ..CALM
    };
    breaks(wrong, NOT_THE_HOLDER);
}

#[test]
fn found_a_deadline_counted_from_the_answer_outlives_the_lease() {
    breaks(
        Protocol {
            variant: Variant::DeadlineFromAnswer,
            ..CALM
        },
        NOT_THE_HOLDER,
    );
}

#[test]
fn found_a_fence_read_before_the_row_was_locked_is_older_than_one_given_out_meanwhile() {
    breaks(
        Protocol {
            variant: Variant::FenceBeforeLock,
            deletions: 1,
            ..ROUGH
        },
        FENCE_FELL,
    );
}

#[test]
fn the_known_limit_is_a_row_that_is_lost_while_the_clock_is_behind() {
    breaks(
        Protocol {
            deletions: 1,
            jumps_back: 1,
            ..ROUGH
        },
        FENCE_FELL,
    );
}
