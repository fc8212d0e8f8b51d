//! Runs each statement and turns its rows into an outcome.

use std::time::Duration;

use postgres::Client;
use postgres::types::Type;

use super::columns::{Moment, cell, row};
use super::failure::Failure;
use super::statement::{micros, only_read, query, wrote};
use super::transaction::Answer;
use crate::fault::Fault;
use crate::lease::{
    Claim, Eviction, Fence, Grant, Holder, Key, LeaseState, Loss, Release, Renewal, Row,
    ServerTime, Term,
};
use crate::sql::Statements;
use crate::timing::Extension;

/// How often a claim is repeated if its snapshot does not show the row that it collides with.
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
            continue; // The row appeared and disappeared while the statement ran.
        };
        let (granted, inserted) = (
            cell::<bool>(first, "granted")?,
            cell::<bool>(first, "inserted")?,
        );
        let standing = row(first)?;
        if granted && (inserted || is_rounded(standing.acquired_at)) {
            refuse_misshapen(client, sql)?;
        }
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
                Some(fresh) => wrote(Claim::Granted(grant(key, holder, &row(fresh)?))),
                None => Err(Failure::new(
                    Fault::Refused,
                    "the inserted row is missing (is there a trigger or a policy on the table?)",
                )),
            };
        }
        if granted {
            return wrote(Claim::Granted(grant(key, holder, &standing)));
        }
        match standing.state {
            LeaseState::Held(_) | LeaseState::Cooling => return only_read(Claim::Held(standing)),
            // Another claim was faster, and the snapshot of this statement does not show it.
            LeaseState::Expired(_) | LeaseState::Free => {}
        }
    }
    Err(Failure::new(
        Fault::Refused,
        "the table accepts no row and shows none (is there a trigger or a policy on it?)",
    ))
}

/// Whether the column may store times with less precision. One time in a thousand is a whole millisecond by chance.
const fn is_rounded(time: ServerTime) -> bool {
    match time {
        ServerTime::At(micros) => micros % 1000 == 0,
        ServerTime::Always | ServerTime::Never => false,
    }
}

/// Refuses a table that can't hold leases because of its types or its primary key. This takes a round trip, so it is
/// checked only if a key is claimed for the first time, or if a time looks rounded.
pub(super) fn refuse_misshapen(client: &mut Client, sql: &Statements) -> Result<(), Failure> {
    let name = &sql.table;
    let shape = query(client, &sql.misshapen, &[(name, Type::TEXT)])?;
    match shape.first().and_then(|r| r.get::<_, Option<String>>(0)) {
        None => Ok(()),
        Some(flaw) => Err(Failure::new(
            Fault::Refused,
            format!(
                "{} is not a lease table: {flaw} (compare it with `lease init --print`, or name another table with --table)",
                sql.shown
            ),
        )),
    }
}

pub(super) fn renew(
    client: &mut Client,
    sql: &Statements,
    term: &Term,
    extension: Extension,
) -> Result<Answer<Renewal>, Failure> {
    let (k, h, f) = (term.key.as_str(), term.holder.as_str(), term.fence.get());
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
            &term.key,
            &term.holder,
            &row(renewed)?,
        )));
    }
    only_read(Renewal::Lost(loss(client, sql, term)?))
}

pub(super) fn release(
    client: &mut Client,
    sql: &Statements,
    term: &Term,
    hold: Duration,
) -> Result<Answer<Release>, Failure> {
    let (k, h, f) = (term.key.as_str(), term.holder.as_str(), term.fence.get());
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
    if let Some(released) = rows.first() {
        let expires_at = cell::<Moment>(released, "expires_at")?.0;
        return wrote(if expires_at > cell::<Moment>(released, "now")?.0 {
            Release::Released
        } else {
            Release::Expired(expires_at)
        });
    }
    only_read(match loss(client, sql, term)? {
        Loss::Released => Release::AlreadyReleased,
        lost @ (Loss::Taken(_)
        | Loss::Mismatch { .. }
        | Loss::Expired
        | Loss::NoRow
        | Loss::NoTable(_)) => Release::Lost(lost),
    })
}

/// Why a term is lost. This is a statement of its own, so that its snapshot shows what the previous one has waited for.
fn loss(client: &mut Client, sql: &Statements, term: &Term) -> Result<Loss, Failure> {
    let k = term.key.as_str();
    let rows = query(client, &sql.look, &[(&k, Type::TEXT)])?;
    let Some(found) = rows.first() else {
        return Ok(Loss::NoRow);
    };
    let found = row(found)?;
    let same_fence = found.fence == term.fence;
    Ok(match found.holder() {
        None if same_fence => Loss::Released,
        Some(holder) if same_fence && holder == term.holder.as_str() => Loss::Expired,
        holder if found.fence > term.fence && holder != Some(term.holder.as_str()) => {
            Loss::Taken(found)
        }
        None | Some(_) => Loss::Mismatch {
            asked: term.clone(),
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
        return wrote(Eviction::Evicted(row(evicted)?));
    }
    let Some(fence) = fence else {
        return only_read(Eviction::Free);
    };
    match query(client, &sql.look, &[(&k, Type::TEXT)])?.first() {
        None => only_read(Eviction::Free),
        Some(found) => {
            let found = row(found)?;
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

fn grant(key: &Key, holder: &Holder, row: &Row) -> Grant {
    Grant {
        term: Term {
            key: key.clone(),
            holder: holder.clone(),
            fence: row.fence,
        },
        expires_in: row.expires_in(),
        is_new: row.acquired_at == row.now,
        acquired_at: row.acquired_at,
        expires_at: row.expires_at,
    }
}
