//! A client: what it sends, what it makes of an answer, and when it gives up.

use crate::protocol::{
    Action, Answer, Client, Name, Names, Phase, Protocol, Request, State, TTL, Variant, Verb,
    Writes,
};
use crate::steps::Visit;

impl<const N: usize> Protocol<N> {
    /// What one client may do next.
    pub(crate) fn client(&self, state: &State<N>, slot: usize, visit: Visit<'_, N>) {
        let client = &state.clients[slot];
        let call = |verb| {
            Some((
                Request {
                    verb,
                    name: Name::Current,
                    sent_ago: 0,
                },
                None,
            ))
        };
        if let Some((request, Some(answer))) = client.call {
            let after = state.with(slot, |client| self.receive(client, request, answer));
            visit(Action::Receive(slot), after);
        }
        if client.call.is_some() {
            let after = state.with(slot, |client| {
                self.give_up(client);
                if client.phase == Phase::Releasing {
                    client.phase = Phase::Idle;
                }
            });
            visit(Action::GiveUp(slot), after);
        }
        match client.phase {
            Phase::Idle => {
                let mut after = *state;
                if self.names == Names::Fresh {
                    after.rename(slot);
                }
                after.clients[slot].phase = Phase::Claiming;
                after.clients[slot].call = call(Verb::Claim);
                visit(Action::SendClaim(slot), after);
            }
            Phase::Claiming if client.call.is_none() => {
                visit(
                    Action::SendClaim(slot),
                    state.with(slot, |client| client.call = call(Verb::Claim)),
                );
                visit(
                    Action::Stop(slot),
                    state.with(slot, |client| client.phase = Phase::Idle),
                );
            }
            Phase::Running { term, .. } => {
                if client.call.is_none() {
                    let after = state.with(slot, |client| client.call = call(Verb::Renew(term)));
                    visit(Action::SendRenewal(slot), after);
                }
                let after = state.with(slot, |client| {
                    self.give_up(client);
                    client.phase = Phase::Releasing;
                    client.call = call(Verb::Release(term));
                });
                visit(Action::EndJobAndSendRelease(slot), after);
                // The watchdog, or a kill from outside: the lease is left to expire.
                let after = state.with(slot, |client| {
                    self.give_up(client);
                    client.phase = Phase::Idle;
                });
                visit(Action::Stop(slot), after);
                if self.writes != Writes::None {
                    let mut after = *state;
                    after.write(term, self.variant != Variant::ResourceWithoutCheck);
                    visit(Action::Write(slot), after);
                }
                if self.writes == Writes::Late && state.late_write.is_none() {
                    visit(
                        Action::SendWrite(slot),
                        State {
                            late_write: Some(term),
                            ..*state
                        },
                    );
                }
            }
            Phase::Claiming | Phase::Releasing => {}
        }
    }

    /// A client stops waiting. What the server has not done by then it will never do, or do later, as the search wants.
    fn give_up(&self, client: &mut Client) {
        if let Some((request, None)) = client.call
            && self.late_requests
        {
            client.late = Some(request);
        }
        client.call = None;
    }

    fn receive(&self, client: &mut Client, request: Request, answer: Answer) {
        client.call = None;
        let sent_ago = if self.variant == Variant::DeadlineFromAnswer {
            0
        } else {
            request.sent_ago
        };
        let good_for = TTL - sent_ago;
        client.phase = match (client.phase, answer) {
            (Phase::Claiming, Answer::Held) => Phase::Claiming,
            // A lease that has all but run out starts no job.
            (Phase::Claiming, Answer::Granted(term)) if good_for > 1 => Phase::Running {
                term,
                deadline_in: good_for,
            },
            (Phase::Running { term, deadline_in }, Answer::Renewed) => Phase::Running {
                term,
                deadline_in: deadline_in.max(good_for),
            },
            (Phase::Idle | Phase::Claiming | Phase::Running { .. } | Phase::Releasing, _) => {
                Phase::Idle
            }
        };
    }
}
