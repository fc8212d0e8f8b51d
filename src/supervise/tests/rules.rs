//! The lease of a running job, and the job's end: one test for each rule.

use super::super::{Action, Event, Outcome, Reason, Report, WatchdogOrder};
use super::{Drive, GRACE, at, renewed};
use crate::job::{Ended, Foreground, Signal};
use crate::lease::Loss;

pub(super) const ENDED: Event = Event::JobExited(Ended::Code(0), Foreground::Other);

pub(super) fn as_job(code: u8) -> Outcome {
    Outcome::AsJob {
        ended: Ended::Code(code),
        whole_group: false,
    }
}

pub(super) fn stop(kill_at: u64) -> Vec<Action> {
    vec![
        Action::TellWatchdog(WatchdogOrder::KillAt(at(kill_at))),
        Action::Signal(Signal::TERM),
        Action::Signal(Signal::CONT),
    ]
}

pub(super) fn stop_and(kill_at: u64, report: Report) -> Vec<Action> {
    let mut actions = stop(kill_at);
    actions.push(Action::Report(report));
    actions
}

pub(super) fn killed() -> Vec<Action> {
    let (left, forking) = (None, false);
    vec![
        Action::Signal(Signal::KILL),
        Action::Report(Report::Killed { left, forking }),
    ]
}

#[test]
fn the_lease_is_released_when_the_job_is_reaped_and_its_group_is_empty() {
    let mut run = Drive::new();
    assert_eq!(
        run.at(1, Event::JobExited(Ended::Code(7), Foreground::Other)),
        [
            Action::TakeTerminal {
                restore_modes: false
            },
            Action::LookAtLeftovers
        ]
    );
    assert_eq!(run.end(1, true), as_job(7));
}

#[test]
fn a_lost_lease_stops_the_job_and_is_never_released() {
    let mut run = Drive::new();
    let lost = Report::Lost(Reason::Over(Loss::NoRow));
    assert_eq!(run.at(5, Event::Lost(Loss::NoRow)), stop_and(15, lost));
    assert_eq!(run.supervisor.next_wakeup(), Some(at(15)));
    assert_eq!(run.at(14, Event::Tick), []);
    assert_eq!(run.at(15, Event::Tick), killed());
    run.at(15, ENDED);
    assert_eq!(run.end(15, false), Outcome::Lost);
}

#[test]
fn a_lease_that_is_not_renewed_in_time_is_lost_a_grace_before_the_deadline() {
    let mut run = Drive::new();
    assert_eq!(run.supervisor.next_wakeup(), Some(at(50)));
    assert_eq!(run.at(49, Event::Tick), []);
    run.at(49, Event::RenewFailed("no route".to_owned()));
    let reason = Reason::NotRenewed(Some("no route".to_owned()));
    assert_eq!(run.at(50, Event::Tick), stop_and(60, Report::Lost(reason)));
    assert_eq!(run.at(60, Event::Tick), killed());
}

#[test]
fn a_renewal_moves_the_deadline_and_tells_the_watchdog() {
    let mut run = Drive::new();
    assert_eq!(
        run.at(20, renewed(at(80))),
        [Action::TellWatchdog(WatchdogOrder::Deadline(at(80)))]
    );
    assert_eq!(run.at(69, Event::Tick), []);
    assert_eq!(run.at(70, Event::Tick)[..3], stop(80));
}

#[test]
fn a_renewal_that_is_seen_after_the_time_to_stop_comes_too_late() {
    let mut run = Drive::new();
    let lost = Report::Lost(Reason::NotRenewed(None));
    assert_eq!(run.at(55, renewed(at(100))), stop_and(60, lost));
    run.at(56, ENDED);
    assert_eq!(run.end(56, false), Outcome::Lost);
}

#[test]
fn a_renewal_counts_once_the_watchdog_got_it_in_time() {
    // By the old deadline, it begins to stop the job at 50, and no later order can change that.
    let mut run = Drive::new();
    let told = |run: &mut Drive, seconds, deadline| {
        run.supervisor
            .handle(at(seconds), Event::WatchdogTold(at(deadline)))
    };
    run.supervisor.handle(at(48), renewed(at(100)));
    assert_eq!(run.supervisor.next_wakeup(), Some(at(50)));
    assert_eq!(told(&mut run, 49, 100), []);
    assert_eq!(run.supervisor.next_wakeup(), Some(at(90)));
    run.supervisor.handle(at(89), renewed(at(140)));
    let lost = Report::Lost(Reason::NotRenewed(None));
    assert_eq!(told(&mut run, 91, 140), stop_and(100, lost));
    run.at(92, ENDED);
    assert_eq!(run.end(92, false), Outcome::Lost);
}

#[test]
fn a_watchdog_that_dies_before_it_got_a_renewal_is_replaced_by_one_that_knows_it() {
    let mut run = Drive::new();
    run.supervisor.handle(at(20), renewed(at(80)));
    let answer = run.at(21, Event::WatchdogDied);
    assert_eq!(
        answer[0],
        Action::ReplaceWatchdog(WatchdogOrder::Deadline(at(80)))
    );
    assert_eq!(run.supervisor.next_wakeup(), Some(at(70)));
}

