//! Removes keys that nobody uses, with their history, in short transactions.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use postgres::Client;
use postgres::types::Type;

use super::columns::{cell, text};
use super::database::Store;
use super::failure::Failure;
use super::history::likes;
use super::kept::Connection;
use super::operate::Plan;
use super::outcome::refuse_misshapen;
use super::statement::{micros, only_read, query};
use super::transaction::{Answer, Effect};
use crate::connect::Access;
use crate::fault::Fault;
use crate::record::Queries;
use crate::sql::{self, Pattern, Statements};

/// The most keys of one transaction.
const KEYS: usize = 500;
/// The most runs of one transaction. A claim of a key waits until the transaction has ended.
const RUNS: i64 = 5_000;
/// The most that a transaction may be idle while it locks rows that somebody could claim.
const IDLE: Duration = Duration::from_secs(1);

/// The keys that nobody has used for a long time.
#[derive(Clone, Debug, Default)]
pub struct Unused {
    /// The keys, in order.
    pub keys: Vec<String>,
    /// How many other keys stay because their fence is newer than that: a new claim could get a smaller one.
    pub ahead: u64,
    /// Whether there is a history.
    pub has_history: bool,
    /// How many runs the keys have. Counted only if nothing is to be removed.
    pub runs: u64,
    /// The name of the table, if it does not exist.
    pub no_table: Option<String>,
}

/// What was removed.
#[derive(Clone, Debug, Default)]
pub struct Purged {
    /// How many keys.
    pub keys: u64,
    /// How many runs.
    pub runs: u64,
}

impl Store {
    /// The keys that match `patterns`, or any keys if there are none, and that nobody has used for `age`. With `removes`,
    /// only for a role that may remove them. A missing table has no keys.
    ///
    /// # Errors
    /// When the database can't be reached, does not answer in time, or refuses; when a right is missing; when the fence of a
    /// removed key could go down.
    pub fn unused(
        &self,
        patterns: &[Pattern],
        age: Duration,
        removes: bool,
    ) -> Result<Unused, Failure> {
        let plan = Plan {
            what: "list unused keys",
            // A list that a standby gives may be old.
            access: if removes { Access::Write } else { Access::Read },
            limit: self.limit,
            idle: self.limit,
            says: false,
            repeatable: true,
            begins: true,
            connection: Connection::Own,
            keeps_half: false,
        };
        let likes = likes(patterns);
        let unsafe_default = self.advice_on_fences();
        let answered = self.operate(&plan, None, || {
            let listing = Listing {
                statements: Arc::clone(&self.statements),
                queries: Queries::new(&self.table).ok(),
                likes: likes.clone(),
                age: micros(age),
                removes,
                unsafe_default: unsafe_default.clone(),
            };
            move |client: &mut Client| only_read(listing.read(client)?)
        });
        match answered {
            Err(failure) if failure.fault == Fault::NoTable => Ok(Unused {
                no_table: Some(self.table.shown()),
                ..Unused::default()
            }),
            Err(failure) => Err(self.advise_grant(failure, "SELECT, UPDATE, DELETE")),
            Ok(sent) => Ok(sent.answer),
        }
    }

    /// Removes those of the keys that are still unused, with their history. What was removed is added to `purged`, also if a
    /// later transaction fails.
    ///
    /// # Errors
    /// When the database can't be reached, does not answer in time, or refuses.
    pub fn purge(
        &self,
        unused: &Unused,
        age: Duration,
        purged: &mut Purged,
    ) -> Result<(), Failure> {
        for keys in unused.keys.chunks(KEYS) {
            let mut removed = HashSet::new();
            loop {
                let batch = self.purge_batch(keys, age, unused.has_history)?;
                let before = removed.len();
                removed.extend(batch.keys);
                purged.keys += (removed.len() - before) as u64;
                purged.runs += u64::try_from(batch.runs).unwrap_or_default();
                if batch.runs < RUNS {
                    break;
                }
            }
        }
        Ok(())
    }

    fn purge_batch(
        &self,
        keys: &[String],
        age: Duration,
        has_history: bool,
    ) -> Result<Batch, Failure> {
        let plan = Plan {
            what: "purge",
            access: Access::Write,
            limit: self.limit,
            idle: self.limit.min(IDLE),
            says: false,
            // A second try could not tell what the first has removed.
            repeatable: false,
            begins: true,
            connection: Connection::Own,
            keeps_half: false,
        };
        let answered = self.operate(&plan, None, || {
            let (statements, keys) = (Arc::clone(&self.statements), keys.to_vec());
            let queries = Queries::new(&self.table).ok().filter(|_| has_history);
            move |client: &mut Client| {
                let batch = remove(client, &statements, queries.as_ref(), &keys, micros(age))?;
                Ok(Answer {
                    effect: if batch.keys.is_empty() {
                        Effect::Read
                    } else {
                        Effect::Wrote
                    },
                    answer: batch,
                })
            }
        });
        match answered {
            // Somebody has dropped it in the meantime.
            Err(failure) if failure.fault == Fault::NoTable => Ok(Batch::default()),
            Err(failure) => Err(self.advise_grant(failure, "SELECT, UPDATE, DELETE")),
            Ok(sent) => Ok(sent.answer),
        }
    }
}

