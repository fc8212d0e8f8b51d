//! What `status` reads.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use postgres::Client;
use postgres::types::Type;

use super::database::Store;
use super::failure::Failure;
use super::history::{keys, last_runs_if_readable};
use super::kept::Connection;
use super::operate::Plan;
use super::outcome::{Sink, query, row};
use super::transaction::{Answer, Effect};
use crate::connect::Access;
use crate::fault::Fault;
use crate::lease::Row;
use crate::record::{LastRun, Queries};
use crate::sql::Pattern;

/// How many rows are read at a time.
const BATCH: usize = 1000;

/// What `status` reads.
#[derive(Clone, Debug)]
pub struct Listing<S> {
    /// What has taken the rows.
    pub rows: S,
    /// Whether the default of the fence column is unsafe: it does not follow the clock.
    pub unsafe_default: bool,
    /// The name of the table, if it does not exist.
    pub no_table: Option<String>,
}

impl Store {
    /// The rows that match `patterns`, or all rows if there are none, sorted by key. `free`: rows of free keys too. A
    /// missing table has no rows. With each row comes the last run of its key, if there is a history that this role may read.
    /// Each attempt begins with a new sink, so that none has a row twice.
    ///
    /// # Errors
    /// When the database can't be reached, does not answer in time, or refuses.
    pub fn status<S: Sink<(Row, Option<LastRun>)>>(
        &self,
        patterns: &[Pattern],
        free: bool,
        interrupt: Option<&AtomicBool>,
        sink: impl Fn() -> S,
    ) -> Result<Listing<S>, Failure> {
        let plan = Plan {
            what: "status",
            access: Access::Read,
            limit: self.limit,
            idle: self.limit,
            says: false,
            repeatable: true,
            connection: Connection::Own,
            keeps_half: false,
        };
        let (plain, likes) = keys(patterns);
        let name = self.table.quoted();
        let answered = self.operate(&plan, interrupt, || {
            let statements = Arc::clone(&self.statements);
            let (plain, likes) = (plain.clone(), likes.clone());
            let queries = Queries::new(&self.table).ok();
            let (name, mut rows) = (name.clone(), sink());
            move |client: &mut Client| {
                query(
                    client,
                    &format!("DECLARE leases NO SCROLL CURSOR FOR {}", statements.status),
                    &[
                        (&free, Type::BOOL),
                        (&likes, Type::TEXT_ARRAY),
                        (&plain, Type::TEXT_ARRAY),
                    ],
                )?;
                let safe = query(client, &statements.fence_default, &[(&name, Type::TEXT)])?;
                let unsafe_default = safe.first().is_some_and(|r| !r.get::<_, bool>(0));
                let mut history = History::new(client, queries)?;
                loop {
                    let found = query(client, &format!("FETCH {BATCH} FROM leases"), &[])?;
                    let batch = found.iter().map(row).collect::<Result<Vec<Row>, _>>()?;
                    let mut last = history.last_runs(client, &batch)?;
                    let is_last = batch.len() < BATCH;
                    for row in batch {
                        let last = last.remove(&row.key);
                        rows.take((row, last));
                    }
                    if is_last {
                        break;
                    }
                }
                Ok(Answer {
                    answer: Listing {
                        rows,
                        unsafe_default,
                        no_table: None,
                    },
                    effect: Effect::Read,
                })
            }
        });
        match answered {
            Err(failure) if failure.fault == Fault::NoTable => Ok(Listing {
                rows: sink(),
                unsafe_default: false,
                no_table: Some(self.table.shown()),
            }),
            Err(failure) => Err(self.advise_grant(failure, "SELECT")),
            Ok(sent) => Ok(sent.answer),
        }
    }
}

/// The history beside the leases, as long as it can be read. One that was altered must not hide the leases.
struct History {
    queries: Option<Queries>,
}

impl History {
    /// What is read from it later can fail without ending the transaction.
    fn new(client: &mut Client, queries: Option<Queries>) -> Result<Self, Failure> {
        if queries.is_some() {
            client
                .batch_execute("SAVEPOINT history")
                .map_err(|e| Failure::from_postgres(&e))?;
        }
        Ok(Self { queries })
    }

    fn last_runs(
        &mut self,
        client: &mut Client,
        rows: &[Row],
    ) -> Result<HashMap<String, LastRun>, Failure> {
        let Some(queries) = &self.queries else {
            return Ok(HashMap::new());
        };
        let keys: Vec<String> = rows.iter().map(|row| row.key.clone()).collect();
        match last_runs_if_readable(client, queries, &keys) {
            Ok(Some(last)) => Ok(last
                .into_iter()
                .map(|last| (last.run.key.clone(), last))
                .collect()),
            Ok(None) => {
                self.queries = None;
                Ok(HashMap::new())
            }
            Err(_) => {
                self.queries = None;
                client
                    .batch_execute("ROLLBACK TO SAVEPOINT history")
                    .map_err(|e| Failure::from_postgres(&e))?;
                Ok(HashMap::new())
            }
        }
    }
}
