//! One database operation, bounded in time by the process itself.
//!
//! The `postgres` crate can't bound a call: with a server that is frozen, or a peer that accepts and never answers, it
//! waits for ever, since the kernel still acknowledges. So an operation runs on a thread of its own that its caller can
//! abandon. Nobody joins it; the process leaves by `exit`; keepalives and `tcp_user_timeout` end it in the end.
//!
//! What an abandoned thread must never do is COMMIT. One atomic decides: the thread takes it before it sends COMMIT, the
//! caller takes it before it gives up, and whoever comes second yields.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use postgres::Client;

use super::failure::Failure;
use crate::clock::BootTime;
use crate::connect::{self, Access, Settings};
use crate::fault::Fault;
use crate::sql::{self, Limits};
use crate::text::os_error_text;
use crate::timing;

/// There is no connection yet; the thread itself knows when to give up, and then says what each host did.
const CONNECTING: u8 = 0;
/// The transaction may be given up without a trace.
const OPEN: u8 = 1;
/// COMMIT is on its way: giving up now leaves the outcome unknown.
const COMMITTING: u8 = 2;
/// Given up: the thread must not commit.
const ABANDONED: u8 = 3;

/// How long the caller sleeps at most before it reads the boot-time clock again: the channel's own timeout is measured
/// on a clock that stands still in suspend.
const SLICE: Duration = Duration::from_millis(500);
/// The same when an interrupt has to be noticed.
const INTERRUPTIBLE_SLICE: Duration = Duration::from_millis(15);
/// How long the caller waits for a connection to be closed in good order, after it has its answer. A server logs a
/// client that vanished.
const GOODBYE: Duration = Duration::from_millis(100);
/// How long the caller waits for the reasons of a thread that was still connecting when the time was up, and so gives up
/// at the same moment. Both need a processor for it; only a machine without a free one makes use of this.
const REASONS: Duration = Duration::from_secs(1);

/// What one attempt needs to know.
pub(super) struct Attempt {
    pub(super) settings: Arc<Settings>,
    pub(super) application_name: String,
    pub(super) access: Access,
    /// When it has to be over, on this machine's clock.
    pub(super) by: BootTime,
    /// The limit of the whole operation, for the message.
    pub(super) limit: Duration,
    /// How long the transaction may stand idle on the server.
    pub(super) idle: Duration,
    /// Whether half of the time that is left at COMMIT is kept for asking again.
    pub(super) keeps_half: bool,
    /// Whether the transaction is ended by COMMIT also when it has written nothing.
    pub(super) commits: bool,
}

/// An answer, and when the statement that brought it was sent.
#[derive(Clone, Debug)]
pub struct Sent<T> {
    /// The answer.
    pub answer: T,
    /// The local instant just before the statement left: what the server decided, it decided later.
    pub at: BootTime,
    /// How long the attempt took that brought it, from the first step of connecting on.
    pub took: Duration,
}

/// What a statement answered, before COMMIT.
pub(super) struct Answer<T> {
    pub(super) answer: T,
    /// Whether the answer depends on COMMIT. "Held by somebody else" is true whatever becomes of the transaction.
    pub(super) wrote: bool,
}

/// Runs `work` in a transaction on a connection of its own, and commits.
///
/// `interrupt` ends the attempt early, if nothing has been committed yet.
pub(super) fn attempt<T, W>(
    attempt: Attempt,
    interrupt: Option<&AtomicBool>,
    work: W,
) -> Result<Sent<T>, Failure>
where
    T: Send + 'static,
    W: FnOnce(&mut Client) -> Result<Answer<T>, Failure> + Send + 'static,
{
    let (mut by, limit) = (attempt.by, attempt.limit);
    let mut keeps_half = attempt.keeps_half;
    let phase = Arc::new(AtomicU8::new(CONNECTING));
    let worker_phase = Arc::clone(&phase);
    let (answers, answer) = mpsc::channel();
    let (closing, closed) = mpsc::channel::<()>();
    let spawned = thread::Builder::new()
        .name("lease-database".to_owned())
        .spawn(move || {
            let result = converse(&attempt, &worker_phase, work);
            match result {
                Ok((sent, mut client, open)) => {
                    // The answer first: saying goodbye can hang.
                    if answers.send(Ok(sent)).is_ok() {
                        if open {
                            // A pooler keeps a connection only if its transaction has been ended.
                            drop(client.batch_execute(sql::COMMIT));
                        }
                        drop(client.close());
                    }
                }
                Err(failure) => drop(answers.send(Err(failure))),
            }
            drop(closing);
        });
    if let Err(error) = spawned {
        return Err(Failure::new(
            Fault::Busy,
            format!(
                "cannot start a thread for the database operation: {}",
                os_error_text(&error)
            ),
        ));
    }

    let slice = if interrupt.is_some() {
        INTERRUPTIBLE_SLICE
    } else {
        SLICE
    };
    loop {
        if keeps_half && phase.load(Ordering::SeqCst) == COMMITTING {
            keeps_half = false;
            by = BootTime::now() + by.remaining() / 2;
        }
        let left = by.remaining();
        match answer.recv_timeout(left.min(slice)) {
            Ok(result) => {
                // Only a wish: the answer is here.
                let _ = closed.recv_timeout(GOODBYE);
                return result;
            }
            Err(RecvTimeoutError::Disconnected) => {
                let gone = Failure::new(
                    Fault::Refused,
                    "the database operation ended without an answer: a bug in lease",
                );
                return Err(if phase.load(Ordering::SeqCst) == COMMITTING {
                    gone.unknown()
                } else {
                    gone
                });
            }
            Err(RecvTimeoutError::Timeout) => {}
        }
        let interrupted = interrupt.is_some_and(|flag| flag.load(Ordering::SeqCst));
        if !interrupted && !by.has_passed() {
            continue;
        }
        let connecting = step(&phase, CONNECTING, ABANDONED);
        let given_up = connecting || step(&phase, OPEN, ABANDONED);
        if given_up && interrupted {
            return Err(Failure::new(Fault::Timeout, "interrupted"));
        }
        if by.has_passed() {
            if connecting && let Ok(Err(failure)) = answer.recv_timeout(REASONS) {
                return Err(failure);
            }
            return Err(if given_up {
                late(limit)
            } else {
                no_answer_to_commit()
            });
        }
        // Interrupted, but COMMIT is on its way: its answer decides.
    }
}

