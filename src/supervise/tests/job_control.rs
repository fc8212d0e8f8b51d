//! Signals, stops and the terminal: one rule, one test.

use super::super::{Action, Event, Outcome};
use super::Drive;
use crate::job::{Ended, Foreground, Signal};
use crate::lease::Loss;

#[test]
fn every_signal_is_passed_on_once_and_is_the_jobs_affair() {
    let mut run = Drive::new();
    for signal in [
        Signal::INT,
        Signal::INT,
        Signal::TERM,
        Signal::TERM,
        Signal::HUP,
        Signal::USR1,
        Signal::TSTP,
    ] {
        assert_eq!(run.at(1, Event::Signal(signal)), [Action::Signal(signal)]);
    }
    assert_eq!(
        run.at(1, Event::Signal(Signal::CONT)),
        [Action::GiveTerminal, Action::Signal(Signal::CONT)]
    );
}

#[test]
fn a_stopped_job_stops_lease_if_a_shell_must_see_it() {
    let suspend = |signal, whole_group| {
        vec![
            Action::TakeTerminal {
                restore_modes: false,
            },
            Action::StopSelf {
                signal,
                whole_group,
            },
        ]
    };
    for (signal, foreground, expected) in [
        (Signal::TSTP, Foreground::Job, suspend(Signal::TSTP, true)),
        (Signal::TSTP, Foreground::Own, suspend(Signal::TSTP, false)),
        (
            Signal::TSTP,
            Foreground::Other,
            suspend(Signal::TSTP, false),
        ),
        (Signal::TTIN, Foreground::Other, suspend(Signal::TTIN, true)),
        (Signal::STOP, Foreground::Job, suspend(Signal::TSTP, true)),
        (Signal::STOP, Foreground::Other, vec![]),
        (
            Signal::TTIN,
            Foreground::Own,
            vec![Action::GiveTerminal, Action::Signal(Signal::CONT)],
        ),
    ] {
        assert_eq!(
            Drive::new().at(1, Event::JobStopped(signal, foreground)),
            expected,
            "{signal} {foreground:?}"
        );
    }
    assert_eq!(
        Drive::new().at(1, Event::StayedAwake(Signal::TSTP)),
        [Action::GiveTerminal, Action::Signal(Signal::CONT)]
    );
    assert_eq!(
        Drive::new().at(1, Event::StayedAwake(Signal::TTIN)),
        [
            Action::GiveTerminal,
            Action::Signal(Signal::HUP),
            Action::Signal(Signal::CONT)
        ]
    );
}

#[test]
fn a_neighbour_that_reads_the_terminal_gets_it_until_the_job_wants_it() {
    let mut run = Drive::new();
    assert_eq!(
        run.at(1, Event::TerminalWanted(Signal::TTIN, Foreground::Job)),
        [
            Action::TakeTerminal {
                restore_modes: false
            },
            Action::WakeNeighbours
        ]
    );
    // Our own CONT is not passed on. A CONT from a shell's `fg` does not move the terminal.
    assert_eq!(run.at(1, Event::Signal(Signal::CONT)), []);
    assert_eq!(
        run.at(2, Event::Signal(Signal::CONT)),
        [Action::Signal(Signal::CONT)]
    );
    assert_eq!(
        run.at(3, Event::JobStopped(Signal::TTIN, Foreground::Own)),
        [Action::GiveTerminal, Action::Signal(Signal::CONT)]
    );
    assert_eq!(
        run.at(4, Event::Signal(Signal::CONT)),
        [Action::GiveTerminal, Action::Signal(Signal::CONT)]
    );
    assert_eq!(
        run.at(5, Event::TerminalWanted(Signal::TTIN, Foreground::Own)),
        []
    );
}

#[test]
fn a_stopped_job_is_continued_to_act_on_its_term() {
    let mut run = Drive::new();
    run.at(1, Event::JobStopped(Signal::STOP, Foreground::Other));
    assert_eq!(
        run.at(2, Event::Signal(Signal::TERM)),
        [Action::Signal(Signal::TERM), Action::Signal(Signal::CONT)]
    );
    run.at(3, Event::JobContinued);
    assert_eq!(
        run.at(4, Event::Signal(Signal::TERM)),
        [Action::Signal(Signal::TERM)]
    );
}

#[test]
fn a_job_that_is_stopped_while_it_should_end_is_continued() {
    let mut run = Drive::new();
    run.at(5, Event::Lost(Loss::NoRow));
    assert_eq!(
        run.at(6, Event::JobStopped(Signal::TSTP, Foreground::Job)),
        [Action::Signal(Signal::CONT)]
    );
}

#[test]
fn a_ctrl_c_that_only_the_job_saw_is_passed_up() {
    let dies = Event::JobExited(Ended::Signal(Signal::INT), Foreground::Job);
    let whole = |run: &mut Drive, event| {
        run.at(1, event);
        let Outcome::AsJob { whole_group, .. } = run.end(1, true) else {
            panic!("not as the job ended");
        };
        whole_group
    };
    assert!(whole(&mut Drive::new(), dies.clone()));
    // A signal that was sent to lease alone, or to a job in the background, is not sent to the group of lease.
    let mut told = Drive::new();
    told.at(1, Event::Signal(Signal::INT));
    assert!(!whole(&mut told, dies));
    let background = Event::JobExited(Ended::Signal(Signal::INT), Foreground::Other);
    assert!(!whole(&mut Drive::new(), background));
    let killed = Event::JobExited(Ended::Signal(Signal::KILL), Foreground::Job);
    assert!(!whole(&mut Drive::new(), killed));
}
