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

/// How an eviction by the superuser with `lease release --force` is told on the evicted side.
pub fn evicted() -> String {
    format!("its holder was evicted {}", by_force())
}

/// Who has done it.
pub fn by_force() -> String {
    let host = hostname::get().expect("a name");
    format!(
        "by role postgres on {} with lease release --force",
        host.to_string_lossy()
    )
}
