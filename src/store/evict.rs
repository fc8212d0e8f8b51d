//! Evicts a holder, and finds out who was evicted even if the answer is lost.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use postgres::Client;

use super::database::Store;
use super::failure::{Applied, Failure};
use super::kept::Connection;
use super::operate::Plan;
use super::outcome;
use super::transaction::Sent;
use crate::clock::BootTime;
use crate::connect::Access;
use crate::fault::Fault;
use crate::lease::{Eviction, Fence, Key, Row};
use crate::record::Said;

impl Store {
    /// Ends the current term of a key; with `fence`, only if the term has that fence.
    ///
    /// # Errors
    /// When the database can't be reached, does not answer in time, or refuses.
    pub fn evict(
        &self,
        key: &Key,
        fence: Option<Fence>,
        hold: Duration,
    ) -> Result<Eviction, Failure> {
        let by = BootTime::now() + self.limit;
        let seen = Arc::new(Mutex::new(None));
        // A second try would find another term or none, and could not tell who was evicted.
        let first = self.evict_by(by, false, key, fence, hold, &seen);
        let found = seen.lock().unwrap_or_else(PoisonError::into_inner).take();
        match (first, found) {
            (Err(failure), Some(row)) if failure.applied == Applied::Unknown => {
                self.look_again(by, failure, key, row, hold)
            }
            (Err(failure), _) if failure.fault == Fault::NoTable => {
                Ok(Eviction::NoTable(self.table.shown()))
            }
            (Err(failure), _) => Err(self.advise_grant(failure, "SELECT, INSERT, UPDATE")),
            (Ok(sent), _) => Ok(sent.answer),
        }
    }

    /// Asks again after the first try found `row` and its COMMIT got no answer. Ends only the term of that row.
    fn look_again(
        &self,
        by: BootTime,
        failure: Failure,
        key: &Key,
        row: Row,
        hold: Duration,
    ) -> Result<Eviction, Failure> {
        if by.has_passed() {
            return Err(failure);
        }
        match self.evict_by(by, true, key, Some(row.fence), hold, &Arc::default()) {
            Ok(Sent {
                answer: Eviction::Evicted(_),
                ..
            }) => Ok(Eviction::Evicted(row)),
            Ok(Sent {
                answer:
                    Eviction::Free
                    | Eviction::Over(_)
                    | Eviction::NoTable(_)
                    | Eviction::OtherTerm { .. },
                ..
            }) => Ok(Eviction::Over(row)),
            Err(failure) if failure.fault == Fault::NoTable => Ok(Eviction::Over(row)),
            Err(failure) => Err(failure.unknown()),
        }
    }

    /// One operation. It stores the row whose term it ends in `seen`, before COMMIT.
    fn evict_by(
        &self,
        by: BootTime,
        repeatable: bool,
        key: &Key,
        fence: Option<Fence>,
        hold: Duration,
        seen: &Arc<Mutex<Option<Row>>>,
    ) -> Result<Sent<Eviction>, Failure> {
        let plan = Plan {
            what: "release by force",
            access: Access::Write,
            limit: by.remaining(),
            idle: self.limit,
            says: true,
            repeatable,
            begins: true,
            connection: Connection::Own,
            keeps_half: true,
        };
        let said = Said {
            is_forced: true,
            ..self.said.clone()
        };
        self.clone().saying(said).operate(&plan, None, || {
            let (statements, key) = (Arc::clone(&self.statements), key.clone());
            let seen = Arc::clone(seen);
            move |client: &mut Client| {
                let answer = outcome::evict(client, &statements, &key, fence, hold)?;
                if let Eviction::Evicted(row) = &answer.answer {
                    *seen.lock().unwrap_or_else(PoisonError::into_inner) = Some(row.clone());
                }
                Ok(answer)
            }
        })
    }
}
