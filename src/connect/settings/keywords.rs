//! The keywords of a connection string, and the environment variable of each.
//!
//! The list is that of libpq 17 (PostgreSQL documentation, "Parameter Key Words" and "Environment Variables").

/// A keyword of a connection string.
#[derive(Clone, Copy, Debug)]
pub(super) struct Keyword {
    /// The name before the `=`.
    pub(super) name: &'static str,
    /// The environment variable that sets it if neither the connection string nor the service file does.
    pub(super) variable: Option<&'static str>,
}

const fn with_variable(name: &'static str, variable: &'static str) -> Keyword {
    Keyword {
        name,
        variable: Some(variable),
    }
}

const fn without_variable(name: &'static str) -> Keyword {
    Keyword {
        name,
        variable: None,
    }
}

/// Every keyword that libpq 17 knows.
pub(super) const KEYWORDS: &[Keyword] = &[
    with_variable("service", "PGSERVICE"),
    with_variable("user", "PGUSER"),
    with_variable("password", "PGPASSWORD"),
    with_variable("passfile", "PGPASSFILE"),
    with_variable("channel_binding", "PGCHANNELBINDING"),
    with_variable("connect_timeout", "PGCONNECT_TIMEOUT"),
    with_variable("dbname", "PGDATABASE"),
    with_variable("host", "PGHOST"),
    with_variable("hostaddr", "PGHOSTADDR"),
    with_variable("port", "PGPORT"),
    with_variable("client_encoding", "PGCLIENTENCODING"),
    with_variable("options", "PGOPTIONS"),
    with_variable("application_name", "PGAPPNAME"),
    without_variable("fallback_application_name"),
    without_variable("keepalives"),
    without_variable("keepalives_idle"),
    without_variable("keepalives_interval"),
    without_variable("keepalives_count"),
    without_variable("tcp_user_timeout"),
    with_variable("sslmode", "PGSSLMODE"),
    with_variable("sslnegotiation", "PGSSLNEGOTIATION"),
    with_variable("sslcompression", "PGSSLCOMPRESSION"),
    with_variable("sslcert", "PGSSLCERT"),
    with_variable("sslkey", "PGSSLKEY"),
    without_variable("sslpassword"),
    with_variable("sslcertmode", "PGSSLCERTMODE"),
    with_variable("sslrootcert", "PGSSLROOTCERT"),
    with_variable("sslcrl", "PGSSLCRL"),
    with_variable("sslcrldir", "PGSSLCRLDIR"),
    with_variable("sslsni", "PGSSLSNI"),
    with_variable("requirepeer", "PGREQUIREPEER"),
    with_variable("require_auth", "PGREQUIREAUTH"),
    with_variable("ssl_min_protocol_version", "PGSSLMINPROTOCOLVERSION"),
    with_variable("ssl_max_protocol_version", "PGSSLMAXPROTOCOLVERSION"),
    with_variable("gssencmode", "PGGSSENCMODE"),
    with_variable("krbsrvname", "PGKRBSRVNAME"),
    with_variable("gsslib", "PGGSSLIB"),
    with_variable("gssdelegation", "PGGSSDELEGATION"),
    without_variable("replication"),
    with_variable("target_session_attrs", "PGTARGETSESSIONATTRS"),
    with_variable("load_balance_hosts", "PGLOADBALANCEHOSTS"),
];

/// The keyword of that name.
pub(super) fn find(name: &str) -> Option<&'static Keyword> {
    KEYWORDS.iter().find(|k| k.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_keyword_and_no_variable_is_listed_twice() {
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
