//! The steps of the model: whose turn it may be, and what the surroundings do next.

use crate::checker::Model;
use crate::protocol::{
    Action, Client, FINE, Faults, JUMP, Phase, Protocol, State, TTL, Term, Variant, Wrong,
};

/// Takes a step and the state after it.
pub(crate) type Visit<'a, const N: usize> = &'a mut dyn FnMut(Action, State<N>);

impl<const N: usize> Model for Protocol<N> {
    type State = State<N>;
    type Action = Action;

    fn initial(&self) -> State<N> {
        let client = Client {
            phase: Phase::Idle,
            paused: false,
            call: None,
            late: None,
        };
        // Below everything that the clock can read, or the counter give out.
        let fence = if self.counts() {
            0
        } else {
            -1 - self.micros_within_reach(Faults::default())
        };
        State {
            down_for: 0,
            row: None,
            copy: None,
            clients: [client; N],
            accepted: None,
            late_write: None,
            faults: Faults::default(),
            latest: Term { fence, serial: 0 },
            wrong: None,
        }
    }

    fn steps(&self, state: &State<N>, visit: Visit<'_, N>) {
        let visit: Visit<'_, N> = &mut |action, after| visit(action, self.normal(after));
        self.surroundings(state, visit);
        for slot in 0..N {
            self.server(state, slot, visit);
            let client = &state.clients[slot];
            if client.paused {
                visit(
                    Action::Thaw(slot),
                    state.with(slot, |client| client.paused = false),
                );
                continue;
            }
            if state.faults.pauses < self.pauses && matches!(client.phase, Phase::Running { .. }) {
                let mut after = state.with(slot, |client| client.paused = true);
                after.faults.pauses += 1;
                visit(Action::Pause(slot), after);
            }
            self.client(state, slot, visit);
        }
    }

    fn broken(&self, state: &State<N>) -> Option<&'static str> {
        match state.wrong {
            Some(Wrong::FenceFell) => return Some("a fence is not larger than all before it"),
            Some(Wrong::StaleWrite) => {
                return Some("the resource took an older holder's write after a newer one's");
            }
            None => {}
        }
        let clock_is_monotone = self.jumps_back == 0 && self.failovers == 0;
        if clock_is_monotone && state.row.is_some_and(|row| row.expires_in > TTL) {
            return Some("a holder blocks others for longer than the ttl");
        }
        if !self.exclusive {
            return None;
        }
        let mut jobs = 0;
        for client in &state.clients {
            if let Phase::Running { term, deadline_in } = client.phase {
                jobs += 1;
                if deadline_in > 0 && term.serial != state.latest.serial {
                    return Some("a job within its deadline is no longer the holder's");
                }
            }
        }
        (jobs > 1 && self.pauses == 0).then_some("two jobs run at once")
    }

    fn canonical(&self, state: &State<N>) -> State<N> {
        Self::sorted(state)
    }
}

impl<const N: usize> State<N> {
    /// The resource, which remembers the largest fence that it has seen.
    pub(crate) fn write(&mut self, term: Term, checked: bool) {
        if let Some(newest) = self.accepted {
            if checked && term.fence < newest.fence {
                return;
            }
            if term.serial < newest.serial {
                self.wrong = Some(Wrong::StaleWrite);
            }
        }
        self.accepted = Some(term);
    }
}

impl<const N: usize> Protocol<N> {
    /// Whether fences are counted and not read from the clock.
    pub(crate) fn counts(&self) -> bool {
        self.variant == Variant::CounterFromOne
    }

    /// Time, the server's clock, the operator's hands, and the network's late packets.
    fn surroundings(&self, state: &State<N>, visit: Visit<'_, N>) {
        // The watchdog: no job is left when its deadline comes, unless the whole machine stands still.
        let due = |client: &Client| {
            !client.paused
                && matches!(client.phase, Phase::Running { deadline_in, .. } if deadline_in <= 1)
        };
        if !state.clients.iter().any(due) {
            let mut after = *state;
            self.clock_ticks(&mut after, 1);
            after.down_for -= 1;
            for client in &mut after.clients {
                if let Phase::Running { deadline_in, .. } = &mut client.phase {
                    *deadline_in -= 1;
                }
                let call = client.call.as_mut().map(|(request, _)| request);
                for request in [call, client.late.as_mut()].into_iter().flatten() {
                    request.sent_ago += 1;
                }
            }
            visit(Action::Tick, after);
        }
        let mut fault =
            |has: fn(&mut Faults) -> &mut u8, may: u8, action, change: &dyn Fn(&mut State<N>)| {
                let mut after = *state;
                let count = has(&mut after.faults);
                if *count < may {
                    *count += 1;
                    change(&mut after);
                    visit(action, after);
                }
            };
        fault(
            |f| &mut f.ahead,
            self.jumps_ahead,
            Action::ClockJumpsAhead,
            &|after| {
                self.clock_ticks(after, JUMP);
            },
        );
        fault(
            |f| &mut f.back,
            self.jumps_back,
            Action::ClockJumpsBack,
            &|after| {
                self.clock_ticks(after, -JUMP);
            },
        );
        if state.row.is_some() {
            fault(
                |f| &mut f.deletions,
                self.deletions,
                Action::DeleteRow,
                &|after| after.row = None,
            );
        }
        // The outage is longer than the difference between the two servers' clocks.
        for (skew, outage) in [(-1, 2), (0, 1), (1, 1)] {
            fault(
                |f| &mut f.failovers,
                self.failovers,
                Action::FailOverToCopy,
                &|after| {
                    after.row = after.copy;
                    after.down_for = outage;
                    self.clock_ticks(after, skew);
                },
            );
        }
        if state.faults.failovers < self.failovers && state.copy != state.row {
            visit(
                Action::CopyRow,
                State {
                    copy: state.row,
                    ..*state
                },
            );
        }
        if let Some(term) = state.late_write {
            let mut after = State {
                late_write: None,
                ..*state
            };
            after.write(term, self.variant != Variant::ResourceWithoutCheck);
            visit(Action::LateWriteArrives, after);
        }
    }

    fn clock_ticks(&self, state: &mut State<N>, ticks: i16) {
        state.clock_ticks(ticks, if self.counts() { 0 } else { FINE });
    }
}

/// A client's number as it stands in a row.
pub(crate) fn number(slot: usize) -> u8 {
    u8::try_from(slot).expect("a handful of clients")
}