#[test]
fn a_resumed_lease_finds_its_job_dead_and_says_that_the_lease_is_lost() {
    let mut run = Drive::new();
    let answer = run.at(
        300,
        Event::JobExited(Ended::Signal(Signal::KILL), Foreground::Other),
    );
    assert!(answer.contains(&Action::Report(Report::Lost(Reason::NotRenewed(None)))));
    // If the job had to be killed, the watchdog did it.
    let is_kill = |action: &Action| matches!(action, Action::Report(Report::Killed { .. }));
    assert!(!answer.iter().any(is_kill));
    assert_eq!(run.end(300, false), Outcome::Lost);
}

#[test]
fn a_suspended_job_past_its_deadline_is_not_continued_as_if_nothing_had_happened() {
    let mut run = Drive::new();
    let answer = run.at(300, Event::Signal(Signal::CONT));
    assert_eq!(answer[..3], stop(60));
    assert!(answer.contains(&Action::Signal(Signal::KILL)));
    assert!(!answer.contains(&Action::GiveTerminal));
}

#[test]
fn failing_renewals_are_reported_when_they_begin_and_when_they_end() {
    let mut run = Drive::new();
    let failed = || Event::RenewFailed("connection refused".to_owned());
    assert_eq!(
        run.at(20, failed()),
        [Action::Report(Report::RenewFailing(
            "connection refused".to_owned()
        ))]
    );
    assert_eq!(run.at(22, failed()), []);
    assert_eq!(
        run.at(24, renewed(at(84))),
        [
            Action::TellWatchdog(WatchdogOrder::Deadline(at(84))),
            Action::Report(Report::RenewRecovered)
        ]
    );
    assert_eq!(run.at(40, renewed(at(100))).len(), 1);
}

#[test]
fn a_job_that_may_outlive_its_lease_gets_no_signal_and_the_loss_is_reported_once() {
    let mut run = Drive::running_on();
    assert_eq!(run.supervisor.next_wakeup(), None);
    assert_eq!(run.at(500, Event::Tick), []);
    assert_eq!(
        run.at(500, Event::Lost(Loss::Expired)),
        [Action::Report(Report::LostRunningOn(Reason::Over(
            Loss::Expired
        )))]
    );
    assert_eq!(run.at(501, Event::Lost(Loss::NoRow)), []);
    assert_eq!(run.at(501, Event::RenewFailed("x".to_owned())), []);
    run.at(502, ENDED);
    assert_eq!(run.end(502, false), as_job(0));
}

#[test]
fn int_or_term_cuts_a_stop_short() {
    for signal in [Signal::INT, Signal::TERM] {
        let mut run = Drive::new();
        run.at(5, Event::Lost(Loss::NoRow));
        assert_eq!(
            run.at(6, Event::Signal(Signal::HUP)),
            [Action::Signal(Signal::HUP)]
        );
        assert_eq!(run.at(6, Event::Signal(Signal::TSTP)), []);
        assert_eq!(run.at(6, Event::Signal(signal)), killed());
        assert_eq!(run.at(6, Event::Signal(signal)), []);
    }
}

#[test]
fn a_heartbeat_or_a_watchdog_that_cannot_be_started_stops_the_job_and_releases() {
    for (event, report) in [
        (
            Event::NoHeartbeat("EAGAIN".to_owned()),
            Report::NoHeartbeat("EAGAIN".to_owned()),
        ),
        (
            Event::Unprotected("EAGAIN".to_owned()),
            Report::Unprotected("EAGAIN".to_owned()),
        ),
    ] {
        let mut run = Drive::new();
        assert_eq!(run.at(3, event), stop_and(13, report));
        run.at(4, ENDED);
        assert_eq!(run.end(4, true), Outcome::Failed);
    }
}

#[test]
fn a_dead_watchdog_is_replaced_by_one_that_gets_the_same_order() {
    let mut run = Drive::new();
    assert_eq!(
        run.at(3, Event::WatchdogDied),
        [
            Action::ReplaceWatchdog(WatchdogOrder::Deadline(at(60))),
            Action::Report(Report::WatchdogDied)
        ]
    );
    run.at(5, Event::Lost(Loss::NoRow));
    assert_eq!(
        run.at(6, Event::WatchdogDied)[0],
        Action::ReplaceWatchdog(WatchdogOrder::KillAt(at(15)))
    );
    assert_eq!(Drive::running_on().at(3, Event::WatchdogDied), []);
}

#[test]
fn a_grace_is_never_longer_than_what_is_left_until_the_deadline() {
    let mut run = Drive::new();
    run.at(20, renewed(at(20) + GRACE * 2));
    assert_eq!(run.at(29, Event::Lost(Loss::NoRow))[..3], stop(39));
    let mut run = Drive::new();
    run.at(49, renewed(at(62)));
    assert_eq!(run.at(51, Event::Lost(Loss::NoRow))[..3], stop(61));
}
