//! Every pair of events, in every phase, with every relevant step of time between them, and long random sequences.

use std::time::Duration;

use super::super::{ClaimAnswer, Event, OperationFailure, ReleaseAnswer};
use super::witness::{Starts, Witness};
use super::{GRACE, TTL, alive, at, granted, held_row, renewed};
use crate::clock::BootTime;
use crate::job::{Ended, Foreground, Leftovers, OnLoss, Signal};
use crate::lease::{Loss, Release};
use crate::timing::Wait;

/// Every kind of event, in all variations that are handled differently.
fn events(now: BootTime) -> Vec<Event> {
    let exit = |ended| Event::JobExited(ended, Foreground::Job);
    let mut all = vec![
        exit(Ended::Code(0)),
        exit(Ended::Signal(Signal::INT)),
        Event::JobContinued,
        Event::Leftovers(Leftovers::Empty),
        Event::Leftovers(alive(2)),
        Event::Leftovers(Leftovers::OnlyZombies { reached: true }),
        Event::Leftovers(Leftovers::OnlyZombies { reached: false }),
        Event::Leftovers(Leftovers::Unknown { reached: true }),
        Event::Leftovers(Leftovers::Unknown { reached: false }),
        renewed(now + TTL),
        Event::RenewFailed("no route".to_owned()),
        Event::RenewalInDoubt,
        Event::Lost(Loss::NoRow),
        Event::Lost(Loss::Expired),
        Event::NoHeartbeat("x".to_owned()),
        Event::WatchdogDied,
        Event::Unprotected("no pipe".to_owned()),
        Event::StayedAwake(Signal::TSTP),
        Event::StayedAwake(Signal::TTIN),
        Event::Tick,
    ];
    for signal in [
        Signal::INT,
        Signal::QUIT,
        Signal::TERM,
        Signal::USR1,
        Signal::TSTP,
        Signal::CONT,
    ] {
        all.push(Event::Signal(signal));
    }
    for (signal, foreground) in [
        (Signal::TSTP, Foreground::Job),
        (Signal::TTIN, Foreground::Own),
        (Signal::TTIN, Foreground::Other),
        (Signal::STOP, Foreground::Job),
        (Signal::STOP, Foreground::Other),
    ] {
        all.push(Event::JobStopped(signal, foreground));
    }
    for foreground in [Foreground::Job, Foreground::Own, Foreground::Other] {
        all.push(Event::TerminalWanted(Signal::TTIN, foreground));
    }
    all.extend(answers(now));
    all
}

fn failed(is_transient: bool, is_unknown: bool) -> OperationFailure {
    OperationFailure {
        message: "no route".to_owned(),
        is_transient,
        is_unknown,
        is_scarce: false,
    }
}

fn held(holder: &str) -> ClaimAnswer {
    let row = held_row(holder);
    ClaimAnswer::Held(row, at(0))
}

/// The answers of the database, good and bad.
fn answers(now: BootTime) -> Vec<Event> {
    let mut all: Vec<Event> = [
        ClaimAnswer::Granted(granted(now + TTL)),
        // It was requested more than a heartbeat ago.
        ClaimAnswer::Granted(granted(now + TTL / 2)),
        held("other"),
        held("outer"),
        ClaimAnswer::Failed(failed(true, false)),
        ClaimAnswer::Failed(failed(true, true)),
        ClaimAnswer::Failed(failed(false, false)),
    ]
    .map(Event::Claim)
    .into();
    all.extend(
        [
            ReleaseAnswer::Answered(Release::Released),
            ReleaseAnswer::Answered(Release::AlreadyReleased),
            ReleaseAnswer::Answered(Release::Lost(Loss::NoRow)),
            ReleaseAnswer::Failed(failed(true, false)),
            ReleaseAnswer::Failed(failed(true, true)),
            ReleaseAnswer::Failed(failed(false, false)),
        ]
        .map(Event::Release),
    );
    all
}

/// What a look can find when the run may end.
const ENDS: [Leftovers; 4] = [
    Leftovers::Empty,
    Leftovers::OnlyZombies { reached: true },
    Leftovers::OnlyZombies { reached: false },
    Leftovers::Unknown { reached: true },
];

/// No time, a moment, a grace period, up to the stop, and beyond every limit.
const STEPS: [Duration; 5] = [
    Duration::ZERO,
    Duration::from_millis(3),
    GRACE,
    Duration::from_secs(50),
    Duration::from_secs(900),
];

