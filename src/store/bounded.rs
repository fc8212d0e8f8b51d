//! One attempt of a database operation, with a time limit that this process enforces.
//!
//! The `postgres` crate can't limit the time of a call. If the server is frozen, or a peer accepts the connection and never
//! answers, the call waits for ever, because the kernel still acknowledges every packet. So each attempt runs on a thread
//! of its own, which its caller can abandon. An abandoned thread is never joined. It ends with the process, or when
//! keepalives or `tcp_user_timeout` break the connection.
//!
//! An abandoned thread must never send COMMIT. One atomic decides this: the thread sets it before it sends COMMIT, and the
//! caller sets it before it gives up. The one that comes second sees this and yields.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use postgres::Client;

use super::database::MessageSink;
use super::failure::Failure;
use crate::clock::BootTime;
use crate::connect::{self, Access, Connected, OnNotice, Settings};
use crate::fault::Fault;
use crate::sql::{self, Limits};
use crate::text::os_error_text;
use crate::timing;

/// There is no connection yet. The thread itself gives up in time, and then reports what happened with each host.
const CONNECTING: u8 = 0;
/// The transaction is open. It may be given up, and then has no effect.
const OPEN: u8 = 1;
/// COMMIT was sent. If the caller gives up now, the outcome is unknown.
const COMMITTING: u8 = 2;
/// The caller has given up. The thread must not send COMMIT.
const ABANDONED: u8 = 3;

/// How long the caller waits at most before it reads the boot-time clock again. The timeout of the channel uses a clock
/// that stops while the machine is suspended.
const SLICE: Duration = Duration::from_millis(500);
/// The same if the caller must notice an interrupt.
const INTERRUPTIBLE_SLICE: Duration = Duration::from_millis(15);
/// How long the caller waits for the connection to be closed properly, after it has its answer. Otherwise the server logs a
/// client that vanished.
const GOODBYE: Duration = Duration::from_millis(100);
/// How long the caller waits for the error of a thread that was still connecting when the time was up. The thread gives up
/// at the same moment, so only a very busy machine needs this time.
const REASONS: Duration = Duration::from_secs(1);

/// What one attempt needs to know.
pub(super) struct Attempt {
    pub(super) settings: Arc<Settings>,
    pub(super) application_name: String,
    pub(super) access: Access,
    /// When it must be over, by this machine's clock.
    pub(super) by: BootTime,
    /// The limit of the whole operation, for the message.
    pub(super) limit: Duration,
    /// How long the transaction may be idle on the server.
    pub(super) idle: Duration,
    /// Whether half of the time that is left at COMMIT is kept for a second request.
    pub(super) keeps_half: bool,
    /// Whether the transaction ends with COMMIT even if it has written nothing.
    pub(super) commits: bool,
    /// A statement for the end of the opening flight.
    pub(super) said: Option<String>,
    /// Receives what the server says besides its answers.
    pub(super) on_notice: OnNotice,
    /// Receives the name of the server that answered.
    pub(super) on_connected: MessageSink,
}

/// An answer, and when its statement was sent.
#[derive(Clone, Debug)]
pub struct Sent<T> {
    /// The answer.
    pub answer: T,
    /// The local time just before the statement was sent. The server has decided after this time.
    pub at: BootTime,
    /// How long the successful attempt took, connecting included.
    pub took: Duration,
}

/// The answer of the statements, before COMMIT.
pub(super) struct Answer<T> {
    pub(super) answer: T,
    /// How the transaction ends.
    pub(super) effect: Effect,
}

/// What the statements have done, and so how the transaction ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Effect {
    /// They wrote what the answer says: it depends on COMMIT.
    Wrote,
    /// They only read. "Held by another holder" is true even if the transaction fails.
    Read,
    /// What they wrote is not to be: the answer is true even before ROLLBACK.
    Undo,
}

/// Runs `work` in a transaction on a connection of its own, and commits.
///
/// `interrupt` ends the attempt early if COMMIT was not sent yet.
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
                Ok((sent, mut client, last)) => {
                    // The answer first: closing the connection can hang.
                    if answers.send(Ok(sent)).is_ok() {
                        if let Some(last) = last {
                            // A pooler reuses a server connection only if its transaction has ended.
                            drop(client.batch_execute(last));
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
                // The answer is here, so it does not matter whether the connection is closed in time.
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
        // Interrupted after COMMIT was sent: the answer to COMMIT decides.
    }
}

/// Changes `phase` from `from` to `to`. Returns whether it was `from`.
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

/// Connects, sends BEGIN and the statements, and COMMIT if the answer came in time.
///
/// Also returns the statement that is still to end the transaction. If nothing was written, the answer is certain before it,
/// so its failure must not make the answer uncertain.
fn converse<T, W>(
    attempt: &Attempt,
    phase: &AtomicU8,
    work: W,
) -> Result<(Sent<T>, Client, Option<&'static str>), Failure>
where
    W: FnOnce(&mut Client) -> Result<Answer<T>, Failure>,
{
    let began = BootTime::now();
    let Connected { mut client, server } = connect::open(
        &attempt.settings,
        &attempt.application_name,
        attempt.access,
        attempt.by,
        Some(Arc::clone(&attempt.on_notice)),
    )
    .map_err(|e| Failure::new(e.fault, e.message))?;
    (attempt.on_connected)(&server);
    if !step(phase, CONNECTING, OPEN) {
        return Err(late(attempt.limit));
    }
    client
        .batch_execute(&sql::begin(
            attempt.access == Access::Write,
            limits(attempt),
            attempt.said.as_deref(),
        ))
        .map_err(|e| {
            Failure::from_postgres(&e)
                .of_a_made_connection()
                .at_the_first_request()
        })?;
    let at = BootTime::now();
    let Answer { answer, effect } = work(&mut client).map_err(Failure::of_a_made_connection)?;
    let sent = |answer| Sent {
        answer,
        at,
        took: BootTime::now().since(began),
    };
    match effect {
        Effect::Wrote => {}
        Effect::Read => {
            return Ok((sent(answer), client, attempt.commits.then_some(sql::COMMIT)));
        }
        Effect::Undo => return Ok((sent(answer), client, Some(sql::ROLLBACK))),
    }
    if attempt.by.has_passed() || !step(phase, OPEN, COMMITTING) {
        return Err(late(attempt.limit));
    }
    match client.batch_execute(sql::COMMIT) {
        Ok(()) => Ok((sent(answer), client, None)),
        Err(error) => {
            let failure = Failure::from_postgres(&error);
            // If the server ends the session while COMMIT waits for a standby, it has committed. After any other error it
            // has not.
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

/// The limits for the server. They end a little before ours, so that the clearer message of the server arrives. The limit
/// for a lock ends well before that for the statement, so that the message names the lock: its time begins later, with the
/// wait.
fn limits(attempt: &Attempt) -> Limits {
    let left = u64::try_from(attempt.by.remaining().as_millis()).unwrap_or(u64::MAX);
    let idle = u64::try_from(attempt.idle.as_millis()).unwrap_or(u64::MAX);
    Limits {
        statement_ms: left - left / 20,
        lock_ms: left - left / 5,
        idle_ms: idle,
    }
}
