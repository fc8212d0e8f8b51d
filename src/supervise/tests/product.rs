//! Every pair of events, in every phase, with every step of time between them that matters; and long random rows.

use std::time::Duration;

use libc::{SIGCONT, SIGINT, SIGQUIT, SIGSTOP, SIGTERM, SIGTSTP, SIGTTIN, SIGUSR1};

use super::super::Event;
use super::witness::Witness;
use super::{GRACE, TTL};
use crate::clock::BootTime;
use crate::job::{Ended, Foreground, OnLoss};
use crate::lease::Loss;

/// Every kind of event, with the variations that are treated differently.
fn events(now: BootTime) -> Vec<Event> {
    let exit = |ended| Event::JobExited(ended, Foreground::Job);
    let mut all = vec![
        exit(Ended::Code(0)),
        exit(Ended::Signal(SIGINT)),
        Event::JobContinued,
        Event::Leftovers(0),
        Event::Leftovers(2),
        Event::Renewed(now + TTL),
        Event::RenewFailed("no route".to_owned()),
        Event::Lost(Loss::NoRow),
        Event::HeartbeatDied,
        Event::WatchdogDied,
        Event::Unprotected("no pipe".to_owned()),
        Event::StayedAwake(SIGTSTP),
        Event::StayedAwake(SIGTTIN),
        Event::Tick,
    ];
    for signal in [SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGTSTP, SIGCONT] {
        all.push(Event::Signal(signal));
    }
    for (signal, foreground) in [
        (SIGTSTP, Foreground::Job),
        (SIGTTIN, Foreground::Own),
        (SIGTTIN, Foreground::Other),
        (SIGSTOP, Foreground::Job),
        (SIGSTOP, Foreground::Other),
    ] {
        all.push(Event::JobStopped(signal, foreground));
    }
    for foreground in [Foreground::Job, Foreground::Own, Foreground::Other] {
        all.push(Event::TerminalWanted(SIGTTIN, foreground));
    }
    all.push(Event::JobContinued);
    all
}

/// Nothing, a moment, a grace, up to the stop, and past everything.
const STEPS: [Duration; 5] = [
    Duration::ZERO,
    Duration::from_millis(3),
    GRACE,
    Duration::from_secs(50),
    Duration::from_secs(900),
];

/// A run in each phase, by each way into it.
fn phases(on_loss: OnLoss) -> Vec<Witness> {
    let exit = || Event::JobExited(Ended::Code(1), Foreground::Other);
    let lost = || Event::Lost(Loss::NoRow);
    let moment = Duration::from_millis(5);
    let rows: Vec<Vec<(Duration, Event)>> = vec![
        vec![],
        vec![(moment, Event::RenewFailed("x".to_owned()))],
        vec![(moment, Event::JobStopped(SIGTSTP, Foreground::Job))],
        vec![(moment, lost())],
        vec![(moment, Event::HeartbeatDied)],
        vec![(moment, Event::Unprotected("x".to_owned()))],
        vec![(Duration::from_secs(50), Event::Tick)],
        vec![(moment, lost()), (GRACE, Event::Tick)],
        vec![(moment, lost()), (moment, Event::Signal(SIGINT))],
        vec![(moment, exit())],
        vec![(moment, lost()), (moment, exit())],
        vec![(moment, exit()), (moment, Event::Leftovers(1))],
        vec![
            (moment, exit()),
            (moment, Event::Leftovers(1)),
            (moment, lost()),
        ],
        vec![
            (moment, exit()),
            (moment, Event::Leftovers(1)),
            (GRACE, Event::Tick),
        ],
        vec![(moment, exit()), (moment, Event::Leftovers(0))],
    ];
    rows.into_iter()
        .map(|row| {
            let mut witness = Witness::new(on_loss);
            for (step, event) in row {
                witness.feed(step, event);
            }
            witness
        })
        .collect()
}

#[test]
fn every_pair_of_events_in_every_phase_keeps_every_rule() {
    for on_loss in [OnLoss::Stop, OnLoss::Continue] {
        for phase in phases(on_loss) {
            for first_step in STEPS {
                for first in events(phase.now + first_step) {
                    let mut one = phase.clone();
                    one.feed(first_step, first);
                    for second_step in STEPS {
                        for second in events(one.now + second_step) {
                            let mut two = one.clone();
                            two.feed(second_step, second);
                            two.run_to_the_end();
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn long_rows_of_events_keep_every_rule() {
    let mut random = fastrand::Rng::with_seed(7);
    for round in 0..20_000 {
        let on_loss = if round % 4 == 0 {
            OnLoss::Continue
        } else {
            OnLoss::Stop
        };
        let mut witness = Witness::new(on_loss);
        for _ in 0..random.usize(1..20) {
            // Mostly short steps, so that a row gets through more than one phase.
            let step = STEPS[random.usize(..STEPS.len()).min(random.usize(..STEPS.len()))];
            let all = events(witness.now + step);
            let event = all[random.usize(..all.len())].clone();
            witness.feed(step, event);
        }
        witness.run_to_the_end();
    }
}
