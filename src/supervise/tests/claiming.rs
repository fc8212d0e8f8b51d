//! One rule, one test: from the first claim to the job.

use std::time::Duration;

use super::super::{
    Action, ClaimAnswer, Event, OperationFailure, Outcome, Purpose, Report, StartAnswer, Supervisor,
};
use super::{DB_TIMEOUT, HEARTBEAT, at, for_a_job, granted, held_row, plan, term};
use crate::clock::BootTime;
use crate::job::{OnLoss, Signal};
use crate::lease::{Loss, Success};
use crate::timing::Wait;

fn claiming(purpose: Purpose, wait: Option<Wait>) -> Supervisor {
    let mut run = Supervisor::new(plan(purpose, wait), at(0));
    assert_eq!(run.handle(at(0), Event::Tick).len(), 1, "the first claim");
    run
}

fn run(wait: Option<Wait>) -> Supervisor {
    claiming(for_a_job(OnLoss::Stop), wait)
}

fn held_by(holder: &str) -> Event {
    let row = held_row(holder);
    Event::Claim(ClaimAnswer::Held(row, at(0)))
}

fn failed(is_transient: bool, is_unknown: bool) -> Event {
    Event::Claim(ClaimAnswer::Failed(OperationFailure {
        message: "no route".to_owned(),
        is_transient,
        is_unknown,
        is_scarce: false,
    }))
}

fn granted_now(now: BootTime) -> Event {
    Event::Claim(ClaimAnswer::Granted(granted(now + Duration::from_secs(60))))
}

fn reports(actions: &[Action]) -> Vec<&Report> {
    let mut reports = Vec::new();
    for action in actions {
        if let Action::Report(report) = action {
            reports.push(report);
        }
    }
    reports
}

fn outcome(actions: &[Action]) -> Option<&Outcome> {
    match actions.last() {
        Some(Action::Finish(outcome)) => Some(outcome),
        _ => None,
    }
}

/// Sends the ticks that are due until an action follows, and returns when that was.
fn next(run: &mut Supervisor) -> (BootTime, Vec<Action>) {
    let at = run.next_wakeup().expect("something is due");
    (at, run.handle(at, Event::Tick))
}

#[test]
fn a_held_lease_is_a_conflict_at_once_or_at_the_end_of_the_wait() {
    let answer = run(None).handle(at(0), held_by("other"));
    assert!(matches!(reports(&answer)[..], [Report::Conflict(..)]));
    assert_eq!(outcome(&answer), Some(&Outcome::Conflict));

    let mut waiter = run(Some(Wait::For(Duration::from_secs(40))));
    let answer = waiter.handle(at(0), held_by("other"));
    assert!(matches!(reports(&answer)[..], [Report::Waiting(_)]));
    loop {
        let (now, answer) = next(&mut waiter);
        assert!(matches!(answer[..], [Action::Claim { .. }]), "{answer:?}");
        assert!(now <= at(40), "not after the wait");
        let answer = waiter.handle(now, held_by("other"));
        if let Some(end) = outcome(&answer) {
            assert_eq!((now, end), (at(40), &Outcome::Conflict));
            break;
        }
        assert_eq!(reports(&answer), Vec::<&Report>::new(), "said once");
    }
}

#[test]
fn a_wait_ends_when_the_job_has_succeeded_elsewhere() {
    let mut run = run(Some(Wait::Forever));
    run.handle(at(1), held_by("other"));
    run.handle(at(5000), Event::Tick);
    let success = Success {
        place: "web-1".to_owned(),
        ago: Duration::from_secs(1),
        due_in: Duration::from_secs(59),
    };
    let not_due = Event::Claim(ClaimAnswer::NotDue(success.clone()));
    let end = run.handle(at(5001), not_due);
    assert_eq!(reports(&end), [&Report::NotDue(success)]);
    assert_eq!(outcome(&end), Some(&Outcome::Conflict));
}

#[test]
fn the_run_that_this_one_is_inside_is_not_waited_for() {
    let mut waiter = run(Some(Wait::Forever));
    let answer = waiter.handle(at(0), held_by("outer"));
    assert_eq!(reports(&answer), [&Report::HeldByOuterRun]);
    assert_eq!(outcome(&answer), Some(&Outcome::Conflict));
}

