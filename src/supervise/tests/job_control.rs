//! Signals, stops and the terminal: one rule, one test.

use libc::{SIGCONT, SIGHUP, SIGINT, SIGKILL, SIGSTOP, SIGTERM, SIGTSTP, SIGTTIN, SIGUSR1};

use super::super::{Action, Event, Outcome};
use super::Drive;
use crate::job::{Ended, Foreground};
use crate::lease::Loss;

#[test]
fn every_signal_is_passed_on_once_and_is_the_jobs_affair() {
    let mut run = Drive::new();
    for signal in [SIGINT, SIGINT, SIGTERM, SIGTERM, SIGHUP, SIGUSR1, SIGTSTP] {
        assert_eq!(run.at(1, Event::Signal(signal)), [Action::Signal(signal)]);
    }
    assert_eq!(
        run.at(1, Event::Signal(SIGCONT)),
        [Action::GiveTerminal, Action::Signal(SIGCONT)]
    );
}

#[test]
fn a_stopped_job_stops_lease_where_a_shell_has_to_see_it() {
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
        (SIGTSTP, Foreground::Job, suspend(SIGTSTP, true)),
        (SIGTSTP, Foreground::Own, suspend(SIGTSTP, false)),
        (SIGTSTP, Foreground::Other, suspend(SIGTSTP, false)),
        (SIGTTIN, Foreground::Other, suspend(SIGTTIN, true)),
        (SIGSTOP, Foreground::Job, suspend(SIGTSTP, true)),
        (SIGSTOP, Foreground::Other, vec![]),
        (
            SIGTTIN,
            Foreground::Own,
            vec![Action::GiveTerminal, Action::Signal(SIGCONT)],
        ),
    ] {
        assert_eq!(
            Drive::new().at(1, Event::JobStopped(signal, foreground)),
            expected,
            "{signal} {foreground:?}"
        );
    }
    assert_eq!(
        Drive::new().at(1, Event::StayedAwake(SIGTSTP)),
        [Action::GiveTerminal, Action::Signal(SIGCONT)]
    );
    assert_eq!(
        Drive::new().at(1, Event::StayedAwake(SIGTTIN)),
        [
            Action::GiveTerminal,
            Action::Signal(SIGHUP),
            Action::Signal(SIGCONT)
        ]
    );
}

#[test]
fn a_neighbour_that_reads_the_terminal_gets_it_until_the_job_wants_it() {
    let mut run = Drive::new();
    assert_eq!(
        run.at(1, Event::TerminalWanted(SIGTTIN, Foreground::Job)),
        [
            Action::TakeTerminal {
                restore_modes: false
            },
            Action::WakeNeighbours
        ]
    );
    // The CONT of our own is not passed on, and one of a shell's `fg` leaves the terminal where it is.
    assert_eq!(run.at(1, Event::Signal(SIGCONT)), []);
    assert_eq!(run.at(2, Event::Signal(SIGCONT)), [Action::Signal(SIGCONT)]);
    assert_eq!(
        run.at(3, Event::JobStopped(SIGTTIN, Foreground::Own)),
        [Action::GiveTerminal, Action::Signal(SIGCONT)]
    );
    assert_eq!(
        run.at(4, Event::Signal(SIGCONT)),
        [Action::GiveTerminal, Action::Signal(SIGCONT)]
    );
    assert_eq!(
        run.at(5, Event::TerminalWanted(SIGTTIN, Foreground::Own)),
        []
    );
}

#[test]
fn a_stopped_job_is_continued_to_act_on_its_term() {
    let mut run = Drive::new();
    run.at(1, Event::JobStopped(SIGSTOP, Foreground::Other));
    assert_eq!(
        run.at(2, Event::Signal(SIGTERM)),
        [Action::Signal(SIGTERM), Action::Signal(SIGCONT)]
    );
    run.at(3, Event::JobContinued);
    assert_eq!(run.at(4, Event::Signal(SIGTERM)), [Action::Signal(SIGTERM)]);
}

#[test]
fn a_job_that_is_stopped_while_it_should_end_is_continued() {
    let mut run = Drive::new();
    run.at(5, Event::Lost(Loss::NoRow));
    assert_eq!(
        run.at(6, Event::JobStopped(SIGTSTP, Foreground::Job)),
        [Action::Signal(SIGCONT)]
    );
}

#[test]
fn a_ctrl_c_that_only_the_job_saw_is_passed_up() {
    let dies = Event::JobExited(Ended::Signal(SIGINT), Foreground::Job);
    let whole = |run: &mut Drive, event| {
        run.at(1, event);
        let Outcome::AsJob { whole_group, .. } = run.end(1, true) else {
            panic!("not as the job ended");
        };
        whole_group
    };
    assert!(whole(&mut Drive::new(), dies.clone()));
    // The group of lease has no part in what was sent to lease alone, or to a job in the background.
    let mut told = Drive::new();
    told.at(1, Event::Signal(SIGINT));
    assert!(!whole(&mut told, dies));
    let background = Event::JobExited(Ended::Signal(SIGINT), Foreground::Other);
    assert!(!whole(&mut Drive::new(), background));
    let killed = Event::JobExited(Ended::Signal(SIGKILL), Foreground::Job);
    assert!(!whole(&mut Drive::new(), killed));
}
