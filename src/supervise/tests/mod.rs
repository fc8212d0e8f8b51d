//! The rules one by one, and then all of them at once over every pair of events in every phase.

mod job_control;
mod product;
mod rules;
mod witness;

use std::time::Duration;

use super::{Action, Event, Start, Supervisor};
use crate::clock::BootTime;
use crate::job::OnLoss;

const GRACE: Duration = Duration::from_secs(10);
const TTL: Duration = Duration::from_secs(60);

/// Seconds since the beginning of the test.
const fn at(seconds: u64) -> BootTime {
    BootTime::from_nanos((1_000 + seconds) * 1_000_000_000)
}

fn supervisor(on_loss: OnLoss) -> Supervisor {
    Supervisor::new(Start {
        deadline: at(0) + TTL,
        grace: GRACE,
        on_loss,
    })
}

/// Feeds events and keeps the last answer.
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

    fn at(&mut self, seconds: u64, event: Event) -> Vec<Action> {
        self.supervisor.handle(at(seconds), event)
    }

    /// The events, all of them at this time, and the answer to the last one.
    fn all(&mut self, seconds: u64, events: impl IntoIterator<Item = Event>) -> Vec<Action> {
        let mut last = Vec::new();
        for event in events {
            last = self.at(seconds, event);
        }
        last
    }
}
