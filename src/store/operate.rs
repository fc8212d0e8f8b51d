//! One operation: one or more attempts within one time limit.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use postgres::Client;

use super::bounded;
use super::database::Store;
use super::failure::{Applied, Failure};
use super::kept::Connection;
use super::transaction::{Answer, Attempt, Sent};
use crate::clock::BootTime;
use crate::connect::Access;

/// How many attempts one operation makes.
const TRIES: u32 = 5;

/// How an operation is carried out.
pub(super) struct Plan {
    pub(super) what: &'static str,
    pub(super) access: Access,
    pub(super) limit: Duration,
    pub(super) idle: Duration,
    /// Whether the same request may be sent again when its outcome is unknown.
    pub(super) repeatable: bool,
    /// Whether it is a transaction. A single statement that only reads needs none.
    pub(super) begins: bool,
    /// What connection it uses.
    pub(super) connection: Connection,
    /// Whether the history is to know who asks.
    pub(super) says: bool,
    /// Whether half of the time is kept for a second request if COMMIT gets no answer. This helps if the second request
    /// only reads what the first has done, and so needs no COMMIT. A claim or a renewal would need one, which may be as
    /// slow as the first.
    pub(super) keeps_half: bool,
}

impl Store {
    /// Runs one operation. It is repeated at once if that can settle it, within the plan's limit.
    pub(super) fn operate<T, W>(
        &self,
        plan: &Plan,
        interrupt: Option<&AtomicBool>,
        work: impl Fn() -> W,
    ) -> Result<Sent<T>, Failure>
    where
        T: Send + 'static,
        W: FnOnce(&mut Client) -> Result<Answer<T>, Failure> + Send + 'static,
    {
        self.settle(plan, interrupt, work).map(|(sent, _)| sent)
    }

    /// The same. Also returns whether an earlier attempt had an unknown outcome.
    pub(super) fn settle<T, W>(
        &self,
        plan: &Plan,
        interrupt: Option<&AtomicBool>,
        work: impl Fn() -> W,
    ) -> Result<(Sent<T>, bool), Failure>
    where
        T: Send + 'static,
        W: FnOnce(&mut Client) -> Result<Answer<T>, Failure> + Send + 'static,
    {
        let started = BootTime::now();
        let by = started + plan.limit;
        let mut unknown = false;
        let mut tries = 0;
        loop {
            tries += 1;
            let attempt = Attempt {
                settings: Arc::clone(&self.settings),
                application_name: self.application_name.clone(),
                access: plan.access,
                by,
                limit: plan.limit,
                idle: plan.idle,
                keeps_half: plan.keeps_half,
                connection: plan.connection.clone(),
                said: plan.says.then(|| self.said.statement()),
                on_notice: self.on_notice(),
                on_connected: self.on_connected(),
                begins: plan.begins,
            };
            let result = bounded::attempt(attempt, interrupt, work());
            let took = format!("{} ms", BootTime::now().since(started).as_millis());
            match result {
                Ok(sent) => {
                    (self.reporter.step)(&format!("{}: answered after {took}", plan.what));
                    return Ok((sent, unknown));
                }
                Err(failure) => {
                    (self.reporter.step)(&format!("{}: failed after {took}: {failure}", plan.what));
                    unknown |= failure.applied == Applied::Unknown;
                    let again = failure.is_worth_asking_again()
                        && tries < TRIES
                        && (plan.repeatable || failure.applied == Applied::No)
                        && !by.has_passed()
                        && !interrupt.is_some_and(|flag| flag.load(Ordering::SeqCst));
                    if !again {
                        // If an earlier outcome is unknown, a failure that applied nothing does not settle it.
                        return Err(if unknown { failure.unknown() } else { failure });
                    }
                }
            }
        }
    }
}
