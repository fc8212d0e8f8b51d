//! Reads the columns of a row, each by its name.

use std::error::Error;

use postgres::Row as PgRow;
use postgres::types::{FromSql, Type};

use super::failure::Failure;
use crate::fault::Fault;
use crate::lease::{Fence, Row, ServerTime};

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
