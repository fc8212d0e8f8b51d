//! Where the leases are: a database, a table in it, and how long an operation may take.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::failure::Failure;
use super::kept::{Connection, Kept};
use crate::connect::{OnNotice, Settings};
use crate::fault::Fault;
use crate::lease::{Key, Loss};
use crate::record::{SQLSTATE_UNWRITTEN, Said};
use crate::sql::{self, Statements, Table};
use crate::text::one_line;

/// Receives messages, on any thread.
pub type MessageSink = Arc<dyn Fn(&str) + Send + Sync>;

/// Where the messages of the operations go.
#[derive(Clone)]
pub struct Reporter {
    /// The steps that `--verbose` shows.
    pub step: MessageSink,
    /// What somebody should look at, though the operation has succeeded. Each store says it once.
    pub warning: MessageSink,
}

/// The table of leases in one database.
#[derive(Clone)]
pub struct Store {
    pub(super) settings: Arc<Settings>,
    pub(super) table: Table,
    pub(super) statements: Arc<Statements>,
    pub(super) application_name: String,
    pub(super) limit: Duration,
    pub(super) reporter: Reporter,
    /// What is said about this process and its job, for the history.
    pub(super) said: Said,
    /// Where a claim leaves its connection, if the next operation may follow at once.
    kept: Option<Kept>,
    /// Whether the claims are those of a waiter that keeps its connection between its looks.
    looks_out: bool,
    has_warned: Arc<AtomicBool>,
    /// The server that answered last.
    server: Arc<Mutex<Option<String>>>,
}

impl Store {
    /// A store. Nothing is connected yet. `limit` is the time limit of one operation, connecting included.
    #[must_use]
    pub fn new(settings: Settings, table: Table, limit: Duration, reporter: Reporter) -> Self {
        let statements = Arc::new(Statements::new(&table));
        let application_name = "lease".to_owned();
        Self {
            settings: Arc::new(settings),
            table,
            statements,
            application_name,
            limit,
            reporter,
            said: Said::default(),
            kept: None,
            looks_out: false,
            has_warned: Arc::new(AtomicBool::new(false)),
            server: Arc::default(),
        }
    }

    /// The same store, which `pg_stat_activity` shows with the key: `lease nightly`.
    #[must_use]
    pub fn named(mut self, key: &Key) -> Self {
        self.application_name = format!("lease {}", key.as_str());
        self
    }

    /// The same store, whose claims keep their connection for a moment, for a release that follows at once. Its copies share
    /// that connection.
    #[must_use]
    pub fn keeping_connections(mut self) -> Self {
        self.kept = Some(Kept::default());
        self
    }

    /// The same store for a waiter, which keeps the connection between two looks.
    #[must_use]
    pub fn looking_out(mut self) -> Self {
        self.looks_out = true;
        self
    }

    /// The connection of a claim.
    pub(super) fn kept_by_claim(&self) -> Connection {
        match &self.kept {
            None => Connection::Own,
            Some(kept) if self.looks_out => Connection::Waiting(kept.clone()),
            Some(kept) => Connection::Keep(kept.clone()),
        }
    }

    /// The connection of a waiter's look.
    pub(super) fn kept_between_looks(&self) -> Connection {
        self.kept
            .clone()
            .map_or(Connection::Own, Connection::Waiting)
    }

    /// The connection of a release.
    pub(super) fn kept_for_release(&self) -> Connection {
        self.kept.clone().map_or(Connection::Own, Connection::Kept)
    }

    /// The same store with another receiver for its messages.
    #[must_use]
    pub fn reporting_to(mut self, reporter: Reporter) -> Self {
        self.reporter = reporter;
        self
    }

    /// The same store, which says this about the process and its job when it writes to the table.
    #[must_use]
    pub fn saying(mut self, said: Said) -> Self {
        self.said = said;
        self
    }

    /// What it says.
    #[must_use]
    pub const fn said(&self) -> &Said {
        &self.said
    }

    /// Passes on the trigger's warning that the history could not be written.
    pub(super) fn on_notice(&self) -> OnNotice {
        let (warning, has_warned) = (
            Arc::clone(&self.reporter.warning),
            Arc::clone(&self.has_warned),
        );
        Arc::new(move |notice| {
            if notice.code().code() == SQLSTATE_UNWRITTEN
                && !has_warned.swap(true, Ordering::SeqCst)
            {
                warning(&format!(
                    "{}; the lease is not affected, but the history is incomplete, and --once-per does not see what is missing (if the history does not exist, `lease init` creates it)",
                    one_line(notice.message())
                ));
            }
        })
    }

    /// Reports the server of a connection, unless the last connection was to the same server.
    pub(super) fn on_connected(&self) -> MessageSink {
        let (settings, step, last) = (
            Arc::clone(&self.settings),
            Arc::clone(&self.reporter.step),
            Arc::clone(&self.server),
        );
        Arc::new(move |server| {
            let mut last = last.lock().unwrap_or_else(PoisonError::into_inner);
            if last.as_deref() != Some(server) {
                step(&format!(
                    "connected to {server}, database {}, as role {}",
                    settings.database(),
                    settings.user()
                ));
                *last = Some(server.to_owned());
            }
        })
    }

    /// The server that answered last, or those to try, and the database: `db-1:5432/app`.
    #[must_use]
    pub fn place(&self) -> String {
        let last = self.server.lock().unwrap_or_else(PoisonError::into_inner);
        let server = last.clone().unwrap_or_else(|| self.settings.servers());
        format!("{server}/{}", self.settings.database())
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
