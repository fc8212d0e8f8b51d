//! What the job has left in its group, and what proves that nothing of it acts any more: one test for each rule.

use std::time::Duration;

use super::super::{Action, Event, Outcome, Report};
use super::rules::{ENDED, as_job, killed, stop, stop_and};
use super::{Drive, alive, at, renewed, told};
use crate::job::{Leftovers, Signal};
use crate::lease::Loss;

const ZOMBIES: Leftovers = Leftovers::OnlyZombies { reached: true };
const STRANGE_ZOMBIES: Leftovers = Leftovers::OnlyZombies { reached: false };
const UNKNOWN: Leftovers = Leftovers::Unknown { reached: true };
const OUT_OF_REACH: Leftovers = Leftovers::Unknown { reached: false };

fn killed_of(left: Option<usize>, forking: bool) -> Vec<Action> {
    let report = Report::Killed { left, forking };
    vec![Action::Signal(Signal::KILL), Action::Report(report)]
}

fn kill_and_look() -> Vec<Action> {
    vec![Action::Signal(Signal::KILL), Action::LookAtLeftovers]
}

#[test]
fn leftovers_are_counted_stopped_and_waited_for_before_the_release() {
    let mut run = Drive::new();
    run.at(1, ENDED);
    assert_eq!(
        run.at(1, Event::Leftovers(alive(3))),
        stop_and(11, Report::Leftovers(Some(3)))
    );
    assert_eq!(run.at(2, Event::Tick), [Action::LookAtLeftovers]);
    assert_eq!(run.at(2, Event::Leftovers(alive(1))), []);
    let answer = run.at(11, Event::Tick);
    assert_eq!(answer[..2], killed_of(Some(1), false));
    assert_eq!(answer[2..], [Action::LookAtLeftovers]);
    assert_eq!(
        run.at(11, Event::Leftovers(alive(1))),
        [Action::Signal(Signal::KILL)]
    );
    run.at(12, Event::Tick);
    assert_eq!(run.end_with(12, Leftovers::Empty, true), as_job(0));
}

#[test]
fn what_a_stopped_job_leaves_gets_no_second_term() {
    let mut run = Drive::new();
    run.at(5, Event::Lost(Loss::NoRow));
    run.at(6, ENDED);
    assert_eq!(run.at(6, Event::Leftovers(alive(2))), []);
    assert_eq!(run.at(15, Event::Tick)[..2], killed_of(Some(2), false));
}

#[test]
fn leftovers_are_killed_at_the_deadline_at_the_latest() {
    let mut run = Drive::new();
    run.at(49, ENDED);
    run.at(49, Event::Leftovers(alive(1)));
    assert_eq!(
        run.supervisor.next_wakeup().map(|t| t <= at(50)),
        Some(true)
    );
    run.at(50, Event::Tick);
    let answer = run.at(60, Event::Tick);
    assert!(answer.contains(&Action::Signal(Signal::KILL)));
}

#[test]
fn a_renewal_before_the_first_look_is_answered_moves_the_deadline_for_the_watchdog_too() {
    let mut run = Drive::new();
    run.at(49, ENDED);
    let answer = run.at(49, renewed(at(100)));
    assert_eq!(told(&answer), Some(at(100)));
    run.at(49, Event::WatchdogTold(at(100)));
    assert_eq!(
        run.at(70, Event::Leftovers(alive(1))),
        stop_and(80, Report::Leftovers(Some(1)))
    );
}

#[test]
fn a_look_that_finds_no_live_process_ends_nothing_before_the_kill() {
    let mut run = Drive::new();
    run.at(1, ENDED);
    // A process that the look missed gets its TERM. Nothing is reported.
    assert_eq!(run.at(1, Event::Leftovers(ZOMBIES)), stop(11));
    assert_eq!(run.at(2, Event::Tick), [Action::LookAtLeftovers]);
    // The second time, KILL is sent, and a look follows.
    assert_eq!(
        run.at(2, Event::Leftovers(ZOMBIES)),
        [Action::Signal(Signal::KILL)]
    );
    assert_eq!(run.at(3, Event::Tick), [Action::LookAtLeftovers]);
    assert_eq!(run.end_with(3, ZOMBIES, true), as_job(0));
}