#[test]
fn a_database_that_fails_at_the_start_is_tried_again_within_the_time_of_one_operation() {
    let mut claim = run(None);
    let mut now = at(0);
    let mut tries = 1;
    let answer = loop {
        let answer = claim.handle(now, failed(true, false));
        if outcome(&answer).is_some() {
            break answer;
        }
        let told = reports(&answer).len();
        assert_eq!(told, usize::from(tries == 1), "said at the first one only");
        let (at_then, answer) = next(&mut claim);
        now = at_then;
        let [Action::Claim { limit, .. }] = answer[..] else {
            panic!("{answer:?}");
        };
        assert!(now + limit <= at(0) + DB_TIMEOUT, "bounded");
        tries += 1;
    };
    assert!(tries > 4, "{tries}");
    assert!(matches!(reports(&answer)[..], [Report::CannotClaim { .. }]));
    assert_eq!(outcome(&answer), Some(&Outcome::Unavailable));
}

#[test]
fn what_cannot_succeed_is_not_tried_again() {
    for wait in [None, Some(Wait::Forever)] {
        let answer = run(wait).handle(at(0), failed(false, false));
        assert_eq!(outcome(&answer), Some(&Outcome::Unavailable));
    }
}

#[test]
fn an_interrupt_ends_a_pause_at_once_and_a_claim_with_its_answer() {
    let mut sleeping = run(Some(Wait::Forever));
    sleeping.handle(at(0), held_by("other"));
    assert_eq!(
        sleeping.handle(at(0), Event::Signal(Signal::TERM)),
        [
            Action::EndWait,
            Action::Finish(Outcome::Interrupted(Signal::TERM))
        ]
    );

    let mut asking = run(Some(Wait::Forever));
    let answer = asking.handle(at(0), Event::Signal(Signal::INT));
    assert_eq!(answer, [Action::InterruptClaim]);
    let answer = asking.handle(at(1), granted_now(at(1)));
    assert!(
        matches!(
            answer[1..],
            [Action::DismissWatchdog, Action::Release { .. }]
        ),
        "the COMMIT had been sent, and nobody wants it: {answer:?}"
    );
}

#[test]
fn an_interrupt_does_not_hide_a_claim_whose_outcome_is_unknown() {
    let mut asking = run(Some(Wait::Forever));
    asking.handle(at(0), failed(true, true));
    let answer = asking.handle(at(0), Event::Signal(Signal::INT));
    assert!(matches!(
        reports(&answer)[..],
        [Report::CannotClaim {
            is_unknown: true,
            ..
        }]
    ));
    assert_eq!(outcome(&answer), Some(&Outcome::Unavailable));
}

#[test]
fn other_signals_do_nothing_to_a_wait_but_a_stop_signal_suspends_it() {
    let mut asking = run(Some(Wait::Forever));
    assert_eq!(asking.handle(at(0), Event::Signal(Signal::USR1)), []);
    let suspend = Action::StopSelf {
        signal: Signal::TSTP,
        whole_group: false,
    };
    assert_eq!(asking.handle(at(0), Event::Signal(Signal::TSTP)), [suspend]);
}

#[test]
fn a_grant_that_comes_late_is_renewed_before_the_job_starts() {
    let mut late = run(None);
    let answer = late.handle(at(25), granted_now(at(0)));
    assert!(matches!(answer[1..], [Action::Renew(..)]), "{answer:?}");
    let renewal = || granted(at(86));
    assert_eq!(
        late.clone().handle(at(26), Event::Renewed(renewal())),
        [Action::ArmWatchdog(at(86))]
    );
    // An answer that comes after the time to stop is useless.
    let answer = late.handle(at(77), Event::Renewed(renewal()));
    assert_eq!(reports(&answer), [&Report::TooSlow]);
    assert!(matches!(answer.last(), Some(Action::Release { .. })));
}

#[test]
fn a_job_starts_under_an_armed_watchdog_and_then_the_heartbeat_does() {
    let mut first = run(None);
    let answer = first.handle(at(0), granted_now(at(0)));
    assert_eq!(answer[1..], [Action::ArmWatchdog(at(60))]);
    assert_eq!(
        first.handle(at(0), Event::Start(StartAnswer::Armed)),
        [Action::StartJob {
            term: term(),
            not_after: at(50),
        }]
    );
    assert_eq!(
        first.handle(at(0), Event::Start(StartAnswer::Started)),
        [start_heartbeat(Duration::ZERO)]
    );
}

fn start_heartbeat(took: Duration) -> Action {
    Action::StartHeartbeat {
        term: term(),
        sent: at(0),
        took,
    }
}

#[test]
fn a_claim_that_took_longer_than_a_heartbeat_is_reported_once_the_job_runs() {
    for (took, told) in [(HEARTBEAT, false), (HEARTBEAT * 2, true)] {
        let mut slow = run(None);
        let mut grant = granted(at(60));
        grant.took = took;
        slow.handle(at(0), Event::Claim(ClaimAnswer::Granted(grant)));
        slow.handle(at(0), Event::Start(StartAnswer::Armed));
        let answer = slow.handle(at(0), Event::Start(StartAnswer::Started));
        assert_eq!(answer[0], start_heartbeat(took));
        let heartbeat = HEARTBEAT;
        let report = Report::SlowClaim { took, heartbeat };
        assert_eq!(reports(&answer).contains(&&report), told, "{answer:?}");
    }
}

