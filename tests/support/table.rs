//! The rows of `public.lease`, past `lease`.

use postgres::Transaction;

use super::Server;

/// Text as an SQL literal.
pub fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// A value from the row of `key`, or an empty string without one.
#[track_caller]
pub fn column(server: &Server, key: &str, column: &str) -> String {
    server.psql(&format!(
        "SELECT {column} FROM public.lease WHERE key = {}",
        literal(key)
    ))
}

/// Changes the row of `key`, as a person might with SQL.
#[track_caller]
pub fn change(server: &Server, key: &str, set: &str) {
    server.psql(&format!(
        "UPDATE public.lease SET {set} WHERE key = {}",
        literal(key)
    ));
}

/// Deletes the row of `key`, as a person might with SQL.
#[track_caller]
pub fn delete(server: &Server, key: &str) {
    server.psql(&format!(
        "DELETE FROM public.lease WHERE key = {}",
        literal(key)
    ));
}

/// Keeps everybody else from changing the row of `key` until the transaction ends.
#[track_caller]
pub fn lock_row(transaction: &mut Transaction<'_>, key: &str) {
    transaction
        .execute(
            "SELECT FROM public.lease WHERE key = $1 FOR UPDATE",
            &[&key],
        )
        .expect("the row is locked");
}
