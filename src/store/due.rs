//! A claim that is granted only if the key is due: if it has not succeeded within a period.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use postgres::Client;
use postgres::types::Type;

use super::columns::{Moment, cell, text};
use super::database::Store;
use super::failure::Failure;
use super::history::{HistoryAccess, access, time};
use super::outcome;
use super::statement::{micros, only_read, query};
use super::transaction::{Answer, Effect, Sent};
use crate::fault::Fault;
use crate::lease::{Claim, Fence, Holder, Key, ServerTime, Success};
use crate::record::Queries;
use crate::sql;
use crate::timing::Extension;

impl Store {
    /// Claims as [`Store::claim`] does, unless the key has succeeded within `period`: then nothing is claimed.
    ///
    /// The history decides, in the transaction of the claim and under the lock of the row, so two replicas can't both
    /// decide that the key is due.
    ///
    /// # Errors
    /// As [`Store::claim`]. Also when there is no history that this role may read, and when the history does not note the
    /// claim: its success would not be known later.
    pub fn claim_if_due(
        &self,
        key: &Key,
        holder: &Holder,
        extension: Extension,
        period: Duration,
        limit: Duration,
        interrupt: Option<&AtomicBool>,
    ) -> Result<Sent<Claim>, Failure> {
        let queries =
            Queries::new(&self.table).map_err(|reason| needs_history(&reason.to_string()))?;
        let grant = format!(
            "GRANT SELECT ON {} TO {}",
            queries.shown,
            sql::quote(self.settings.user())
        );
        let table = self.table.name().to_owned();
        let work = || {
            let (statements, key, holder) =
                (Arc::clone(&self.statements), key.clone(), holder.clone());
            let (queries, grant, table) = (queries.clone(), grant.clone(), table.clone());
            move |client: &mut Client| {
                let may_claim = refuse_without_history(client, &queries, &grant)?;
                // A look first, so that a run that is not due writes nothing.
                if let Some(success) = look(client, &queries, &key, period, None)?.success {
                    // What stands in the way of a claim is told at once, not when the key is due.
                    if !may_claim {
                        return Err(Failure::new(
                            Fault::Denied,
                            format!("permission denied for table {table}"),
                        ));
                    }
                    return only_read(Claim::NotDue(success));
                }
                let claimed = outcome::claim(client, &statements, &key, &holder, extension)?;
                let Claim::Granted(grant) = &claimed.answer else {
                    return Ok(claimed);
                };
                let found = look(client, &queries, &key, period, Some(grant.term.fence))?;
                if let Some(success) = found.success {
                    return Ok(Answer {
                        answer: Claim::NotDue(success),
                        effect: Effect::Undo,
                    });
                }
                if !found.is_noted {
                    return Err(needs_history(&format!(
                        "{} has not noted this claim (`lease init`, run by the owner of the lease table, repairs it)",
                        queries.shown
                    )));
                }
                Ok(claimed)
            }
        };
        self.claim_by(extension, limit, interrupt, work)
    }
}

/// What the history says about a key.
struct Found {
    success: Option<Success>,
    is_noted: bool,
}

fn look(
    client: &mut Client,
    queries: &Queries,
    key: &Key,
    period: Duration,
    fence: Option<Fence>,
) -> Result<Found, Failure> {
    let (key, fence) = (key.as_str(), fence.map(Fence::get));
    let rows = query(
        client,
        &queries.due,
        &[
            (&key, Type::TEXT),
            (&micros(period), Type::INT8),
            (&fence, Type::INT8),
        ],
    )?;
    let Some(row) = rows.first() else {
        return Err(needs_history("it gave no answer"));
    };
    let success = match time(row, "ended_at")? {
        None => None,
        Some(ended_at) => {
            let ago = since(cell::<Moment>(row, "now")?.0, ended_at);
            Some(Success {
                place: match text(row, "host")? {
                    Some(host) => host,
                    None => text(row, "holder")?.unwrap_or_default(),
                },
                ago,
                due_in: period.saturating_sub(ago),
            })
        }
    };
    Ok(Found {
        success,
        is_noted: cell(row, "is_noted")?,
    })
}

/// Zero, where the server's clock was set back.
fn since(now: ServerTime, earlier: ServerTime) -> Duration {
    let ms = now.millis_since(earlier).unwrap_or(0);
    Duration::from_millis(u64::try_from(ms).unwrap_or(0))
}

/// Answers whether this role may claim.
fn refuse_without_history(
    client: &mut Client,
    queries: &Queries,
    grant: &str,
) -> Result<bool, Failure> {
    match access(client, queries)? {
        HistoryAccess::Readable { may_claim } => Ok(may_claim),
        HistoryAccess::Denied => Err(needs_history(&format!(
            "this role may not read {} ({grant})",
            queries.shown
        ))),
        HistoryAccess::NoHistory => Err(needs_history(&format!(
            "{} does not exist (`lease init`, run by the owner of the lease table, creates it)",
            queries.shown
        ))),
        // The caller makes it, with its history.
        HistoryAccess::NoTable => Err(Failure::new(
            Fault::NoTable,
            "there is no lease table (`lease init` creates it)",
        )),
    }
}

fn needs_history(why: &str) -> Failure {
    Failure::new(
        Fault::Refused,
        format!("--once-per needs the history of runs: {why}"),
    )
}