#[test]
fn a_job_whose_grant_has_expired_before_its_answer_came_is_not_started() {
    let mut late = run(None);
    late.handle(at(70), granted_now(at(0)));
    let answer = late.handle(at(71), Event::Lost(Loss::Expired));
    assert_eq!(reports(&answer), [&Report::TooSlow]);
    assert_eq!(outcome(&answer), Some(&Outcome::Unavailable));
}

#[test]
fn a_claim_for_a_script_is_renewed_before_it_is_handed_out_if_its_answer_comes_too_late() {
    let late = || {
        let mut late = claiming(Purpose::Claim, None);
        let answer = late.handle(at(60), granted_now(at(0)));
        assert!(matches!(answer[1..], [Action::Renew(..)]), "{answer:?}");
        late
    };
    let renewed = |deadline| Event::Renewed(granted(at(deadline)));
    let answer = late().handle(at(61), renewed(120));
    assert_eq!(answer, [Action::Finish(Outcome::Granted(granted(at(120))))]);

    let answer = late().handle(at(120), renewed(120));
    assert_eq!(reports(&answer), [&Report::TooSlow]);
    assert!(matches!(answer.last(), Some(Action::Release { .. })));

    let answer = late().handle(at(61), Event::Lost(Loss::Expired));
    assert_eq!(reports(&answer), [&Report::TooSlow]);
    assert_eq!(outcome(&answer), Some(&Outcome::Unavailable));

    let answer = late().handle(at(61), Event::Lost(Loss::NoRow));
    assert_eq!(reports(&answer), [&Report::LostBeforeUse(Loss::NoRow)]);
    assert_eq!(outcome(&answer), Some(&Outcome::Lost));
}

#[test]
fn a_lease_that_its_holder_had_before_is_not_released_because_an_answer_was_too_late() {
    let had_before = |deadline| {
        let mut granted = granted(deadline);
        granted.grant.is_new = false;
        granted
    };
    let mut plan = plan(Purpose::Claim, None);
    plan.holder_is_fresh = false;
    let mut late = Supervisor::new(plan, at(0));
    late.handle(at(0), Event::Tick);
    late.handle(
        at(60),
        Event::Claim(ClaimAnswer::Granted(had_before(at(60)))),
    );
    let answer = late.handle(at(120), Event::Renewed(had_before(at(120))));
    assert_eq!(
        answer,
        [
            Action::Report(Report::TooSlow),
            Action::Finish(Outcome::Unavailable)
        ]
    );
}

#[test]
fn a_claim_for_a_script_ends_with_the_grant() {
    let mut claim = claiming(Purpose::Claim, None);
    let answer = claim.handle(at(0), granted_now(at(0)));
    assert!(matches!(
        answer[..],
        [
            Action::Report(Report::Claimed(_)),
            Action::Finish(Outcome::Granted(_))
        ]
    ));
}

#[test]
fn an_eager_waiter_looks_often_until_connections_are_scarce() {
    let mut plan = plan(for_a_job(OnLoss::Stop), Some(Wait::Forever));
    plan.eager = true;
    let mut waiter = Supervisor::new(plan, at(0));
    let asks = |actions: &[Action]| match actions {
        [Action::Claim { eager, .. }] => *eager,
        _ => panic!("{actions:?}"),
    };
    let (mut now, first) = next(&mut waiter);
    assert!(asks(&first));
    for _ in 0..20 {
        waiter.handle(now, held_by("other"));
        let (later, answer) = next(&mut waiter);
        assert!(later.since(now) <= Duration::from_millis(25));
        assert!(asks(&answer));
        now = later;
    }
    let scarce = OperationFailure {
        message: "too many clients".to_owned(),
        is_transient: true,
        is_unknown: false,
        is_scarce: true,
    };
    let answer = waiter.handle(now, Event::Claim(ClaimAnswer::Failed(scarce)));
    let why = "too many clients".to_owned();
    assert_eq!(reports(&answer), [&Report::NotEager(why)]);
    let (now, answer) = next(&mut waiter);
    assert!(!asks(&answer), "it keeps no connection any more");
    waiter.handle(now, held_by("other"));
    let (later, answer) = next(&mut waiter);
    assert!(later.since(now) > Duration::from_millis(50));
    assert!(!asks(&answer));
}
