//! Runs one statement.

use std::time::Duration;

use postgres::types::{ToSql, Type};
use postgres::{Client, Row};

use super::failure::Failure;
use super::transaction::{Answer, Effect};

type Parameter<'a> = (&'a (dyn ToSql + Sync), Type);

/// Runs a statement in one round trip. The types are given, so that it need not be prepared. A prepared statement would not
/// work with a pooler in transaction mode either.
pub(super) fn query(
    client: &mut Client,
    statement: &str,
    parameters: &[Parameter<'_>],
) -> Result<Vec<Row>, Failure> {
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
