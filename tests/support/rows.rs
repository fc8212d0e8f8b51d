//! What a server answers to a simple query.

use postgres::{Client, SimpleQueryMessage};

/// Runs SQL and returns its rows as `psql -XAt` would: columns parted by `|`, NULL as nothing.
pub fn rows(client: &mut Client, sql: &str) -> Result<String, postgres::Error> {
    let mut lines = Vec::new();
    for message in client.simple_query(sql)? {
        if let SimpleQueryMessage::Row(row) = message {
            let columns: Vec<&str> = (0..row.len())
                .map(|at| row.get(at).unwrap_or_default())
                .collect();
            lines.push(columns.join("|"));
        }
    }
    Ok(lines.join("\n"))
}
