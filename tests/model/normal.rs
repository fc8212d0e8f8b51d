//! Which states are the same: what makes the model finite.

use crate::protocol::{FINE, Faults, Holder, JUMP, Name, Protocol, State, TTL, Variant};
use crate::protocol::{Names, Phase};
use crate::steps::number;

impl<const N: usize> State<N> {
    /// Client `slot` takes a new name; of its former ones, only one that a request on its way still carries matters.
    pub(crate) fn rename(&mut self, slot: usize) {
        let slot_number = number(slot);
        let client = &mut self.clients[slot];
        let left_behind = client
            .late
            .as_mut()
            .map(|request| std::mem::replace(&mut request.name, Name::Earlier));
        for row in [&mut self.row, &mut self.copy].into_iter().flatten() {
            if let Holder::Client(owner, name) = row.holder
                && owner == slot_number
            {
                row.holder = if left_behind == Some(name) {
                    Holder::Client(owner, Name::Earlier)
                } else {
                    Holder::Gone
                };
            }
        }
    }
}

impl<const N: usize> Protocol<N> {
    /// How many ticks the clock can still be set back.
    fn ticks_within_reach(&self, faults: Faults) -> i16 {
        i16::from(self.jumps_back - faults.back) * JUMP
            + i16::from(self.failovers - faults.failovers)
    }

    /// How many microseconds that is: fences that lie further back are compared with each other, never with the clock.
    pub(crate) fn micros_within_reach(&self, faults: Faults) -> i16 {
        let early = if self.variant == Variant::FenceBeforeLock {
            TTL
        } else {
            0
        };
        (self.ticks_within_reach(faults) + early) * FINE
    }

    /// Forgets what no longer makes a difference.
    pub(crate) fn normal(&self, mut state: State<N>) -> State<N> {
        let over = -self.ticks_within_reach(state.faults);
        state.down_for = state.down_for.max(0);
        for row in [&mut state.row, &mut state.copy].into_iter().flatten() {
            row.expires_in = row.expires_in.max(over);
        }
        if state.faults.failovers == self.failovers {
            state.copy = None;
        }
        for slot in 0..N {
            let client = &mut state.clients[slot];
            if let Phase::Running { deadline_in, .. } = &mut client.phase {
                *deadline_in = (*deadline_in).max(0);
            }
            let call = client.call.as_mut().map(|(request, _)| request);
            for request in [call, client.late.as_mut()].into_iter().flatten() {
                request.sent_ago = request.sent_ago.min(TTL);
            }
            if self.names == Names::Fresh {
                let carried = client.late.map(|request| request.name);
                let gone = Holder::Client(number(slot), Name::Earlier);
                for row in [&mut state.row, &mut state.copy].into_iter().flatten() {
                    if row.holder == gone && carried != Some(Name::Earlier) {
                        row.holder = Holder::Gone;
                    }
                }
            }
        }
        self.rank(&mut state);
        state
    }

    /// Serials, and fences out of the clock's reach, become ranks.
    fn rank(&self, state: &mut State<N>) {
        let reach = -self.micros_within_reach(state.faults);
        let mut serials = Ranks::new();
        let mut fences = Ranks::new();
        state.each_term(|term| {
            serials.add(term.serial);
            if term.fence < reach {
                fences.add(term.fence);
            }
        });
        let counts = self.counts();
        state.each_term(|term| {
            term.serial = -serials.of(term.serial);
            if term.fence < reach && !counts {
                term.fence = reach - 1 - fences.of(term.fence);
            }
        });
    }

    /// The clients are alike: of states that differ only in who is who, the one that comes first.
    pub(crate) fn sorted(state: &State<N>) -> State<N> {
        let mut order: [usize; N] = std::array::from_fn(|slot| slot);
        order.sort_by(|a, b| state.clients[*a].cmp(&state.clients[*b]));
        let mut after = *state;
        after.clients = order.map(|slot| state.clients[slot]);
        for row in [&mut after.row, &mut after.copy].into_iter().flatten() {
            if let Holder::Client(owner, name) = row.holder {
                let place = order.iter().position(|slot| number(*slot) == owner);
                row.holder = Holder::Client(number(place.expect("a client")), name);
            }
        }
        after
    }
}

/// The few distinct numbers of a state, in descending order.
struct Ranks {
    values: [i16; 24],
    len: usize,
}

impl Ranks {
    fn new() -> Self {
        Self {
            values: [0; 24],
            len: 0,
        }
    }

    fn add(&mut self, value: i16) {
        let mut at = 0;
        while at < self.len && self.values[at] > value {
            at += 1;
        }
        if at < self.len && self.values[at] == value {
            return;
        }
        self.values.copy_within(at..self.len, at + 1);
        self.values[at] = value;
        self.len += 1;
    }

    fn of(&self, value: i16) -> i16 {
        let mut at = 0;
        while self.values[at] != value {
            at += 1;
        }
        at as i16
    }
}
