//! The thread that asks the database what the supervisor wants to know: one request after another.

use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{self, Sender};
use std::thread;
use std::time::Duration;

use super::input::Input;
use crate::clock::BootTime;
use crate::fault::Fault;
use crate::interrupt::Interrupt;
use crate::job::Ended;
use crate::lease::{Claim, Grant, Holder, Key, LeaseState, Renewal, ServerTime, Term};
use crate::record::Said;
use crate::store::{Applied, Failure, Sent, Store};
use crate::supervise::{ClaimAnswer, Event, Granted, OperationFailure, ReleaseAnswer};
use crate::timing::{self, Extension};

/// What the thread works with, for as long as the process lives.
#[derive(Clone)]
pub struct Claimant {
    /// Where the leases are.
    pub store: Store,
    /// What is claimed.
    pub key: Key,
    /// Who claims.
    pub holder: Holder,
    /// How far a claim or a renewal moves the expiry.
    pub extension: Extension,
    /// The claim is granted only if the key has not succeeded for this long.
    pub once_per: Option<Duration>,
}

/// What is asked of the database.
enum Request {
    /// An operation, which is answered with an event.
    Operation(Operation),
    /// Who has evicted the holder of this term. It changes a message, and nothing else.
    WhoEvicted(Term),
}

/// One operation.
pub(super) enum Operation {
    Claim {
        limit: Duration,
        eager: bool,
    },
    Renew(Term, Duration),
    Release {
        term: Term,
        hold: Duration,
        limit: Duration,
        ended: Option<Ended>,
        ours_to: Option<ServerTime>,
    },
}

/// The running thread.
pub(super) struct Database {
    requests: Sender<Request>,
    interrupt: Arc<Interrupt>,
}

impl Database {
    /// Starts it; it answers each request with one input.
    ///
    /// # Errors
    /// When no thread can be made.
    pub(super) fn start(claimant: Claimant, answers: Sender<Input>) -> io::Result<Self> {
        let (requests, queue) = mpsc::channel();
        let interrupt = Arc::new(Interrupt::new());
        let interrupted = Arc::clone(&interrupt);
        thread::Builder::new()
            .name("lease-requests".to_owned())
            .spawn(move || {
                for request in queue {
                    let answer = match request {
                        Request::WhoEvicted(term) => {
                            Input::Evicted(claimant.store.evicted_by(&term))
                        }
                        Request::Operation(operation) => {
                            Input::Answer(claimant.answer(operation, &interrupted))
                        }
                    };
                    // The receiver is dropped only when the process is ending.
                    if answers.send(answer).is_err() {
                        return;
                    }
                }
            })?;
        Ok(Self {
            requests,
            interrupt,
        })
    }

    pub(super) fn ask(&self, operation: Operation) {
        self.send(Request::Operation(operation));
    }

    /// Answered with [`Input::Evicted`], once the operation that is under way is answered.
    pub(super) fn ask_who_evicted(&self, term: Term) {
        self.send(Request::WhoEvicted(term));
    }

    fn send(&self, request: Request) {
        // The thread ends with this value only.
        let _ = self.requests.send(request);
    }

    /// Ends a claim that is under way, unless its COMMIT was sent.
    pub(super) fn interrupt_claim(&self) {
        self.interrupt.raise();
    }
}

impl Claimant {
    fn answer(&self, operation: Operation, interrupt: &Interrupt) -> Event {
        let Self {
            store,
            key,
            holder,
            extension,
            once_per,
        } = self;
        match operation {
            Operation::Claim { limit, eager } => {
                let flag = Some(interrupt.flag());
                let by = BootTime::now() + limit;
                let waiting = eager.then(|| store.clone().looking_out());
                let store = waiting.as_ref().unwrap_or(store);
                if eager && let Some(answer) = self.look_out(limit, flag) {
                    return Event::Claim(answer);
                }
                let limit = by.remaining();
                let answered = match once_per {
                    None => store.claim(key, holder, *extension, limit, flag),
                    Some(period) => {
                        store.claim_if_due(key, holder, *extension, *period, limit, flag)
                    }
                };
                Event::Claim(match answered {
                    Ok(Sent {
                        answer: Claim::Granted(grant),
                        at,
                        took,
                    }) => ClaimAnswer::Granted(self.granted(grant, at, took)),
                    Ok(Sent {
                        answer: Claim::Held(row),
                        at,
                        ..
                    }) => ClaimAnswer::Held(row, at),
                    Ok(Sent {
                        answer: Claim::NotDue(success),
                        ..
                    }) => ClaimAnswer::NotDue(success),
                    Err(failure) => ClaimAnswer::Failed(operation_failure(&failure)),
                })
            }
            Operation::Renew(term, limit) => match store.renew(&term, *extension, limit) {
                Ok(Sent {
                    answer: Renewal::Renewed(grant),
                    at,
                    took,
                }) => Event::Renewed(self.granted(grant, at, took)),
                Ok(Sent {
                    answer: Renewal::Lost(loss),
                    ..
                }) => Event::Lost(loss),
                Err(failure) => Event::RenewFailed(failure.to_string()),
            },
            Operation::Release {
                term,
                hold,
                limit,
                ended,
                ours_to,
            } => {
                let said = Said {
                    ended,
                    ours_to: match ours_to {
                        Some(ServerTime::At(micros)) => Some(micros),
                        Some(ServerTime::Always | ServerTime::Never) | None => None,
                    },
                    ..store.said().clone()
                };
                let store = store.clone().saying(said);
                Event::Release(match store.release(&term, hold, limit) {
                    Ok(answer) => ReleaseAnswer::Answered(answer),
                    Err(failure) => ReleaseAnswer::Failed(operation_failure(&failure)),
                })
            }
        }
    }

    /// Looks whether a claim can be granted. `None` if it may be: only the claim itself decides that.
    fn look_out(&self, limit: Duration, interrupt: Option<&AtomicBool>) -> Option<ClaimAnswer> {
        match self.store.look_out(&self.key, limit, interrupt) {
            Ok(Sent {
                answer: Some(row),
                at,
                ..
            }) => match &row.state {
                LeaseState::Held(holder) if holder == self.holder.as_str() => None,
                LeaseState::Held(_) | LeaseState::Cooling => Some(ClaimAnswer::Held(row, at)),
                LeaseState::Expired(_) | LeaseState::Free => None,
            },
            Ok(_) => None,
            Err(failure) if failure.fault.is_transient() => {
                Some(ClaimAnswer::Failed(operation_failure(&failure)))
            }
            // The claim has the better message, or creates the table.
            Err(_) => None,
        }
    }

    fn granted(&self, grant: Grant, sent: BootTime, took: Duration) -> Granted {
        // A later expiry of the holder's own may have stayed.
        let lasts = match self.extension {
            Extension::To(ttl) => ttl.get(),
            Extension::AtLeast(_) => grant.expires_in,
        };
        Granted {
            grant,
            sent,
            took,
            deadline: timing::trusted_until(sent, lasts),
        }
    }
}

fn operation_failure(failure: &Failure) -> OperationFailure {
    OperationFailure {
        message: failure.to_string(),
        is_transient: failure.fault.is_transient(),
        is_unknown: failure.applied == Applied::Unknown,
        is_scarce: failure.fault == Fault::Busy,
    }
}
