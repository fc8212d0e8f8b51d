//! The settings of a connection, complete: what was found, and the defaults for the rest.

use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use super::SettingsError;
use super::conninfo;
use super::found::Found;
use super::options;
use super::passfile;
use super::surroundings::Surroundings;
use super::tls::TlsSettings;
use super::values::{self, AuthMethods, ChannelBinding, Target};

/// Where the server's socket is when no host is given: as Debian and Red Hat build libpq.
pub(super) const SOCKET_DIRECTORY: &str = "/var/run/postgresql";

/// Everything that is needed to open a connection, as libpq would have found it.
///
/// It holds a password, so it has no `Debug`.
#[derive(Clone)]
pub struct Settings {
    pub(super) hosts: Vec<Host>,
    /// Whether anybody said where the database is; if not, all of it is a default.
    pub(super) is_named: bool,
    /// Whether anybody named a host; if not, the server is looked for on this machine.
    pub(super) is_host_named: bool,
    pub(super) user: String,
    pub(super) database: String,
    /// The password that was given for every host; without it each host has its own line in the password file.
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

/// One place where a server may be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Host {
    /// A name, an address, or the directory of a socket; it is also what a certificate has to name.
    pub(super) name: Option<String>,
    /// Where to connect to, without asking DNS (`hostaddr`).
    pub(super) address: Option<IpAddr>,
    pub(super) port: u16,
}

impl Host {
    /// The directory of the socket, if the host is one; "@" stands for Linux's abstract names.
    pub(super) fn socket_directory(&self) -> Option<&str> {
        self.name
            .as_deref()
            .filter(|n| self.address.is_none() && n.starts_with(['/', '@']))
    }

    /// The name under which a line of the password file may stand: the host, or with `hostaddr` alone the address.
    pub(super) fn for_passfile(&self) -> Option<String> {
        match (&self.name, self.address) {
            (Some(name), _) => Some(name.clone()),
            (None, Some(address)) => Some(address.to_string()),
            (None, None) => None,
        }
    }
}

/// What is set on a TCP socket; nothing means that the operating system's value stays.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SocketOptions {
    pub(super) keepalives: bool,
    pub(super) idle: Option<Duration>,
    pub(super) interval: Option<Duration>,
    pub(super) count: Option<u32>,
    pub(super) user_timeout: Option<Duration>,
}

impl Settings {
    /// Finds the settings: `given` (the option or its variable) first, then service file, environment, defaults.
    ///
    /// # Errors
    /// A string that can't be read, an unknown setting, a setting that can't be honoured safely.
    pub fn resolve(given: Option<&str>) -> Result<Self, SettingsError> {
        Self::resolve_in(given, &|name| {
            // A variable that is no UTF-8 is made visible as such: it will not match anything by accident.
            std::env::var_os(name).map(|v| v.to_string_lossy().into_owned())
        })
    }

    /// The same, with the environment's variables looked up by `variable`: for tests that run side by side.
    ///
    /// # Errors
    /// As [`Settings::resolve`].
    pub fn resolve_in(
        given: Option<&str>,
        variable: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Self, SettingsError> {
        let around = Surroundings::new(variable);
        let found = Found::gather(conninfo::parse(given.unwrap_or(""))?, &around)?;
        let is_given = given.is_some_and(|g| !g.trim().is_empty());
        Self::complete(&found, &around, is_given).map_err(|e| found.place(e))
    }

    /// What was found, with the defaults for the rest.
    fn complete(
        found: &Found,
        around: &Surroundings<'_>,
        is_given: bool,
    ) -> Result<Self, SettingsError> {
        found.refuse_what_cannot_be_kept()?;
        options::check(found.get("options").unwrap_or(""))?;
        let user = match found.nonempty("user") {
            Some(user) => user.to_owned(),
            None => around.user().ok_or_else(|| {
                SettingsError::new(
                    "user: this process's user has no name here (set user or PGUSER)",
                )
            })?,
        };
        let database = found.nonempty("dbname").unwrap_or(&user).to_owned();
        let hosts = found.hosts()?;
        let password = found.nonempty("password").map(str::to_owned);
        let passfile = match found.nonempty("passfile") {
            _ if password.is_some() => None,
            Some(path) => Some(PathBuf::from(path)),
            None => around.at_home(".pgpass"),
        };
        let mut warnings = Vec::new();
        if let Some(path) = &passfile
            && let passfile::Lookup::Unusable(why) = passfile::read(path)
        {
            warnings.push(why);
        }
        let tls = TlsSettings::find(
            &|name| found.get(name).map(str::to_owned),
            around,
            &mut warnings,
        )?;
        if hosts.iter().any(|h| h.socket_directory().is_none()) {
            tls.check()?;
        }
        let is_host_named = ["host", "hostaddr"]
            .iter()
            .any(|name| found.nonempty(name).is_some());
        let is_named = is_given
            || is_host_named
            || ["service", "dbname"]
                .iter()
                .any(|name| found.nonempty(name).is_some())
            || around.variable("PGSERVICE").is_some();
        Ok(Self {
            hosts,
            is_named,
            is_host_named,
            user,
            database,
            password,
            passfile,
            application_name: found
                .get("application_name")
                .or_else(|| found.get("fallback_application_name"))
                .map(str::to_owned),
            target: found
                .choice("target_session_attrs", values::TARGETS)?
                .unwrap_or(Target::Any),
            shuffle: found
                .choice(
                    "load_balance_hosts",
                    &[("disable", false), ("random", true)],
                )?
                .unwrap_or(false),
            // libpq never waits for less than two seconds.
            connect_timeout: found
                .seconds("connect_timeout")?
                .map(|t| t.max(Duration::from_secs(2))),
            socket: found.socket_options()?,
            tls,
            channel_binding: found
                .choice("channel_binding", values::CHANNEL_BINDINGS)?
                .unwrap_or(ChannelBinding::Prefer),
            require_auth: found
                .nonempty("require_auth")
                .map(AuthMethods::parse)
                .transpose()?,
            warnings,
        })
    }

    /// The user that logs in, for a message that names a GRANT.
    #[must_use]
    pub fn user(&self) -> &str {
        &self.user
    }

    /// What was found and had to be left aside, such as a password file that others may read: lines for stderr.
    #[must_use]
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Who connects where, for `--verbose`: `app@db1:5432,db2:5432/orders`. It holds no password.
    #[must_use]
    pub fn describe(&self) -> String {
        let hosts: Vec<String> = self.hosts.iter().map(ToString::to_string).collect();
        format!("{}@{}/{}", self.user, hosts.join(","), self.database)
    }
}

impl std::fmt::Display for Host {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if let Some(directory) = self.socket_directory() {
            return write!(f, "{directory}/.s.PGSQL.{}", self.port);
        }
        match (&self.name, self.address) {
            (Some(name), None) | (Some(name), Some(_)) if name.contains(':') => {
                write!(f, "[{name}]")?
            }
            (Some(name), Some(address)) if *name != address.to_string() => {
                write!(f, "{name} ({address})")?
            }
            (Some(name), _) => write!(f, "{name}")?,
            (None, Some(IpAddr::V6(address))) => write!(f, "[{address}]")?,
            (None, Some(address)) => write!(f, "{address}")?,
            (None, None) => {}
        }
        write!(f, ":{}", self.port)
    }
}
