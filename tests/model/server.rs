//! The server: one statement at a time.

use crate::protocol::{
    Action, Answer, FINE, Holder, Names, Protocol, Request, Row, State, TTL, Term, Variant, Verb,
    Wrong,
};
use crate::steps::{Visit, number};

impl<const N: usize> Protocol<N> {
    /// The server carries out what one client has sent.
    pub(crate) fn server(&self, state: &State<N>, slot: usize, visit: Visit<'_, N>) {
        if state.down_for > 0 {
            return;
        }
        if let Some((request, None)) = state.clients[slot].call {
            let mut after = *state;
            let answer = self.carry_out(&mut after, slot, request);
            // Fences may have become older meanwhile, and the request with them.
            if let Some((_, empty)) = &mut after.clients[slot].call {
                *empty = Some(answer);
            }
            visit(Action::ServerCarriesOut(slot), after);
        }
        if let Some(request) = state.clients[slot].late {
            let mut after = *state;
            self.carry_out(&mut after, slot, request);
            after.clients[slot].late = None;
            visit(Action::ServerCarriesOutGivenUp(slot), after);
        }
    }

    /// One statement: atomic, because the row is locked and the isolation level READ COMMITTED.
    fn carry_out(&self, state: &mut State<N>, slot: usize, request: Request) -> Answer {
        let holder = match self.names {
            Names::Fresh | Names::Fixed => Holder::Client(number(slot), request.name),
            Names::Shared => Holder::Shared,
        };
        let matches = |row: &Row, term: Term| row.holder == holder && row.term.fence == term.fence;
        let row = state.row;
        match request.verb {
            Verb::Claim => match row {
                Some(row) if row.expires_in > 0 => {
                    if row.holder != holder || holder == Holder::Shared {
                        return Answer::Held;
                    }
                    state.row = Some(Row {
                        expires_in: TTL,
                        ..row
                    });
                    Answer::Granted(row.term)
                }
                _ => Answer::Granted(self.grant(state, holder, request.sent_ago)),
            },
            Verb::Renew(term) => match row {
                Some(row)
                    if row.expires_in > 0
                        && (matches(&row, term)
                            || row.holder == holder
                                && self.variant == Variant::RenewalWithoutFence) =>
                {
                    state.row = Some(Row {
                        expires_in: TTL,
                        ..row
                    });
                    Answer::Renewed
                }
                _ => Answer::Lost,
            },
            Verb::Release(term) => match row {
                Some(row) if matches(&row, term) => {
                    let expires_in = row.expires_in.min(0);
                    state.row = (!self.counts()).then_some(Row {
                        holder: Holder::Nobody,
                        expires_in,
                        ..row
                    });
                    Answer::Released
                }
                _ => Answer::Lost,
            },
        }
    }

    /// The lease changes hands.
    fn grant(&self, state: &mut State<N>, holder: Holder, sent_ago: i16) -> Term {
        let clock = match self.variant {
            Variant::FenceBeforeLock if state.row.is_none() => -sent_ago * FINE,
            Variant::CounterFromOne => 1,
            Variant::Lease
            | Variant::RenewalWithoutFence
            | Variant::DeadlineFromAnswer
            | Variant::FenceBeforeLock
            | Variant::ResourceWithoutCheck => 0,
        };
        let fence = state.row.map_or(clock, |row| clock.max(row.term.fence + 1));
        if fence <= state.latest.fence {
            state.wrong = Some(Wrong::FenceFell);
        }
        state.each_term(|term| term.serial -= 1);
        state.latest = Term {
            fence: fence.max(state.latest.fence),
            serial: 0,
        };
        state.row = Some(Row {
            holder,
            term: Term { fence, serial: 0 },
            expires_in: TTL,
        });
        if !self.counts() {
            state.clock_passes(1);
        }
        state.row.expect("just granted").term
    }
}