/// Goes from one phase to another, and answers whether it was in the first.
fn step(phase: &AtomicU8, from: u8, to: u8) -> bool {
    phase
        .compare_exchange(from, to, Ordering::SeqCst, Ordering::SeqCst)
        .is_ok()
}

fn late(limit: Duration) -> Failure {
    let limit = timing::human(limit + Duration::from_micros(500));
    Failure::new(
        Fault::Timeout,
        format!("the database did not answer within {limit}"),
    )
}

fn no_answer_to_commit() -> Failure {
    Failure::new(Fault::Timeout, "the database did not answer COMMIT in time").unknown()
}

/// Connect, BEGIN, the statement, and COMMIT only if the answer came in time.
///
/// Answers too whether the transaction is still open. A statement that wrote nothing has its answer before COMMIT, so what
/// becomes of COMMIT must not put the answer in doubt.
fn converse<T, W>(
    attempt: &Attempt,
    phase: &AtomicU8,
    work: W,
) -> Result<(Sent<T>, Client, bool), Failure>
where
    W: FnOnce(&mut Client) -> Result<Answer<T>, Failure>,
{
    let began = BootTime::now();
    let mut client = connect::open(
        &attempt.settings,
        &attempt.application_name,
        attempt.access,
        attempt.by,
    )
    .map_err(|e| Failure::new(e.fault, e.message))?;
    if !step(phase, CONNECTING, OPEN) {
        return Err(late(attempt.limit));
    }
    client
        .batch_execute(&sql::begin(
            attempt.access == Access::Write,
            limits(attempt),
        ))
        .map_err(|e| {
            Failure::from_postgres(&e)
                .of_a_made_connection()
                .at_the_first_word()
        })?;
    let at = BootTime::now();
    let Answer { answer, wrote } = work(&mut client).map_err(Failure::of_a_made_connection)?;
    let sent = |answer| Sent {
        answer,
        at,
        took: BootTime::now().since(began),
    };
    if !wrote {
        return Ok((sent(answer), client, attempt.commits));
    }
    if attempt.by.has_passed() || !step(phase, OPEN, COMMITTING) {
        return Err(late(attempt.limit));
    }
    match client.batch_execute(sql::COMMIT) {
        Ok(()) => Ok((sent(answer), client, false)),
        Err(error) => {
            let failure = Failure::from_postgres(&error);
            // A server that ends the session while COMMIT waits for a standby has committed. One that answers with
            // any other error has not.
            let unknown = match failure.fault {
                Fault::Unreachable | Fault::Down | Fault::Timeout => true,
                Fault::Conflict
                | Fault::Busy
                | Fault::ReadOnly
                | Fault::NoTable
                | Fault::Denied
                | Fault::Login
                | Fault::Refused => false,
            };
            Err(if unknown { failure.unknown() } else { failure })
        }
    }
}

/// The server's limits end a little before ours, so that its own, clearer, message arrives. Waiting for a lock ends well
/// before the statement does, so that the message says it was the lock: its time begins later, with the wait.
fn limits(attempt: &Attempt) -> Limits {
    let left = u64::try_from(attempt.by.remaining().as_millis()).unwrap_or(u64::MAX);
    let idle = u64::try_from(attempt.idle.as_millis()).unwrap_or(u64::MAX);
    Limits {
        statement_ms: left - left / 20,
        lock_ms: left - left / 5,
        idle_ms: idle,
    }
}