/// What one transaction has removed.
#[derive(Default)]
struct Batch {
    /// The keys whose row or runs it has removed.
    keys: HashSet<String>,
    runs: i64,
}

fn remove(
    client: &mut Client,
    statements: &Statements,
    queries: Option<&Queries>,
    keys: &Vec<String>,
    age: i64,
) -> Result<Batch, Failure> {
    let mut batch = Batch::default();
    let rows = query(
        client,
        &statements.purge,
        &[(keys, Type::TEXT_ARRAY), (&age, Type::INT8)],
    )?;
    for row in &rows {
        batch.keys.extend(text(row, "key")?);
    }
    let Some(queries) = queries else {
        return Ok(batch);
    };
    // In a statement of its own, because it also has to see the runs that the trigger has ended with the rows.
    let rows = query(
        client,
        &queries.purge_runs,
        &[
            (keys, Type::TEXT_ARRAY),
            (&age, Type::INT8),
            (&RUNS, Type::INT8),
        ],
    )?;
    for row in &rows {
        batch.keys.extend(text(row, "key")?);
        batch.runs += cell::<i64>(row, "runs")?;
    }
    Ok(batch)
}

/// Everything that the list needs.
struct Listing {
    statements: Arc<Statements>,
    queries: Option<Queries>,
    likes: Option<Vec<String>>,
    age: i64,
    removes: bool,
    unsafe_default: String,
}

impl Listing {
    fn read(&self, client: &mut Client) -> Result<Unused, Failure> {
        let name = &self.statements.table;
        let mut unused = Unused::default();
        let found = self.tables(client)?;
        refuse_misshapen(client, &self.statements)?;
        let safe = query(
            client,
            &self.statements.fence_default,
            &[(name, Type::TEXT)],
        )?;
        if safe.first().is_some_and(|r| !r.get::<_, bool>(0)) {
            return Err(Failure::new(Fault::Refused, &self.unsafe_default));
        }

        let parameters = [
            (&self.age as _, Type::INT8),
            (&self.likes as _, Type::TEXT_ARRAY),
        ];
        for row in query(client, &self.statements.unused, &parameters)? {
            if cell(&row, "is_ahead")? {
                unused.ahead += 1;
            } else {
                unused.keys.extend(text(&row, "key")?);
            }
        }
        let queries = self.queries.as_ref();
        let Some(queries) = queries.filter(|queries| found.contains(&queries.name)) else {
            return Ok(unused);
        };
        unused.has_history = true;
        for row in query(client, &queries.unused_runs, &parameters)? {
            unused.keys.extend(text(&row, "key")?);
        }
        unused.keys.sort_unstable();
        unused.keys.dedup();
        if !self.removes {
            let rows = query(
                client,
                &queries.count_runs,
                &[(&unused.keys, Type::TEXT_ARRAY), (&self.age, Type::INT8)],
            )?;
            let runs = rows.first().map(|row| cell::<i64>(row, "runs"));
            unused.runs = u64::try_from(runs.transpose()?.unwrap_or_default()).unwrap_or_default();
        }
        Ok(unused)
    }

    /// The lease table and its history, as far as they exist. Both or nothing: a key must not lose its row and keep its
    /// history because a right is missing.
    fn tables(&self, client: &mut Client) -> Result<Vec<String>, Failure> {
        let mut named = vec![(&self.statements.table, &self.statements.shown)];
        if let Some(queries) = &self.queries {
            named.push((&queries.name, &queries.shown));
        }
        let names: Vec<&String> = named.iter().map(|(name, _)| *name).collect();
        let mut found = Vec::new();
        for row in query(
            client,
            &self.statements.rights,
            &[(&names, Type::TEXT_ARRAY)],
        )? {
            let name = text(&row, "name")?.unwrap_or_default();
            let right = if self.removes {
                "may_remove"
            } else {
                "may_read"
            };
            if !cell::<bool>(&row, right)? {
                let shown = named.iter().find(|(quoted, _)| **quoted == name);
                let owner = text(&row, "owner")?.unwrap_or_default();
                return Err(Failure::new(
                    Fault::Refused,
                    format!(
                        "permission denied for table {} (run it as {}, the owner of the table)",
                        shown.map_or(name.as_str(), |(_, shown)| shown.as_str()),
                        sql::quote(&owner)
                    ),
                ));
            }
            found.push(name);
        }
        Ok(found)
    }
}