#[test]
fn a_group_that_wrongly_looked_empty_gets_its_grace_and_is_reported() {
    let mut run = Drive::new();
    run.at(1, ENDED);
    run.at(1, Event::Leftovers(ZOMBIES));
    run.at(2, Event::Tick);
    assert_eq!(
        run.at(2, Event::Leftovers(alive(1))),
        [Action::Report(Report::Leftovers(Some(1)))]
    );
    run.at(3, Event::Tick);
    assert_eq!(run.at(3, Event::Leftovers(ZOMBIES)), []);
    run.at(4, Event::Tick);
    let newer = Leftovers::Alive {
        count: 2,
        newest: 8,
    };
    assert_eq!(run.at(4, Event::Leftovers(newer)), []);
    assert_eq!(run.at(11, Event::Tick)[..2], killed_of(Some(2), true));
}

#[test]
fn an_answer_to_a_look_from_before_the_kill_proves_nothing() {
    let mut run = Drive::new();
    run.at(5, Event::Lost(Loss::NoRow));
    run.at(14, ENDED);
    // The look was requested at 14, and its answer is handled after the KILL at 15.
    let answer = run.at(15, Event::Leftovers(ZOMBIES));
    assert_eq!(answer[..2], killed());
    assert!(!run.supervisor.is_done());
    assert_eq!(run.at(16, Event::Tick), [Action::LookAtLeftovers]);
    assert_eq!(run.end_with(16, ZOMBIES, false), Outcome::Lost);
}

#[test]
fn a_killed_job_of_which_only_zombies_are_left_ends_its_run_at_the_first_look() {
    let mut run = Drive::new();
    run.at(5, Event::Lost(Loss::NoRow));
    run.at(15, Event::Tick);
    run.at(16, ENDED);
    assert_eq!(run.end_with(16, ZOMBIES, false), Outcome::Lost);
}

#[test]
fn leftovers_that_cannot_be_counted_are_reported_without_a_number_and_get_a_second_after_kill() {
    let mut run = Drive::new();
    run.at(1, ENDED);
    assert_eq!(run.at(1, Event::Leftovers(UNKNOWN)), stop(11));
    run.at(2, Event::Tick);
    assert_eq!(
        run.at(2, Event::Leftovers(UNKNOWN)),
        [Action::Report(Report::Leftovers(None))]
    );
    assert_eq!(run.at(11, Event::Tick)[..2], killed_of(None, false));
    run.at(11, Event::Leftovers(UNKNOWN));
    run.at(11, Event::Tick);
    run.supervisor.handle(
        at(11) + Duration::from_millis(900),
        Event::Leftovers(UNKNOWN),
    );
    assert!(!run.supervisor.is_done());
    run.at(12, Event::Tick);
    assert_eq!(run.end_with(12, UNKNOWN, true), as_job(0));
}

#[test]
fn zombies_out_of_reach_are_watched_for_a_second_and_a_live_process_restarts_it() {
    let mut run = Drive::new();
    run.at(1, ENDED);
    run.at(1, Event::Leftovers(STRANGE_ZOMBIES));
    run.at(2, Event::Tick);
    run.at(2, Event::Leftovers(STRANGE_ZOMBIES));
    for (second, found) in [(3, STRANGE_ZOMBIES), (5, alive(1)), (7, STRANGE_ZOMBIES)] {
        run.at(second, Event::Tick);
        let answer = run.at(second, Event::Leftovers(found));
        assert_eq!(answer[0], Action::Signal(Signal::KILL));
    }
    run.at(8, Event::Tick);
    assert_eq!(run.end_with(8, STRANGE_ZOMBIES, true), as_job(0));
}

#[test]
fn a_process_that_no_signal_reaches_is_waited_for_for_as_long_as_it_lives() {
    let mut run = Drive::running_on();
    run.at(1, ENDED);
    run.at(1, Event::Leftovers(OUT_OF_REACH));
    for second in [20, 2_000, 200_000] {
        run.at(second, Event::Tick);
        let answer = run.at(second, Event::Leftovers(OUT_OF_REACH));
        assert!(!run.supervisor.is_done(), "{answer:?}");
    }
    run.at(300_000, Event::Tick);
    assert_eq!(run.end_with(300_000, Leftovers::Empty, true), as_job(0));
}

#[test]
fn int_or_term_kills_what_is_left_at_once() {
    let mut run = Drive::new();
    run.at(1, ENDED);
    run.at(1, Event::Leftovers(alive(2)));
    assert_eq!(
        run.at(2, Event::Signal(Signal::TERM)),
        [vec![Action::LookAtLeftovers], killed_of(Some(2), false)].concat()
    );
    // That look was requested before the KILL.
    assert_eq!(
        run.at(2, Event::Leftovers(ZOMBIES)),
        [Action::Signal(Signal::KILL)]
    );
    assert_eq!(run.at(3, Event::Tick)[..], kill_and_look()[1..]);
}
