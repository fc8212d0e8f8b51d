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

use super::failure::Failure;
use super::kept::Talk;
use super::transaction::{
    ABANDONED, Answer, Attempt, COMMITTING, CONNECTING, OPEN, Sent, converse, finish, late, step,
};
use crate::clock::BootTime;
use crate::fault::Fault;
use crate::text::os_error_text;

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

/// Runs `work` in a transaction, on its own thread or on the one that has kept a connection, and commits.
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
    let connection = attempt.connection.clone();
    let talk = Talk(Box::new(move |open| {
        match converse(open, &attempt, &worker_phase, work) {
            Ok(conversed) => finish(&attempt, conversed, &answers, closing),
            Err(failure) => {
                drop(answers.send(Err(failure)));
                None
            }
        }
    }));
    let talk = match connection.kept() {
        Some(kept) => kept.hand_over(talk).err(),
        None => Some(talk),
    };
    if let Some(talk) = talk
        && let Err(error) = thread::Builder::new()
            .name("lease-database".to_owned())
            .spawn(move || talk.carry_out())
    {
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

fn no_answer_to_commit() -> Failure {
    Failure::new(Fault::Timeout, "the database did not answer COMMIT in time").unknown()
}
