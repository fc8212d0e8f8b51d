//! What `status` reads.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use postgres::Client;
use postgres::types::Type;

use super::columns::row;
use super::database::Store;
use super::failure::Failure;
use super::history::{keys, last_runs_if_readable};
use super::kept::Connection;
use super::operate::Plan;
use super::sink::Sink;
use super::statement::query;
use super::transaction::{Answer, Effect};
use crate::connect::Access;
use crate::fault::Fault;
use crate::lease::Row;
use crate::record::{LastRun, Queries};
use crate::sql::{NamedKeys, Pattern};

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

/// A row of the lease table, or a key that was named in full and has none.
#[derive(Clone, Debug)]
pub enum Listed {
    /// The row.
    Row(Row),
    /// The key. It is free.
    NoRow(String),
}

impl Listed {
    fn key(&self) -> &str {
        match self {
            Self::Row(row) => &row.key,
            Self::NoRow(key) => key,
        }
    }
}

impl Store {
    /// The rows that match `patterns`, or all rows if there are none, sorted by key; and the keys among the patterns that
    /// have no row. `free`: rows of free keys too. A missing table has no rows. With each comes the last run of its key, if
    /// there is a history that this role may read. Each attempt begins with a new sink, so that none has a row twice.
    ///
    /// # Errors
    /// When the database can't be reached, does not answer in time, or refuses.
    pub fn status<S: Sink<(Listed, Option<LastRun>)>>(
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
            begins: true,
            connection: Connection::Own,
            keeps_half: false,
        };
        let (plain, likes) = keys(patterns);
        let named = NamedKeys::among(patterns);
        let name = self.table.quoted();
        let answered = self.operate(&plan, interrupt, || {
            let statements = Arc::clone(&self.statements);
            let (plain, likes, mut named) = (plain.clone(), likes.clone(), named.clone());
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
                    let is_last = batch.len() < BATCH;
                    let listed = with_named(batch, &mut named, is_last);
                    let mut last = history.last_runs(client, &listed)?;
                    for one in listed {
                        let last = last.remove(one.key());
                        rows.take((one, last));
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
            Err(failure) if failure.fault == Fault::NoTable => {
                let mut rows = sink();
                for key in with_named(Vec::new(), &mut named.clone(), true) {
                    rows.take((key, None));
                }
                Ok(Listing {
                    rows,
                    unsafe_default: false,
                    no_table: Some(self.table.shown()),
                })
            }
            Err(failure) => Err(self.advise_grant(failure, "SELECT")),
            Ok(sent) => Ok(sent.answer),
        }
    }
}

/// Rows, and in their place the named keys that have none.
fn with_named(batch: Vec<Row>, named: &mut NamedKeys, is_last: bool) -> Vec<Listed> {
    let mut listed = Vec::with_capacity(batch.len());
    for row in batch {
        listed.extend(
            named
                .missing_before(&row.key)
                .into_iter()
                .map(Listed::NoRow),
        );
        listed.push(Listed::Row(row));
    }
    if is_last {
        listed.extend(named.missing_at_the_end().into_iter().map(Listed::NoRow));
    }
    listed
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
        listed: &[Listed],
    ) -> Result<HashMap<String, LastRun>, Failure> {
        let Some(queries) = &self.queries else {
            return Ok(HashMap::new());
        };
        let keys: Vec<String> = listed.iter().map(|one| one.key().to_owned()).collect();
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
