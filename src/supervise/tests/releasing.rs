//! The release at the end of a run: one test for each rule.

use super::super::{
    Action, Event, JobEnd, NotReleased, OperationFailure, Outcome, ReleaseAnswer, Report,
};
use super::{DB_TIMEOUT, Drive, at};
use crate::job::{Ended, Foreground, Leftovers, Signal};
use crate::lease::{Loss, Release};

/// A run whose job has ended with exit code 7, at one second, and whose release is under way.
fn releasing(mut run: Drive) -> Drive {
    run.at(1, Event::JobExited(Ended::Code(7), Foreground::Other));
    let answer = run.at(1, Event::Leftovers(Leftovers::Empty));
    assert!(matches!(answer.last(), Some(Action::Release { .. })));
    run
}

fn answered(answer: Release) -> Event {
    Event::Release(ReleaseAnswer::Answered(answer))
}

fn failed(is_unknown: bool) -> Event {
    Event::Release(ReleaseAnswer::Failed(OperationFailure {
        message: "no route".to_owned(),
        is_transient: true,
        is_unknown,
        is_scarce: false,
    }))
}

const AS_JOB: Outcome = Outcome::AsJob {
    ended: Ended::Code(7),
    whole_group: false,
};

/// Fails once and is retried.
fn failed_once(is_unknown: bool) -> Drive {
    let mut run = releasing(Drive::new());
    assert_eq!(run.at(1, failed(is_unknown)), []);
    let again = run.supervisor.next_wakeup().expect("another try");
    let answer = run.supervisor.handle(again, Event::Tick);
    assert!(matches!(answer[..], [Action::Release { .. }]));
    run
}

#[test]
fn a_lease_that_was_lost_before_the_release_is_reported_whatever_failed_first() {
    let end = JobEnd::Ended(Ended::Code(7));
    for was_applied_to_nothing in [false, true] {
        for (answer, loss) in [
            (Release::AlreadyReleased, Loss::Released),
            (Release::Lost(Loss::NoRow), Loss::NoRow),
        ] {
            let mut run = if was_applied_to_nothing {
                failed_once(false)
            } else {
                releasing(Drive::new())
            };
            assert_eq!(
                run.at(2, answered(answer)),
                [
                    Action::Report(Report::LostBeforeEnd(loss, end)),
                    Action::Finish(Outcome::Lost)
                ]
            );
        }
    }
    let mut run = releasing(Drive::running_on());
    let answer = run.at(2, answered(Release::AlreadyReleased));
    assert_eq!(answer.last(), Some(&Action::Finish(AS_JOB)));
}

#[test]
fn a_try_whose_answer_was_lost_has_released() {
    for answer in [Release::AlreadyReleased, Release::Lost(Loss::NoRow)] {
        let mut run = failed_once(true);
        assert_eq!(
            run.at(2, answered(answer)),
            [Action::Report(Report::Released), Action::Finish(AS_JOB)]
        );
    }
}

#[test]
fn a_release_that_fails_until_its_time_is_up_says_whether_it_may_have_been_applied() {
    for is_unknown in [false, true] {
        let mut run = releasing(Drive::new());
        let mut now = at(1);
        let answer = loop {
            let answer = run.supervisor.handle(now, failed(is_unknown));
            if !answer.is_empty() {
                break answer;
            }
            now = run.supervisor.next_wakeup().expect("another try");
            run.supervisor.handle(now, Event::Tick);
        };
        assert!(now <= at(1) + DB_TIMEOUT, "bounded");
        let [
            Action::Report(Report::NotReleased(NotReleased {
                is_unknown: told, ..
            })),
            _,
        ] = &answer[..]
        else {
            panic!("{answer:?}");
        };
        assert_eq!(*told, is_unknown);
        assert_eq!(answer.last(), Some(&Action::Finish(AS_JOB)));
    }
}

#[test]
fn a_signal_that_asks_to_leave_is_heeded_after_two_seconds() {
    let mut run = releasing(Drive::new());
    assert_eq!(run.at(1, Event::Signal(Signal::TERM)), []);
    assert_eq!(run.supervisor.next_wakeup(), Some(at(3)));
    let answer = run.at(3, Event::Tick);
    let [
        Action::Report(Report::NotReleased(told)),
        Action::Finish(outcome),
    ] = &answer[..]
    else {
        panic!("{answer:?}");
    };
    assert!(told.is_unknown, "a try is under way");
    assert_eq!(*outcome, AS_JOB);
}
