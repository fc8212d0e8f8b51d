//! What each statement's rows mean: from rows to outcomes.

use std::time::Duration;

use postgres::types::{FromSql, ToSql, Type};
use postgres::{Client, Row as PgRow};

use super::bounded::Answer;
use super::failure::Failure;
use crate::fault::Fault;
use crate::lease::{
    Claim, Eviction, Fence, Grant, Holder, Key, Lease, LeaseState, Loss, Release, Renewal, Row,
};
use crate::sql::Statements;
use crate::timing::Extension;

type Parameter<'a> = (&'a (dyn ToSql + Sync), Type);

/// One round trip: types are given, so that nothing has to be prepared. A named prepared statement would also not survive
/// a pooler in transaction mode.
pub(super) fn query(
    client: &mut Client,
    statement: &str,
    parameters: &[Parameter<'_>],
) -> Result<Vec<PgRow>, Failure> {
    client
        .query_typed(statement, parameters)
        .map_err(|e| Failure::from_postgres(&e))
}

fn wrote<T>(answer: T) -> Result<Answer<T>, Failure> {
    Ok(Answer {
        answer,
        wrote: true,
    })
}

fn only_read<T>(answer: T) -> Result<Answer<T>, Failure> {
    Ok(Answer {
        answer,
        wrote: false,
    })
}

fn micros(duration: Duration) -> i64 {
    i64::try_from(duration.as_micros()).unwrap_or(i64::MAX)
}

/// How often a claim is asked again after it lost a race that its snapshot could not show.
const CLAIM_TRIES: u32 = 100;

pub(super) fn claim(
    client: &mut Client,
    sql: &Statements,
    key: &Key,
    holder: &Holder,
    extension: Extension,
) -> Result<Answer<Claim>, Failure> {
    let (k, h) = (key.as_str(), holder.as_str());
    let (t, keep) = (micros(extension.ttl().get()), extension.keeps_more());
    for _ in 0..CLAIM_TRIES {
        let rows = query(
            client,
            &sql.claim,
            &[
                (&k, Type::TEXT),
                (&h, Type::TEXT),
                (&t, Type::INT8),
                (&keep, Type::BOOL),
            ],
        )?;
        let Some(first) = rows.first() else {
            continue; // The row came and went while the statement ran.
        };
        let (granted, inserted) = (cell::<bool>(first, 0)?, cell::<bool>(first, 1)?);
        let standing = row(first, 2)?;
        if granted && inserted {
            let fence = standing.fence.get();
            let fresh = query(
                client,
                &sql.freshen,
                &[
                    (&k, Type::TEXT),
                    (&h, Type::TEXT),
                    (&t, Type::INT8),
                    (&fence, Type::INT8),
                ],
            )?;
            return match fresh.first() {
                Some(fresh) => wrote(Claim::Granted(grant(key, holder, row(fresh, 2)?))),
                None => Err(Failure::new(
                    Fault::Refused,
                    "the inserted row is missing (is there a trigger or a policy on the table?)",
                )),
            };
        }
        if granted {
            return wrote(Claim::Granted(grant(key, holder, standing)));
        }
        match standing.state {
            LeaseState::Held | LeaseState::Cooling => return only_read(Claim::Held(standing)),
            // Someone was faster, and this statement's snapshot does not show who.
            LeaseState::Expired | LeaseState::Free => {}
        }
    }
    Err(Failure::new(
        Fault::Refused,
        "the table accepts no row and shows none (is there a trigger or a policy on it?)",
    ))
}

pub(super) fn renew(
    client: &mut Client,
    sql: &Statements,
    lease: &Lease,
    extension: Extension,
) -> Result<Answer<Renewal>, Failure> {
    let (k, h, f) = (lease.key.as_str(), lease.holder.as_str(), lease.fence.get());
    let (t, keep) = (micros(extension.ttl().get()), extension.keeps_more());
    let rows = query(
        client,
        &sql.renew,
        &[
            (&k, Type::TEXT),
            (&h, Type::TEXT),
            (&t, Type::INT8),
            (&f, Type::INT8),
            (&keep, Type::BOOL),
        ],
    )?;
    if let Some(renewed) = rows.first() {
        return wrote(Renewal::Renewed(grant(
            &lease.key,
            &lease.holder,
            row(renewed, 2)?,
        )));
    }
    only_read(Renewal::Lost(loss(client, sql, lease)?))
}

pub(super) fn release(
    client: &mut Client,
    sql: &Statements,
    lease: &Lease,
    hold: Duration,
) -> Result<Answer<Release>, Failure> {
    let (k, h, f) = (lease.key.as_str(), lease.holder.as_str(), lease.fence.get());
    let hold = micros(hold);
    let rows = query(
        client,
        &sql.release,
        &[
            (&k, Type::TEXT),
            (&h, Type::TEXT),
            (&f, Type::INT8),
            (&hold, Type::INT8),
        ],
    )?;
    if !rows.is_empty() {
        return wrote(Release::Released);
    }
    only_read(match loss(client, sql, lease)? {
        Loss::Released => Release::AlreadyReleased,
        lost @ (Loss::Taken(_)
        | Loss::Mismatch { .. }
        | Loss::Expired
        | Loss::NoRow
        | Loss::NoTable(_)) => Release::Lost(lost),
    })
}

/// Why a term is over, asked in a statement of its own: it sees what the one before had waited for.
fn loss(client: &mut Client, sql: &Statements, lease: &Lease) -> Result<Loss, Failure> {
    let k = lease.key.as_str();
    let rows = query(client, &sql.look, &[(&k, Type::TEXT)])?;
    let Some(found) = rows.first() else {
        return Ok(Loss::NoRow);
    };
    let found = row(found, 0)?;
    let same_fence = found.fence == lease.fence;
    Ok(match &found.holder {
        None if same_fence => Loss::Released,
        Some(holder) if same_fence && holder == lease.holder.as_str() => Loss::Expired,
        holder if found.fence > lease.fence && holder.as_deref() != Some(lease.holder.as_str()) => {
            Loss::Taken(found)
        }
        None | Some(_) => Loss::Mismatch {
            asked: lease.clone(),
            found,
        },
    })
}

pub(super) fn evict(
    client: &mut Client,
    sql: &Statements,
    key: &Key,
    fence: Option<Fence>,
    hold: Duration,
) -> Result<Answer<Eviction>, Failure> {
    let (k, f, hold) = (key.as_str(), fence.map(Fence::get), micros(hold));
    let rows = query(
        client,
        &sql.evict,
        &[(&k, Type::TEXT), (&f, Type::INT8), (&hold, Type::INT8)],
    )?;
    if let Some(evicted) = rows.first() {
        return wrote(Eviction::Evicted(row(evicted, 0)?));
    }
    let Some(fence) = fence else {
        return only_read(Eviction::Free);
    };
    match query(client, &sql.look, &[(&k, Type::TEXT)])?.first() {
        None => only_read(Eviction::Free),
        Some(found) => {
            let found = row(found, 0)?;
            only_read(if found.fence == fence {
                Eviction::Free
            } else {
                Eviction::OtherTerm {
                    asked: fence,
                    found,
                }
            })
        }
    }
}

fn grant(key: &Key, holder: &Holder, row: Row) -> Grant {
    Grant {
        lease: Lease {
            key: key.clone(),
            holder: holder.clone(),
            fence: row.fence,
        },
        expires_in: row.expires_in(),
        is_new: row.held_for_ms == 0,
        acquired_at: row.acquired_at,
        expires_at: row.expires_at,
    }
}

/// Reads the columns that `{row:..}` makes, from column `at` on.
pub(super) fn row(r: &PgRow, at: usize) -> Result<Row, Failure> {
    let state = match cell::<&str>(r, at + 1)? {
        "held" => LeaseState::Held,
        "expired" => LeaseState::Expired,
        "cooling" => LeaseState::Cooling,
        _ => LeaseState::Free,
    };
    Ok(Row {
        key: cell(r, at)?,
        state,
        holder: cell(r, at + 2)?,
        fence: Fence::from_row(cell(r, at + 3)?),
        acquired_at: cell(r, at + 4)?,
        expires_at: cell(r, at + 5)?,
        expires_in_ms: cell(r, at + 6)?,
        held_for_ms: cell(r, at + 7)?,
    })
}

/// A column of the type that it has in a lease table. Somebody else's table of the same name may hold others.
fn cell<'a, T: FromSql<'a>>(r: &'a PgRow, at: usize) -> Result<T, Failure> {
    r.try_get(at).map_err(|_| {
        Failure::new(Fault::Refused, "the columns are not those of a lease table (see `lease init --print`, or name another table with --table)")
    })
}
