//! One attempt, as its thread sees it: a transaction on a connection, and what becomes of the connection.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::mpsc::Sender;
use std::time::Duration;

use postgres::Client;

use super::database::MessageSink;
use super::failure::Failure;
use super::kept::{Connection, Next, Open};
use crate::clock::BootTime;
use crate::connect::{self, Access, Connected, OnNotice, Settings};
use crate::fault::Fault;
use crate::sql::{self, Limits};
use crate::timing;

/// There is no connection yet. The thread itself gives up in time, and then reports what happened with each host.
pub(super) const CONNECTING: u8 = 0;
/// The transaction is open. It may be given up, and then has no effect.
pub(super) const OPEN: u8 = 1;
/// COMMIT was sent. If the caller gives up now, the outcome is unknown.
pub(super) const COMMITTING: u8 = 2;
/// The caller has given up. The thread must not send COMMIT.
pub(super) const ABANDONED: u8 = 3;

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
    /// Whether the statements run in a transaction. A single one that only reads needs none.
    pub(super) begins: bool,
    /// What connection it uses.
    pub(super) connection: Connection,
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

/// What is left to do once the answer is certain.
pub(super) struct Conversed<T> {
    pub(super) sent: Sent<T>,
    pub(super) open: Open,
    pub(super) effect: Effect,
}

/// Gives the answer, and then closes the connection, or keeps it and returns the attempt that takes it. `closing` is
/// dropped when the caller need not wait any longer.
pub(super) fn finish<T>(
    attempt: &Attempt,
    conversed: Conversed<T>,
    answers: &Sender<Result<Sent<T>, Failure>>,
    closing: Sender<()>,
) -> Option<Next> {
    let Conversed {
        sent,
        mut open,
        effect,
    } = conversed;
    // If nothing was written, the answer is certain before the transaction ends, so a failure there must not make it
    // uncertain.
    let last = match effect {
        Effect::Wrote => None,
        Effect::Read => (attempt.begins && attempt.access == Access::Write).then_some(sql::COMMIT),
        Effect::Undo => Some(sql::ROLLBACK),
    };
    let offered = attempt
        .connection
        .keeps(effect == Effect::Wrote, open.took)
        // The next operation must find enough time left on it.
        .filter(|_| open.ends.remaining() > attempt.limit / 2)
        // Before the answer is given, so that the next operation finds it.
        .map(|(kept, limit)| (kept.offer(), limit));
    // The answer first: closing the connection can hang.
    let is_wanted = answers.send(Ok(sent)).is_ok();
    if offered.is_some() {
        drop(closing);
    } else if !is_wanted {
        return None;
    }
    if let Some(last) = last {
        // A pooler reuses a server connection only if its transaction has ended.
        drop(open.client.batch_execute(last));
    }
    if let Some((offered, limit)) = offered
        && let Some(talk) = offered.wait(if is_wanted { limit } else { Duration::ZERO })
    {
        return Some(Next { talk, open });
    }
    drop(open.client.close());
    None
}

/// Connects if no connection is given, sends BEGIN and the statements, and COMMIT if the answer came in time.
pub(super) fn converse<T, W>(
    open: Option<Open>,
    attempt: &Attempt,
    phase: &AtomicU8,
    work: W,
) -> Result<Conversed<T>, Failure>
where
    W: FnOnce(&mut Client) -> Result<Answer<T>, Failure>,
{
    let began = BootTime::now();
    let mut open = match open {
        Some(open) => open,
        None => self::open(attempt, began)?,
    };
    let client = &mut open.client;
    if !step(phase, CONNECTING, OPEN) {
        return Err(late(attempt.limit));
    }
    if attempt.begins {
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
    }
    let at = BootTime::now();
    let Answer { answer, effect } = work(client).map_err(Failure::of_a_made_connection)?;
    if effect == Effect::Wrote {
        if attempt.by.has_passed() || !step(phase, OPEN, COMMITTING) {
            return Err(late(attempt.limit));
        }
        client
            .batch_execute(sql::COMMIT)
            .map_err(|error| of_commit(&error))?;
    }
    Ok(Conversed {
        sent: Sent {
            answer,
            at,
            took: BootTime::now().since(began),
        },
        open,
        effect,
    })
}

/// If the server ends the session while COMMIT waits for a standby, it has committed. After any other error it has not.
fn of_commit(error: &postgres::Error) -> Failure {
    let failure = Failure::from_postgres(error);
    match failure.fault {
        Fault::Unreachable | Fault::Down | Fault::Timeout => failure.unknown(),
        Fault::Conflict
        | Fault::Busy
        | Fault::ReadOnly
        | Fault::NoTable
        | Fault::Denied
        | Fault::Login
        | Fault::Refused => failure,
    }
}

fn open(attempt: &Attempt, began: BootTime) -> Result<Open, Failure> {
    let ends = attempt.by + attempt.connection.lasts_longer_by();
    let Connected { client, server } = connect::open(
        &attempt.settings,
        &attempt.application_name,
        attempt.access,
        (attempt.by, ends),
        Some(Arc::clone(&attempt.on_notice)),
    )
    .map_err(|e| Failure::new(e.fault, e.message))?;
    (attempt.on_connected)(&server);
    Ok(Open {
        client,
        took: BootTime::now().since(began),
        ends,
    })
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

/// Changes `phase` from `from` to `to`. Returns whether it was `from`.
pub(super) fn step(phase: &AtomicU8, from: u8, to: u8) -> bool {
    phase
        .compare_exchange(from, to, Ordering::SeqCst, Ordering::SeqCst)
        .is_ok()
}

pub(super) fn late(limit: Duration) -> Failure {
    let limit = timing::human(limit + Duration::from_micros(500));
    Failure::new(
        Fault::Timeout,
        format!("the database did not answer within {limit}"),
    )
}
