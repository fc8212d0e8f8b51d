//! Where the database is, and opening a connection to it within a time limit.
//!
//! People have one way of saying where their database is, and it works in `psql`. It has to work here, word for
//! word: a URI or a `key=value` string, PG* variables, a service file, a password file.

use std::fmt;

use crate::clock::BootTime;
use crate::fault::Fault;

/// What the connection is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Reading: any server will do, a standby too.
    Read,
    /// Writing: of several hosts, the one that takes writes.
    Write,
}

/// Everything that is needed to open a connection, as libpq would have found it.
///
/// It holds a password, so it has no `Debug`.
#[derive(Clone)]
pub struct Settings {
    config: postgres::Config,
}

/// A connection string, variable or file that can't be used. The text names the setting and says what would be right;
/// it never holds a password.
#[derive(Debug)]
pub struct SettingsError(String);

impl fmt::Display for SettingsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for SettingsError {}

/// Why no connection could be opened.
#[derive(Debug)]
pub struct OpenError {
    /// The kind of failure, of the host that decided it.
    pub fault: Fault,
    /// A fragment for a message: every host that was tried, with its reason. Never a password.
    pub message: String,
}

impl Settings {
    /// Finds the settings: `given` (the option or its variable) first, then service file, environment, defaults.
    ///
    /// # Errors
    /// A string that can't be read, an unknown setting, a setting that can't be honoured safely.
    pub fn resolve(given: Option<&str>) -> Result<Self, SettingsError> {
        let config = given
            .unwrap_or("")
            .parse()
            .map_err(|e: postgres::Error| SettingsError(format!("{e}")))?;
        Ok(Self { config })
    }

    /// The user that logs in, for a message that names a GRANT.
    #[must_use]
    pub fn user(&self) -> &str {
        self.config.get_user().unwrap_or("")
    }
}

/// Opens a connection, before `by`.
///
/// With several hosts each gets its share of the time that is left. The calling thread may hang in spite of `by`, so it
/// must be one that can be abandoned: the `postgres` crate can't bound TLS, authentication or DNS.
///
/// # Errors
/// When no host could be used; the message names each with its reason.
pub fn open(
    settings: &Settings,
    application_name: &str,
    access: Access,
    by: BootTime,
) -> Result<postgres::Client, OpenError> {
    let _ = access;
    let mut config = settings.config.clone();
    config.application_name(application_name);
    config.connect_timeout(by.remaining());
    config.connect(postgres::NoTls).map_err(|e| OpenError {
        fault: e
            .code()
            .map_or(Fault::Unreachable, |c| Fault::of_sqlstate(c.code())),
        message: format!("{e}"),
    })
}
