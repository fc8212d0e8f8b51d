//! Each rule has a test. Then all rules are checked at once, over every pair of events in every phase.

mod claiming;
mod job_control;
mod leftovers;
mod product;
mod releasing;
mod rules;
mod witness;

use std::time::Duration;

use super::{
    Action, ClaimAnswer, Event, Granted, JobPlan, Outcome, Plan, Purpose, ReleaseAnswer, Report,
    StartAnswer, Supervisor, WatchdogOrder,
};
use crate::clock::BootTime;
use crate::job::{Leftovers, OnLoss};
use crate::lease::{Fence, Grant, Holder, Key, Release, Row, ServerTime, Term};
use crate::timing::{Extension, Ttl, Wait};

const GRACE: Duration = Duration::from_secs(10);
const TTL: Duration = Duration::from_secs(60);
const HEARTBEAT: Duration = Duration::from_secs(20);
const DB_TIMEOUT: Duration = Duration::from_secs(8);

/// Seconds since the beginning of the test.
const fn at(seconds: u64) -> BootTime {
    BootTime::from_nanos((1_000 + seconds) * 1_000_000_000)
}

/// This many live processes, none of them new.
const fn alive(count: usize) -> Leftovers {
    Leftovers::Alive { count, newest: 7 }
}

fn term() -> Term {
    Term {
        key: "k".parse::<Key>().expect("a key"),
        holder: "h".parse::<Holder>().expect("a holder"),
        fence: "7".parse::<Fence>().expect("a fence"),
    }
}

/// A grant or a renewal that is valid until `deadline`, and was requested a ttl earlier.
fn granted(deadline: BootTime) -> Granted {
    Granted {
        grant: Grant {
            term: term(),
            acquired_at: ServerTime::At(0),
            expires_at: ServerTime::At(60_000_000),
            expires_in: TTL,
            is_new: true,
        },
        sent: deadline - TTL,
        took: Duration::ZERO,
        deadline,
    }
}

/// The row of a lease that another holder has for thirty more seconds.
fn held_row(holder: &str) -> Row {
    Row::read(
        ("k".to_owned(), holder.to_owned(), Fence::from_row(9)),
        ServerTime::At(0),
        ServerTime::At(31_000_000),
        ServerTime::At(1_000_000),
    )
}

/// A renewal that is valid until then.
fn renewed(deadline: BootTime) -> Event {
    Event::Renewed(granted(deadline))
}

fn plan(purpose: Purpose, wait: Option<Wait>) -> Plan {
    Plan {
        purpose,
        holder: term().holder,
        holder_is_fresh: true,
        extension: Extension::To(Ttl::new(TTL).expect("a ttl")),
        wait,
        eager: false,
        db_timeout: DB_TIMEOUT,
        outer_holder: Some("outer".to_owned()),
    }
}

fn for_a_job(on_loss: OnLoss) -> Purpose {
    Purpose::Job(JobPlan {
        heartbeat: HEARTBEAT,
        grace: GRACE,
        on_loss,
        hold: Duration::ZERO,
    })
}

/// A run whose job has just been started, under a lease that is valid for a ttl from now on.
fn supervisor(on_loss: OnLoss) -> Supervisor {
    let mut supervisor = Supervisor::new(plan(for_a_job(on_loss), None), at(0));
    for event in [
        Event::Tick,
        Event::Claim(ClaimAnswer::Granted(granted(at(0) + TTL))),
        Event::Start(StartAnswer::Armed),
        Event::Start(StartAnswer::Started),
    ] {
        supervisor.handle(at(0), event);
    }
    supervisor
}

/// The deadline that these actions send to the watchdog.
fn told(actions: &[Action]) -> Option<BootTime> {
    actions.iter().find_map(|action| {
        if let Action::TellWatchdog(WatchdogOrder::Deadline(at))
        | Action::ReplaceWatchdog(WatchdogOrder::Deadline(at)) = action
        {
            Some(*at)
        } else {
            None
        }
    })
}

/// Passes in events and keeps the last actions.
struct Drive {
    supervisor: Supervisor,
}

impl Drive {
    fn new() -> Self {
        Self {
            supervisor: supervisor(OnLoss::Stop),
        }
    }

    fn running_on() -> Self {
        Self {
            supervisor: supervisor(OnLoss::Continue),
        }
    }

    /// The watchdog receives every order at once.
    fn at(&mut self, seconds: u64, event: Event) -> Vec<Action> {
        let mut actions = self.supervisor.handle(at(seconds), event);
        if let Some(deadline) = told(&actions) {
            actions.extend(
                self.supervisor
                    .handle(at(seconds), Event::WatchdogTold(deadline)),
            );
        }
        actions
    }

    /// Nothing of the job is left: checks the actions, lets the release succeed, and returns how the run ends.
    fn end(&mut self, seconds: u64, release: bool) -> Outcome {
        self.end_with(seconds, Leftovers::Empty, release)
    }

    /// As [`Drive::end`], if this is the result of the last look.
    fn end_with(&mut self, seconds: u64, found: Leftovers, release: bool) -> Outcome {
        let mut actions = self.at(seconds, Event::Leftovers(found));
        let helpers = [Action::StopHeartbeat, Action::DismissWatchdog];
        assert_eq!(actions[..2], helpers, "the helpers end first");
        if release {
            assert!(
                matches!(actions[2..], [Action::Release { .. }]),
                "{actions:?}"
            );
            actions = self.at(
                seconds,
                Event::Release(ReleaseAnswer::Answered(Release::Released)),
            );
            assert_eq!(actions[0], Action::Report(Report::Released));
        }
        assert!(self.supervisor.is_done());
        match actions.pop() {
            Some(Action::Finish(outcome)) => outcome,
            other => panic!("no end: {other:?}"),
        }
    }
}
