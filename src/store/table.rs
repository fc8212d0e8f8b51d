//! Creates the table if it is missing, and installs the fence check.

use std::sync::Arc;

use postgres::Client;
use postgres::types::Type;

use super::columns::cell;
use super::database::Store;
use super::failure::Failure;
use super::kept::Connection;
use super::operate::Plan;
use super::outcome::refuse_misshapen;
use super::statement::query;
use super::transaction::{Answer, Effect};
use crate::clock::BootTime;
use crate::connect::Access;
use crate::fault::Fault;
use crate::record;
use crate::sql;

impl Store {
    /// The warning about an unsafe default of the fence, with the statement that makes it safe.
    #[must_use]
    pub fn advice_on_fences(&self) -> String {
        format!(
            "fences in {} can go back if another program deletes a row and inserts it again (the owner of the table prevents that with: {})",
            self.table.shown(),
            self.statements.safe_default
        )
    }

    /// Creates the table if it is missing. If the table has no comment and this role owns it, its version is written there.
    /// Returns the version in the comment; `None` if there is no comment or a different one.
    ///
    /// `beside` is the script of the history, if there is to be one. A table that is created gets it in the same transaction,
    /// so that no claim comes between the two. If that fails, only the table is made.
    ///
    /// # Errors
    /// When the database can't be reached, does not answer in time, or refuses.
    pub fn make_table(&self, beside: Option<&str>) -> Result<Option<u32>, Failure> {
        let by = BootTime::now() + self.limit;
        let (version, _) = self.make_table_by(by, beside.map(str::to_owned))?;
        Ok(version)
    }

    /// Makes the table for a first claim, and its history beside it if that is possible.
    pub(super) fn make_table_and_history_by(&self, by: BootTime) -> Result<(), Failure> {
        let script = match record::install(&self.table, None) {
            Ok(script) => Some(script),
            Err(reason) => {
                self.warn_without_history(&reason.to_string());
                None
            }
        };
        let (_, without_history) = self.make_table_by(by, script)?;
        if let Some(reason) = without_history {
            self.warn_without_history(&reason);
        }
        Ok(())
    }

    fn warn_without_history(&self, reason: &str) {
        (self.reporter.warning)(&format!(
            "{} has no history of runs: {reason}; the lease is not affected (`lease init` creates the history later)",
            self.table.shown()
        ));
    }

    /// Runs a script that installs something beside the table. It must be safe to run the script twice.
    ///
    /// # Errors
    /// When the database can't be reached, does not answer in time, or refuses.
    pub fn install(&self, script: &str) -> Result<(), Failure> {
        let plan = Plan {
            what: "install",
            access: Access::Write,
            limit: self.limit,
            idle: self.limit,
            says: false,
            repeatable: true,
            begins: true,
            connection: Connection::Own,
            keeps_half: false,
        };
        let answered = self.operate(&plan, None, || {
            let script = script.to_owned();
            move |client: &mut Client| {
                client
                    .batch_execute(&script)
                    .map_err(|e| Failure::of_install(&e))?;
                Ok(Answer {
                    answer: (),
                    effect: Effect::Wrote,
                })
            }
        });
        answered.map(|_| ())
    }

    /// Makes the table where it is missing, and then runs `beside` too. Returns the version, and why `beside` was not possible.
    fn make_table_by(
        &self,
        by: BootTime,
        beside: Option<String>,
    ) -> Result<(Option<u32>, Option<String>), Failure> {
        let plan = Plan {
            what: "make the table",
            access: Access::Write,
            limit: by.remaining(),
            idle: self.limit,
            says: false,
            repeatable: true,
            begins: true,
            connection: Connection::Own,
            keeps_half: false,
        };
        let name = self.table.quoted();
        let answered = self.operate(&plan, None, || {
            let (statements, name) = (Arc::clone(&self.statements), name.clone());
            let beside = beside.clone();
            move |client: &mut Client| {
                query(client, &statements.make_lock, &[(&name, Type::TEXT)])?;
                // CREATE TABLE IF NOT EXISTS requires the CREATE privilege even if the table exists.
                let found = query(client, &statements.version, &[(&name, Type::TEXT)])?;
                let mut without_history = None;
                let (comment, is_owner) = match found.first() {
                    Some(table) => (
                        cell::<Option<String>>(table, "comment")?,
                        cell(table, "is_owner")?,
                    ),
                    None => {
                        run(client, &statements.create)?;
                        if let Some(beside) = &beside {
                            without_history = run_if_possible(client, beside)?;
                        }
                        (None, true)
                    }
                };
                refuse_misshapen(client, &statements)?;
                let version = match comment {
                    None if is_owner => {
                        run(client, &statements.mark)?;
                        Some(sql::VERSION)
                    }
                    comment => comment.as_deref().and_then(sql::version),
                };
                Ok(Answer {
                    answer: (version, without_history),
                    effect: Effect::Wrote,
                })
            }
        });
        match answered {
            Err(failure) if failure.fault == Fault::Denied => Err(failure.advise(&format!(
                "let a role that may create tables run `lease init`, and GRANT SELECT, INSERT, UPDATE ON {} TO {}",
                self.table.shown(),
                sql::quote(self.settings.user())
            ))),
            Err(failure) => Err(failure),
            Ok(sent) => Ok(sent.answer),
        }
    }
}

/// Runs a script that the rest of the transaction does not depend on. Answers why it was not possible.
fn run_if_possible(client: &mut Client, script: &str) -> Result<Option<String>, Failure> {
    run(client, "SAVEPOINT before_history")?;
    match client.batch_execute(script) {
        Ok(()) => Ok(None),
        Err(error) if error.as_db_error().is_some() => {
            run(client, "ROLLBACK TO SAVEPOINT before_history")?;
            Ok(Some(Failure::of_install(&error).to_string()))
        }
        Err(error) => Err(Failure::from_postgres(&error)),
    }
}

fn run(client: &mut Client, script: &str) -> Result<(), Failure> {
    client
        .batch_execute(script)
        .map_err(|e| Failure::from_postgres(&e))
}
