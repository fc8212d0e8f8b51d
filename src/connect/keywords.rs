//! The words of a connection string, and the variable that stands for each of them.
//!
//! The list is that of libpq 17 (PostgreSQL documentation, "Parameter Key Words" and "Environment Variables").

/// A word of a connection string.
#[derive(Clone, Copy, Debug)]
pub(super) struct Keyword {
    /// As it is written before the `=`.
    pub(super) name: &'static str,
    /// The environment variable that gives it when neither the string nor the service file does.
    pub(super) variable: Option<&'static str>,
}

const fn word(name: &'static str, variable: &'static str) -> Keyword {
    Keyword {
        name,
        variable: Some(variable),
    }
}

const fn bare(name: &'static str) -> Keyword {
    Keyword {
        name,
        variable: None,
    }
}

/// Every keyword that libpq 17 knows. What is done with each is decided in `settings` and `values`.
pub(super) const KEYWORDS: &[Keyword] = &[
    word("service", "PGSERVICE"),
    word("user", "PGUSER"),
    word("password", "PGPASSWORD"),
    word("passfile", "PGPASSFILE"),
    word("channel_binding", "PGCHANNELBINDING"),
    word("connect_timeout", "PGCONNECT_TIMEOUT"),
    word("dbname", "PGDATABASE"),
    word("host", "PGHOST"),
    word("hostaddr", "PGHOSTADDR"),
    word("port", "PGPORT"),
    word("client_encoding", "PGCLIENTENCODING"),
    word("options", "PGOPTIONS"),
    word("application_name", "PGAPPNAME"),
    bare("fallback_application_name"),
    bare("keepalives"),
    bare("keepalives_idle"),
    bare("keepalives_interval"),
    bare("keepalives_count"),
    bare("tcp_user_timeout"),
    word("sslmode", "PGSSLMODE"),
    word("sslnegotiation", "PGSSLNEGOTIATION"),
    word("sslcompression", "PGSSLCOMPRESSION"),
    word("sslcert", "PGSSLCERT"),
    word("sslkey", "PGSSLKEY"),
    bare("sslpassword"),
    word("sslcertmode", "PGSSLCERTMODE"),
    word("sslrootcert", "PGSSLROOTCERT"),
    word("sslcrl", "PGSSLCRL"),
    word("sslcrldir", "PGSSLCRLDIR"),
    word("sslsni", "PGSSLSNI"),
    word("requirepeer", "PGREQUIREPEER"),
    word("require_auth", "PGREQUIREAUTH"),
    word("ssl_min_protocol_version", "PGSSLMINPROTOCOLVERSION"),
    word("ssl_max_protocol_version", "PGSSLMAXPROTOCOLVERSION"),
    word("gssencmode", "PGGSSENCMODE"),
    word("krbsrvname", "PGKRBSRVNAME"),
    word("gsslib", "PGGSSLIB"),
    word("gssdelegation", "PGGSSDELEGATION"),
    bare("replication"),
    word("target_session_attrs", "PGTARGETSESSIONATTRS"),
    word("load_balance_hosts", "PGLOADBALANCEHOSTS"),
];

/// The keyword of that name.
pub(super) fn find(name: &str) -> Option<&'static Keyword> {
    KEYWORDS.iter().find(|k| k.name == name)
}

/// The known keyword that `name` was most likely meant to be, if any is close enough to be worth a hint.
pub(super) fn nearest(name: &str) -> Option<&'static str> {
    nearest_of(name, KEYWORDS.iter().map(|k| k.name))
}

/// The word among `known` that needs the fewest changes to become `given`; none if even that one is far off.
pub(super) fn nearest_of<'a>(given: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let given = given.to_ascii_lowercase();
    known
        .map(|k| (distance(&given, k), k))
        .min_by_key(|(d, _)| *d)
        .filter(|(d, k)| *d <= 1 + k.len() / 4)
        .map(|(_, k)| k)
}

/// How many characters have to be inserted, removed, replaced or swapped with their neighbour.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut rows = vec![(0..=b.len()).collect::<Vec<usize>>()];
    for i in 1..=a.len() {
        let mut row = vec![i];
        for j in 1..=b.len() {
            let replaced = rows[i - 1][j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut least = replaced.min(rows[i - 1][j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                least = least.min(rows[i - 2][j - 2] + 1);
            }
            row.push(least);
        }
        rows.push(row);
    }
    rows[a.len()][b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mistyped_word_finds_its_neighbour() {
        for (given, meant) in [
            ("sslmod", Some("sslmode")),
            ("hots", Some("host")),
            ("database", None),
            ("keepalive_count", Some("keepalives_count")),
            ("target_sessions_attrs", Some("target_session_attrs")),
            ("SSLMODE", Some("sslmode")),
            ("pasword", Some("password")),
            ("zzz", None),
        ] {
            assert_eq!(nearest(given), meant, "{given}");
        }
    }

    #[test]
    fn no_word_and_no_variable_stands_there_twice() {
        for (i, a) in KEYWORDS.iter().enumerate() {
            for b in &KEYWORDS[i + 1..] {
                assert_ne!(a.name, b.name);
                assert!(
                    a.variable.is_none() || a.variable != b.variable,
                    "{}",
                    a.name
                );
            }
        }
    }
}
