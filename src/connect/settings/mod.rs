//! The settings of a connection, by libpq's rules.
//!
//! | file | what it does |
//! |---|---|
//! | `keywords`, `suggest` | the keywords and their variables; the keyword that was meant |
//! | `raw` | settings as text |
//! | `conninfo`, `uri` | connection strings: `key=value` pairs, and URIs |
//! | `service_file`, `password_file` | the two files |
//! | `environment` | variables, home directory, name of the user |
//! | `layered` | which source of a setting counts |
//! | `values`, `require_auth`, `options` | which values are valid, and what they mean |
//! | `hosts`, `socket_options`, `tls_settings` | settings that belong together |
//! | `error` | the error of a setting |

use std::path::PathBuf;
use std::time::Duration;

mod conninfo;
mod environment;
mod error;
mod hosts;
mod keywords;
mod layered;
mod options;
mod password_file;
mod raw;
mod require_auth;
mod service_file;
mod socket_options;
mod suggest;
mod tls_settings;
mod uri;
mod values;

#[cfg(test)]
mod tests;

use self::environment::Environment;
use self::layered::LayeredSettings;
use self::socket_options::SocketOptions;

pub use self::error::SettingsError;
pub(super) use self::hosts::Host;
pub(super) use self::password_file::{
    Passfile, PassfileEntry, find as find_password, read as read_passfile,
};
pub(super) use self::require_auth::AuthMethods;
pub(super) use self::tls_settings::{Roots, TlsSettings};
pub(super) use self::values::{CertMode, ChannelBinding, SslMode, Target};

/// The settings of a connection, as libpq would read them.
///
/// They contain a password, so there is no `Debug`.
#[derive(Clone)]
pub struct Settings {
    pub(super) hosts: Vec<Host>,
    /// Whether a database was named. If not, all settings may be defaults.
    pub(super) is_named: bool,
    /// Whether a host was named. If not, the server must be on this machine.
    pub(super) is_host_named: bool,
    pub(super) user: String,
    pub(super) database: String,
    /// The password for all hosts. Without it, each host has its own line in the password file.
    pub(super) password: Option<String>,
    pub(super) passfile: Option<PathBuf>,
    pub(super) application_name: Option<String>,
    pub(super) target: Target,
    pub(super) shuffle: bool,
    pub(super) connect_timeout: Option<Duration>,
    pub(super) socket: SocketOptions,
    pub(super) tls: TlsSettings,
    pub(super) channel_binding: ChannelBinding,
    pub(super) require_auth: Option<AuthMethods>,
    warnings: Vec<String>,
}

impl Settings {
    /// Reads the settings: the connection string first, then the service file, the environment and the defaults.
    ///
    /// `variable` looks a variable of the environment up.
    ///
    /// # Errors
    /// A string that cannot be read, an unknown setting, or one that cannot safely be ignored.
    pub(super) fn read(
        given: Option<&str>,
        variable: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Self, SettingsError> {
        let environment = Environment::new(variable);
        let explicit = conninfo::parse(given.unwrap_or(""))?;
        let settings = LayeredSettings::gather(explicit, &environment)?;
        let is_given = given.is_some_and(|g| !g.trim().is_empty());
        Self::complete(&settings, &environment, is_given).map_err(|e| settings.locate(e))
    }

    /// The settings with their meaning, and the defaults for the others.
    fn complete(
        settings: &LayeredSettings,
        environment: &Environment<'_>,
        is_given: bool,
    ) -> Result<Self, SettingsError> {
        settings.refuse_unsupported()?;
        options::check(settings.get("options").unwrap_or(""))?;
        let user = match settings.nonempty("user") {
            Some(user) => user.to_owned(),
            None => environment.user().ok_or_else(|| {
                SettingsError::new("user: this process's user has no name (set user or PGUSER)")
            })?,
        };
        let database = settings.nonempty("dbname").unwrap_or(&user).to_owned();
        let password = settings.nonempty("password").map(str::to_owned);
        let passfile = match settings.nonempty("passfile") {
            _ if password.is_some() => None,
            Some(path) => Some(path.into()),
            None => environment.at_home(".pgpass"),
        };
        let mut warnings = Vec::new();
        if let Some(path) = &passfile
            && let Passfile::Unusable(why) = password_file::read(path)
        {
            warnings.push(why);
        }
        let tls = TlsSettings::read(settings, environment, &mut warnings)?;
        let is_host_named = ["host", "hostaddr"]
            .iter()
            .any(|name| settings.nonempty(name).is_some());
        let is_named = is_given
            || is_host_named
            || ["service", "dbname"]
                .iter()
                .any(|name| settings.nonempty(name).is_some())
            || environment.variable("PGSERVICE").is_some();
        Ok(Self {
            hosts: Host::list(settings)?,
            is_named,
            is_host_named,
            user,
            database,
            password,
            passfile,
            application_name: settings
                .get("application_name")
                .or_else(|| settings.get("fallback_application_name"))
                .map(str::to_owned),
            target: settings
                .choice("target_session_attrs", Target::VALUES)?
                .unwrap_or(Target::Any),
            shuffle: settings
                .choice(
                    "load_balance_hosts",
                    &[("disable", false), ("random", true)],
                )?
                .unwrap_or(false),
            // As in libpq, two seconds is the least.
            connect_timeout: settings
                .seconds("connect_timeout")?
                .map(|t| t.max(Duration::from_secs(2))),
            socket: SocketOptions::read(settings)?,
            tls,
            channel_binding: settings
                .choice("channel_binding", ChannelBinding::VALUES)?
                .unwrap_or(ChannelBinding::Prefer),
            require_auth: settings
                .nonempty("require_auth")
                .map(AuthMethods::parse)
                .transpose()?,
            warnings,
        })
    }

    /// Whether a connection without TLS would be an error for one of the hosts.
    pub(super) fn requires_tls(&self) -> bool {
        self.tls.mode >= SslMode::Require
            && self.hosts.iter().any(|h| h.socket_directory().is_none())
    }

    /// The user that logs in, for a message with a GRANT.
    #[must_use]
    pub fn user(&self) -> &str {
        &self.user
    }

    /// The name of the database.
    #[must_use]
    pub fn database(&self) -> &str {
        &self.database
    }

    /// Lines for stderr about what is ignored, such as a password file that others can read.
    #[must_use]
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// The servers to try, as messages name them: `db1:5432,db2:5432`.
    #[must_use]
    pub fn servers(&self) -> String {
        let hosts: Vec<String> = self.hosts.iter().map(ToString::to_string).collect();
        hosts.join(",")
    }
}