/// A run in each phase, reached in every way.
fn phases(on_loss: OnLoss) -> Vec<Witness> {
    let exit = || Event::JobExited(Ended::Code(1), Foreground::Other);
    let lost = || Event::Lost(Loss::NoRow);
    let none = || Event::Leftovers(Leftovers::OnlyZombies { reached: true });
    let moment = Duration::from_millis(5);
    let rows: Vec<Vec<(Duration, Event)>> = vec![
        vec![],
        vec![(moment, Event::RenewFailed("x".to_owned()))],
        vec![(moment, Event::JobStopped(Signal::TSTP, Foreground::Job))],
        vec![(moment, lost())],
        vec![(moment, Event::NoHeartbeat("x".to_owned()))],
        vec![(moment, Event::Unprotected("x".to_owned()))],
        vec![(Duration::from_secs(50), Event::Tick)],
        vec![(moment, lost()), (GRACE, Event::Tick)],
        vec![(moment, lost()), (moment, Event::Signal(Signal::INT))],
        vec![(moment, exit())],
        vec![(moment, lost()), (moment, exit())],
        vec![(moment, exit()), (moment, Event::Leftovers(alive(1)))],
        vec![
            (moment, exit()),
            (moment, Event::Leftovers(alive(1))),
            (moment, lost()),
        ],
        vec![
            (moment, exit()),
            (moment, Event::Leftovers(alive(1))),
            (GRACE, Event::Tick),
        ],
        vec![(moment, exit()), (moment, none())],
        vec![(moment, exit()), (moment, none()), (moment, Event::Tick)],
        vec![
            (moment, exit()),
            (moment, none()),
            (moment, Event::Tick),
            (moment, none()),
        ],
        vec![
            (moment, exit()),
            (moment, Event::Leftovers(Leftovers::Empty)),
        ],
    ];
    let mut witnesses: Vec<Witness> = rows
        .into_iter()
        .map(|row| Witness::running(on_loss).fed(row))
        .collect();
    witnesses.extend(without_a_job(on_loss));
    witnesses
}

/// A run before its job has started, or after its end, reached in every way.
fn without_a_job(on_loss: OnLoss) -> Vec<Witness> {
    let moment = Duration::from_millis(5);
    let ask = || (moment, Event::Tick);
    let claim = |answer| (moment, Event::Claim(answer));
    let late = || claim(ClaimAnswer::Granted(granted(at(0) + TTL / 2)));
    let end = || {
        let exit = Event::JobExited(Ended::Code(1), Foreground::Other);
        [(moment, exit), (moment, Event::Leftovers(Leftovers::Empty))]
    };
    let release = |answer| (moment, Event::Release(answer));
    let mut all = Vec::new();
    for wait in [
        None,
        Some(Wait::For(Duration::from_secs(30))),
        Some(Wait::Forever),
    ] {
        let fresh = || Witness::new(on_loss, Starts::Works, wait);
        all.push(fresh());
        all.push(fresh().fed([ask()]));
        all.push(fresh().fed([ask(), (moment, Event::Signal(Signal::TERM))]));
        all.push(fresh().fed([ask(), claim(held("other"))]));
        all.push(fresh().fed([ask(), claim(ClaimAnswer::Failed(failed(true, true)))]));
        all.push(fresh().fed([ask(), late()]));
    }
    for starts in [
        Starts::HasNoWatchdog,
        Starts::FindsNoCommand,
        Starts::ComesTooLate,
    ] {
        let grant = claim(ClaimAnswer::Granted(granted(at(0) + TTL)));
        all.push(Witness::new(on_loss, starts, None).fed([ask(), grant]));
    }
    let ended = || Witness::running(on_loss).fed(end());
    all.push(ended());
    all.push(ended().fed([release(ReleaseAnswer::Failed(failed(true, false)))]));
    all.push(ended().fed([release(ReleaseAnswer::Failed(failed(true, true)))]));
    all.push(ended().fed([(moment, Event::Signal(Signal::TERM))]));
    all
}

#[test]
fn every_pair_of_events_in_every_phase_keeps_every_rule() {
    for on_loss in [OnLoss::Stop, OnLoss::Continue] {
        for phase in phases(on_loss) {
            for first_step in STEPS {
                for first in events(phase.now + first_step) {
                    let mut one = phase.clone();
                    if !one.feed(first_step, first) {
                        continue;
                    }
                    for second_step in STEPS {
                        for second in events(one.now + second_step) {
                            let mut two = one.clone();
                            if two.feed(second_step, second) {
                                two.run_to_the_end(Leftovers::Empty);
                            }
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn long_sequences_of_events_keep_every_rule() {
    let mut random = fastrand::Rng::with_seed(7);
    for round in 0..20_000_usize {
        let on_loss = if round % 4 == 0 {
            OnLoss::Continue
        } else {
            OnLoss::Stop
        };
        let mut witness = match round % 3 {
            0 => Witness::running(on_loss),
            1 => Witness::new(on_loss, Starts::Works, None),
            _ => Witness::new(on_loss, Starts::Works, Some(Wait::Forever)),
        };
        // Sometimes the process is stopped before it sends the watchdog its order.
        if random.usize(..4) == 0 {
            witness.told_after = STEPS[random.usize(..STEPS.len())];
        }
        for _ in 0..random.usize(1..20) {
            // Most steps are short, so that a sequence gets through more than one phase.
            let step = STEPS[random.usize(..STEPS.len()).min(random.usize(..STEPS.len()))];
            let all = events(witness.now + step);
            let event = all[random.usize(..all.len())].clone();
            witness.feed(step, event);
        }
        witness.run_to_the_end(ENDS[round % ENDS.len()]);
    }
}
