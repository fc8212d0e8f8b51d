//! Opens a connection to the database within a time limit.
//!
//! The settings of `psql` must have the same meaning here: a URI or a `key=value` string, PG* variables, a service file, a
//! password file, the six values of `sslmode`. The `postgres` crate reads connection strings too, but it knows a third of
//! that, and reads some of it differently. So it gets the settings one by one.
//!
//! | file or room | what it does |
//! |---|---|
//! | `settings` | libpq's rules: keywords, URI, conninfo, service file, password file, environment, precedence |
//! | `tls` | the TLS handshake, and the verification of certificates |
//! | `wire` | the stream of a connection, and its limits |
//! | `error` | why a connection attempt failed |
//! | `time_limit` | work that may hang, within a time limit |
//! | `resolve` | the addresses of a host |
//! | `session` | whether a server is acceptable for `target_session_attrs` |
//! | `way` | with which encryption an address is tried, and when a second time |
//! | `attempt` | one host: its addresses, with the encryption that `sslmode` allows |
//! | `open` | host after host |

mod attempt;
mod error;
mod open;
mod resolve;
mod session;
mod settings;
mod time_limit;
mod tls;
mod way;
mod wire;

pub use self::attempt::{Connected, OnNotice};
pub use self::open::{Access, OpenError, open};
pub use self::settings::{Settings, SettingsError};

impl Settings {
    /// Resolves the settings of the process: the connection string first, then the service file, the environment and the
    /// defaults.
    ///
    /// # Errors
    /// A string that cannot be read, an unknown setting, one that cannot safely be ignored, or a file of certificates that
    /// cannot be used.
    pub fn resolve(given: Option<&str>) -> Result<Self, SettingsError> {
        Self::resolve_in(given, &|name| {
            // What is not UTF-8 becomes a character that does not match anything by accident.
            std::env::var_os(name).map(|v| v.to_string_lossy().into_owned())
        })
    }

    /// The same, with `variable` for the variables of the environment, so that tests can run in parallel.
    ///
    /// # Errors
    /// As [`Settings::resolve`].
    pub fn resolve_in(
        given: Option<&str>,
        variable: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Self, SettingsError> {
        let settings = Self::read(given, variable)?;
        // A file that cannot be used is a wrong setting, not a failed connection. If TLS is optional, libpq goes on
        // without it.
        if settings.requires_tls() {
            tls::prepare(&settings.tls).map_err(SettingsError::in_tls_files)?;
        }
        Ok(settings)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_file_that_tls_needs_is_a_wrong_setting() {
        let error = |given: &str| {
            let nowhere = |name: &str| (name == "HOME").then(|| "/nonexistent".to_owned());
            let settings = Settings::resolve_in(Some(given), &nowhere);
            settings.map(drop).map_err(|e| e.to_string())
        };
        let text = error("host=h sslmode=verify-full").unwrap_err();
        assert!(text.contains("root.crt"), "{text}");
        let text = error("host=h sslmode=require sslcertmode=require").unwrap_err();
        assert!(text.starts_with("sslcertmode=require"), "{text}");
        assert_eq!(error("host=/run/pg sslmode=verify-full"), Ok(()));
        assert_eq!(error("host=h sslmode=prefer sslcertmode=require"), Ok(()));
    }
}
