//! What `status` reads.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use postgres::Client;
use postgres::types::Type;

use super::bounded::{Answer, Effect};
use super::database::Store;
use super::failure::Failure;
use super::history::last_runs_if_readable;
use super::operate::Plan;
use super::outcome::{query, row};
use crate::connect::Access;
use crate::fault::Fault;
use crate::lease::Row;
use crate::record::{LastRun, Queries};
use crate::sql::Pattern;

/// What `status` reads.
#[derive(Clone, Debug, Default)]
pub struct Listing {
    /// The rows, by key.
    pub rows: Vec<Row>,
    /// Whether the default of the fence column is unsafe: it does not follow the clock.
    pub unsafe_default: bool,
    /// The last run of each of these keys; `None` if there is no history that this role may read.
    pub last_runs: Option<Vec<LastRun>>,
    /// The name of the table, if it does not exist.
    pub no_table: Option<String>,
}

impl Store {
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
            says: false,
            repeatable: true,
            keeps_half: false,
        };
        let likes: Option<Vec<String>> =
            (!patterns.is_empty()).then(|| patterns.iter().map(|p| p.like.clone()).collect());
        let name = self.table.quoted();
        let answered = self.operate(&plan, interrupt, || {
            let (statements, likes) = (Arc::clone(&self.statements), likes.clone());
            let queries = Queries::new(&self.table).ok();
            let name = name.clone();
            move |client: &mut Client| {
                let found = query(
                    client,
                    &statements.status,
                    &[(&free, Type::BOOL), (&likes, Type::TEXT_ARRAY)],
                )?;
                let rows = found.iter().map(row).collect::<Result<Vec<Row>, _>>()?;
                let safe = query(client, &statements.fence_default, &[(&name, Type::TEXT)])?;
                let unsafe_default = safe.first().is_some_and(|r| !r.get::<_, bool>(0));
                // Last of all: a history that was altered must not hide the leases.
                let last_runs = queries.and_then(|queries| {
                    let keys: Vec<String> = rows.iter().map(|row| row.key.clone()).collect();
                    last_runs_if_readable(client, &queries, &keys).unwrap_or_default()
                });
                Ok(Answer {
                    answer: Listing {
                        rows,
                        last_runs,
                        unsafe_default,
                        no_table: None,
                    },
                    effect: Effect::Read,
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
}
