//! The three steps of a term: claim, renew, release.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use postgres::Client;

use super::database::Store;
use super::failure::{Applied, Failure};
use super::kept::Connection;
use super::operate::Plan;
use super::outcome;
use super::transaction::{Answer, Sent};
use crate::clock::BootTime;
use crate::connect::Access;
use crate::fault::Fault;
use crate::lease::{Claim, Holder, Key, Release, Renewal, Term};
use crate::timing::{Extension, Ttl};

impl Store {
    /// Claims the lease if it is free or expired, and extends it if `holder` already has it. Creates the table on first
    /// use.
    ///
    /// `interrupt` ends the claim early. Nothing is claimed then, unless COMMIT was sent already.
    ///
    /// # Errors
    /// When the database can't be reached, does not answer in time, or refuses.
    pub fn claim(
        &self,
        key: &Key,
        holder: &Holder,
        extension: Extension,
        limit: Duration,
        interrupt: Option<&AtomicBool>,
    ) -> Result<Sent<Claim>, Failure> {
        let work = || {
            let (statements, key, holder) =
                (Arc::clone(&self.statements), key.clone(), holder.clone());
            move |client: &mut Client| outcome::claim(client, &statements, &key, &holder, extension)
        };
        self.claim_by(extension, limit, interrupt, work)
    }

    /// Claims with these statements, and creates the table first if it is missing.
    pub(super) fn claim_by<W>(
        &self,
        extension: Extension,
        limit: Duration,
        interrupt: Option<&AtomicBool>,
        work: impl Fn() -> W + Copy,
    ) -> Result<Sent<Claim>, Failure>
    where
        W: FnOnce(&mut Client) -> Result<Answer<Claim>, Failure> + Send + 'static,
    {
        let by = BootTime::now() + limit;
        let plan = || Plan {
            what: "claim",
            access: Access::Write,
            limit: by.remaining(),
            idle: idle(limit, extension.ttl()),
            says: true,
            repeatable: true,
            begins: true,
            connection: self.kept_by_claim(),
            keeps_half: false,
        };
        match self.operate(&plan(), interrupt, work) {
            Err(failure) if failure.fault == Fault::NoTable => {
                // Even if it is unknown whether the table was created, nothing was claimed in it.
                self.make_table_and_history_by(by)
                    .map_err(Failure::certain)?;
                self.operate(&plan(), interrupt, work)
            }
            answered => answered,
        }
        .map_err(|f| self.advise_grant(f, "SELECT, INSERT, UPDATE"))
    }

    /// Extends an unexpired term.
    ///
    /// # Errors
    /// When the database can't be reached, does not answer in time, or refuses. The term then ends no earlier than before,
    /// unless the outcome is unknown and `extension` shortens it.
    pub fn renew(
        &self,
        term: &Term,
        extension: Extension,
        limit: Duration,
    ) -> Result<Sent<Renewal>, Failure> {
        let plan = Plan {
            what: "renew",
            access: Access::Write,
            limit,
            idle: idle(limit, extension.ttl()),
            says: false,
            repeatable: true,
            begins: true,
            connection: Connection::Own,
            keeps_half: false,
        };
        let answered = self.operate(&plan, None, || {
            let (statements, term) = (Arc::clone(&self.statements), term.clone());
            move |client: &mut Client| outcome::renew(client, &statements, &term, extension)
        });
        match answered {
            // The lease is lost: the next claim creates a new table and is granted.
            Err(failure) if failure.fault == Fault::NoTable => Ok(Sent {
                answer: Renewal::Lost(self.no_table()),
                at: BootTime::now(),
                took: Duration::ZERO,
            }),
            other => other.map_err(|f| self.advise_grant(f, "SELECT, INSERT, UPDATE")),
        }
    }

    /// Ends a term. The key stays closed until `hold` after the grant.
    ///
    /// # Errors
    /// When the database can't be reached, does not answer in time, or refuses. The lease then lasts until its expiry,
    /// unless the outcome is unknown.
    pub fn release(
        &self,
        term: &Term,
        hold: Duration,
        limit: Duration,
    ) -> Result<Release, Failure> {
        let plan = Plan {
            what: "release",
            access: Access::Write,
            limit,
            idle: limit,
            says: true,
            repeatable: true,
            begins: true,
            connection: self.kept_for_release(),
            keeps_half: true,
        };
        let answered = self.settle(&plan, None, || {
            let (statements, term) = (Arc::clone(&self.statements), term.clone());
            move |client: &mut Client| outcome::release(client, &statements, &term, hold)
        });
        match answered {
            Err(failure) if failure.fault == Fault::NoTable => Ok(match failure.applied {
                Applied::No => Release::Lost(self.no_table()),
                Applied::Unknown => Release::Released,
            }),
            Err(failure) => Err(self.advise_grant(failure, "SELECT, INSERT, UPDATE")),
            // The first try found the term and ended it, and its COMMIT got no answer. What the second try found happened
            // later.
            Ok((
                Sent {
                    answer: Release::AlreadyReleased | Release::Lost(_),
                    ..
                },
                true,
            )) => Ok(Release::Released),
            Ok((sent, _)) => Ok(sent.answer),
        }
    }
}

/// How long a transaction may be idle while it locks the row: no longer than the operation, nor than a third of the ttl.
fn idle(limit: Duration, ttl: Ttl) -> Duration {
    limit.min(ttl.get() / 3)
}
