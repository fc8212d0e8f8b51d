//! Where the leases are: a database, a table in it, and how long an operation may take.

use std::sync::Arc;
use std::time::Duration;

use super::failure::Failure;
use crate::connect::Settings;
use crate::fault::Fault;
use crate::lease::{Key, Loss};
use crate::sql::{self, Statements, Table};

/// Receives the steps that `--verbose` shows.
pub type StepReporter = Arc<dyn Fn(&str) + Send + Sync>;

/// The table of leases in one database.
#[derive(Clone)]
pub struct Store {
    pub(super) settings: Arc<Settings>,
    pub(super) table: Table,
    pub(super) statements: Arc<Statements>,
    pub(super) application_name: String,
    pub(super) limit: Duration,
    pub(super) report_step: StepReporter,
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

    pub(super) fn no_table(&self) -> Loss {
        Loss::NoTable(self.table.shown())
    }

    /// Advises the missing GRANT. The server does not say in a form that can be read by a program whether the schema or the
    /// table was refused, so both are named.
    pub(super) fn advise_grant(&self, failure: Failure, privileges: &str) -> Failure {
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
