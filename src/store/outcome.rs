//! Runs each statement and turns its rows into an outcome.

use std::error::Error;
use std::time::Duration;

use postgres::types::{FromSql, ToSql, Type};
use postgres::{Client, Row as PgRow};

use super::failure::Failure;
use super::transaction::{Answer, Effect};
use crate::fault::Fault;
use crate::lease::{
    Claim, Eviction, Fence, Grant, Holder, Key, LeaseState, Loss, Release, Renewal, Row,
    ServerTime, Term,
};
use crate::sql::Statements;
use crate::timing::Extension;

/// Takes rows one by one, so that not all of them have to be in memory.
pub trait Sink<T>: Send + 'static {
    /// Takes the next one.
    fn take(&mut self, item: T);
}

impl<T: Send + 'static> Sink<T> for Vec<T> {
    fn take(&mut self, item: T) {
        self.push(item);
    }
}

/// Ignores them.
impl<T> Sink<T> for () {
    fn take(&mut self, _: T) {}
}

type Parameter<'a> = (&'a (dyn ToSql + Sync), Type);

/// Runs a statement in one round trip. The types are given, so that it need not be prepared. A prepared statement would not
/// work with a pooler in transaction mode either.
pub(super) fn query(
    client: &mut Client,
    statement: &str,
    parameters: &[Parameter<'_>],
) -> Result<Vec<PgRow>, Failure> {
    client
        .query_typed(statement, parameters)
        .map_err(|e| Failure::from_postgres(&e))
}

pub(super) fn wrote<T>(answer: T) -> Result<Answer<T>, Failure> {
    Ok(Answer {
        answer,
        effect: Effect::Wrote,
    })
}

pub(super) fn only_read<T>(answer: T) -> Result<Answer<T>, Failure> {
    Ok(Answer {
        answer,
        effect: Effect::Read,
    })
}

pub(super) fn micros(duration: Duration) -> i64 {
    i64::try_from(duration.as_micros()).unwrap_or(i64::MAX)
}

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

/// Reads the columns key, holder, fence, acquired_at, expires_at and now.
pub(super) fn row(r: &PgRow) -> Result<Row, Failure> {
    Ok(Row::read(
        (
            cell::<AnyText>(r, "key")?.0,
            cell::<AnyText>(r, "holder")?.0,
            Fence::from_row(cell(r, "fence")?),
        ),
        cell::<Moment>(r, "acquired_at")?.0,
        cell::<Moment>(r, "expires_at")?.0,
        cell::<Moment>(r, "now")?.0,
    ))
}

/// A column by its name, with the type that it has in a lease table. Another program's table of this name may have another
/// type. A `timestamp` without time zone would mean a different time in each session with another time zone.
pub(super) fn cell<'a, T: FromSql<'a>>(r: &'a PgRow, name: &str) -> Result<T, Failure> {
    r.try_get(name).map_err(|_| {
        let column = r.columns().iter().find(|column| column.name() == name);
        let found = column.map_or("missing", |column| column.type_().name());
        Failure::new(
            Fault::Refused,
            format!("the table is not a lease table: its column {name} is {found} (compare it with `lease init --print`, or name another table with --table)"),
        )
    })
}

/// A column of text, or of nothing.
pub(super) fn text(r: &PgRow, name: &str) -> Result<Option<String>, Failure> {
    Ok(cell::<Option<AnyText>>(r, name)?.map(|text| text.0))
}

/// Text as it is in the table. In a database without an encoding (SQL_ASCII) it may not be UTF-8.
struct AnyText(String);

impl<'a> FromSql<'a> for AnyText {
    fn from_sql(_: &Type, raw: &'a [u8]) -> Result<Self, Box<dyn Error + Sync + Send>> {
        Ok(Self(String::from_utf8_lossy(raw).into_owned()))
    }

    fn accepts(kind: &Type) -> bool {
        matches!(*kind, Type::TEXT | Type::VARCHAR)
    }
}

/// A timestamptz. It can be infinity or -infinity, which the types of the standard library can't.
pub(super) struct Moment(pub(super) ServerTime);

/// Microseconds from 1970 to 2000. PostgreSQL counts from 2000.
const EPOCH: i64 = 946_684_800_000_000;

impl<'a> FromSql<'a> for Moment {
    fn from_sql(_: &Type, raw: &'a [u8]) -> Result<Self, Box<dyn Error + Sync + Send>> {
        Ok(Self(match i64::from_be_bytes(raw.try_into()?) {
            i64::MAX => ServerTime::Never,
            i64::MIN => ServerTime::Always,
            micros => ServerTime::At(micros.saturating_add(EPOCH)),
        }))
    }

    fn accepts(kind: &Type) -> bool {
        *kind == Type::TIMESTAMPTZ
    }
}
