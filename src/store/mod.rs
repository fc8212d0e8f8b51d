//! Runs the statements, and turns rows into outcomes and errors into [`Failure`]s.
//!
//! Each operation opens a connection, runs one short transaction and closes the connection. Between two operations no
//! connection is held.

mod bounded;
mod evict;
mod failure;
mod operate;
mod outcome;
mod table;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use postgres::Client;
use postgres::types::Type;

use self::bounded::Answer;
use self::operate::Plan;
use self::outcome::{query, row};
use crate::clock::BootTime;
use crate::connect::{Access, Settings};
use crate::fault::Fault;
use crate::lease::{Claim, Holder, Key, Loss, Release, Renewal, Row, Term};
use crate::sql::{self, Pattern, Statements, Table};
use crate::timing::{Extension, Ttl};

pub use self::bounded::Sent;
pub use self::failure::{Applied, Failure};

/// Receives the steps that `--verbose` shows.
pub type StepReporter = Arc<dyn Fn(&str) + Send + Sync>;

/// The table of leases in one database.
#[derive(Clone)]
pub struct Store {
    settings: Arc<Settings>,
    table: Table,
    statements: Arc<Statements>,
    application_name: String,
    limit: Duration,
    report_step: StepReporter,
}

/// What `status` reads.
#[derive(Clone, Debug, Default)]
pub struct Listing {
    /// The rows, by key.
    pub rows: Vec<Row>,
    /// Whether the default of the fence column is unsafe: it does not follow the clock.
    pub unsafe_default: bool,
    /// The name of the table, if it does not exist.
    pub no_table: Option<String>,
}

impl Store {
    /// A store. Nothing is connected yet. `limit` is the time limit of one operation, connecting included.
    #[must_use]
    pub fn new(
        settings: Settings,
        table: Table,
        limit: Duration,
        report_step: StepReporter,
    ) -> Self {
        let statements = Arc::new(Statements::new(&table));
        let application_name = "lease".to_owned();
        Self {
            settings: Arc::new(settings),
            table,
            statements,
            application_name,
            limit,
            report_step,
        }
    }

    /// The same store, which `pg_stat_activity` shows with the key: `lease nightly`.
    #[must_use]
    pub fn named(mut self, key: &Key) -> Self {
        self.application_name = format!("lease {}", key.as_str());
        self
    }

    /// The same store with another receiver for its steps.
    #[must_use]
    pub fn reporting_to(mut self, report_step: StepReporter) -> Self {
        self.report_step = report_step;
        self
    }

    /// The time limit of one operation.
    #[must_use]
    pub const fn limit(&self) -> Duration {
        self.limit
    }

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
        let by = BootTime::now() + limit;
        let plan = || Plan {
            what: "claim",
            access: Access::Write,
            limit: by.remaining(),
            idle: idle(limit, extension.ttl()),
            repeatable: true,
            keeps_half: false,
        };
        let work = || {
            let (statements, key, holder) =
                (Arc::clone(&self.statements), key.clone(), holder.clone());
            move |client: &mut Client| outcome::claim(client, &statements, &key, &holder, extension)
        };
        match self.operate(&plan(), interrupt, work) {
            Err(failure) if failure.fault == Fault::NoTable => {
                // Even if it is unknown whether the table was created, nothing was claimed in it.
                self.make_table_by(by).map_err(Failure::certain)?;
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
            repeatable: true,
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
            repeatable: true,
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

    /// The rows that match `patterns`, or all rows if there are none, sorted by key. `free`: rows of free keys too. A
    /// missing table has no rows.
    ///
    /// # Errors
    /// When the database can't be reached, does not answer in time, or refuses.
    pub fn status(
        &self,
        patterns: &[Pattern],
        free: bool,
        interrupt: Option<&AtomicBool>,
    ) -> Result<Listing, Failure> {
        let plan = Plan {
            what: "status",
            access: Access::Read,
            limit: self.limit,
            idle: self.limit,
            repeatable: true,
            keeps_half: false,
        };
        let likes: Option<Vec<String>> =
            (!patterns.is_empty()).then(|| patterns.iter().map(|p| p.like.clone()).collect());
        let name = self.table.quoted();
        let answered = self.operate(&plan, interrupt, || {
            let (statements, likes) = (Arc::clone(&self.statements), likes.clone());
            let name = name.clone();
            move |client: &mut Client| {
                let found = query(
                    client,
                    &statements.status,
                    &[(&free, Type::BOOL), (&likes, Type::TEXT_ARRAY)],
                )?;
                let rows = found.iter().map(row).collect::<Result<_, _>>()?;
                let safe = query(client, &statements.fence_default, &[(&name, Type::TEXT)])?;
                let unsafe_default = safe.first().is_some_and(|r| !r.get::<_, bool>(0));
                Ok(Answer {
                    answer: Listing {
                        rows,
                        unsafe_default,
                        no_table: None,
                    },
                    wrote: false,
                })
            }
        });
        match answered {
            Err(failure) if failure.fault == Fault::NoTable => Ok(Listing {
                no_table: Some(self.table.shown()),
                ..Listing::default()
            }),
            Err(failure) => Err(self.advise_grant(failure, "SELECT")),
            Ok(sent) => Ok(sent.answer),
        }
    }

    fn no_table(&self) -> Loss {
        Loss::NoTable(self.table.shown())
    }

    /// Advises the missing GRANT. The server does not say in a form that can be read by a program whether the schema or the
    /// table was refused, so both are named.
    fn advise_grant(&self, failure: Failure, privileges: &str) -> Failure {
        if failure.fault != Fault::Denied {
            return failure;
        }
        let (table, role) = (self.table.shown(), sql::quote(self.settings.user()));
        let schema = self.table.schema_shown();
        let usage = if schema == "public" {
            String::new()
        } else {
            format!("GRANT USAGE ON SCHEMA {schema} TO {role}; ")
        };
        failure.advise(&format!("{usage}GRANT {privileges} ON {table} TO {role}"))
    }
}

/// How long a transaction may be idle while it locks the row: no longer than the operation, nor than a third of the ttl.
fn idle(limit: Duration, ttl: Ttl) -> Duration {
    limit.min(ttl.get() / 3)
}
