//! Which value counts: what was given, then the service file, then the environment, then the default.
//!
//! PostgreSQL documentation, "Database Connection Control Functions" and "Environment Variables"; the order is that of
//! `conninfo_add_defaults`, the checks are those of `pqConnectOptions2`.

use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use super::SettingsError;
use super::conninfo::{self, Words};
use super::keywords::{self, KEYWORDS};
use super::passfile;
use super::service;
use super::surroundings::Surroundings;
use super::tls::TlsSettings;
use super::values::{self, AuthMethods, ChannelBinding, Target};

/// Where the server's socket is when no host is given: as Debian and Red Hat build libpq.
pub(super) const SOCKET_DIRECTORY: &str = "/var/run/postgresql";

/// How often, and how long, a silent connection is asked whether it is still there. The operating system's own
/// two hours would keep an abandoned thread alive for as long.
const KEEPALIVES_IDLE: Duration = Duration::from_secs(30);
const KEEPALIVES_INTERVAL: Duration = Duration::from_secs(10);
const KEEPALIVES_COUNT: u32 = 3;
/// How long sent data may stay unacknowledged.
const TCP_USER_TIMEOUT: Duration = Duration::from_secs(60);

/// Everything that is needed to open a connection, as libpq would have found it.
///
/// It holds a password, so it has no `Debug`.
#[derive(Clone)]
pub struct Settings {
    pub(super) hosts: Vec<Host>,
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
    options: Vec<(String, String)>,
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

    /// The names under which a line of the password file may stand, the first one before the second. With `hostaddr`
    /// alone the documentation has the address, and libpq (15) looks for "localhost".
    pub(super) fn for_passfile(&self) -> Vec<String> {
        match (&self.name, self.address) {
            (Some(name), _) => vec![name.clone()],
            (None, Some(address)) => vec![address.to_string(), "localhost".to_owned()],
            (None, None) => Vec::new(),
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
        found.refuse_what_cannot_be_kept()?;
        let user = match found.get("user") {
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
            &around,
            &mut warnings,
        )?;
        if hosts.iter().any(|h| h.socket_directory().is_none()) {
            tls.check()?;
        }
        Ok(Self {
            hosts,
            user,
            database,
            password,
            passfile,
            application_name: found
                .nonempty("application_name")
                .or_else(|| found.nonempty("fallback_application_name"))
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
            options: values::options(found.get("options").unwrap_or(""))?,
            warnings,
        })
    }

    /// The user that logs in, for a message that names a GRANT.
    #[must_use]
    pub fn user(&self) -> &str {
        &self.user
    }

    /// Run-time settings that were asked for with `options` or PGOPTIONS (`-c name=value`), in their order.
    ///
    /// They are never sent at startup, which a pooler would refuse, and never set for the session, which would leak to a
    /// pooler's next client. Each transaction has to make them its own, with `set_config(name, value, true)`.
    #[must_use]
    pub fn options(&self) -> &[(String, String)] {
        &self.options
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

/// The text of every setting that was given somewhere.
struct Found(Words);

impl Found {
    fn gather(mut words: Words, around: &Surroundings<'_>) -> Result<Self, SettingsError> {
        // The last of several equal words in a string counts.
        words.reverse();
        let mut found = Self(words);
        if let Some(service) = found
            .get("service")
            .map(str::to_owned)
            .or_else(|| around.variable("PGSERVICE"))
        {
            found.add(service::find(&service, around)?);
        }
        for keyword in KEYWORDS {
            if let Some(value) = keyword.variable.and_then(|v| around.variable(v)) {
                found.add(vec![(keyword.name, value)]);
            }
        }
        if around
            .variable("PGREQUIRESSL")
            .is_some_and(|v| v.starts_with('1'))
        {
            found.add(vec![("sslmode", "require".to_owned())]);
        }
        Ok(found)
    }

    /// Adds words that yield to those already there.
    fn add(&mut self, words: Words) {
        self.0.extend(words);
    }

    fn get(&self, name: &str) -> Option<&str> {
        debug_assert!(keywords::find(name).is_some(), "{name} is no keyword");
        self.0
            .iter()
            .find(|(known, _)| *known == name)
            .map(|(_, value)| value.as_str())
    }

    /// The value, for settings where libpq takes an empty one for none.
    fn nonempty(&self, name: &str) -> Option<&str> {
        self.get(name).filter(|v| !v.is_empty())
    }

    fn choice<T: Copy>(
        &self,
        name: &str,
        allowed: &[(&str, T)],
    ) -> Result<Option<T>, SettingsError> {
        self.get(name)
            .map(|v| values::choice(name, v, allowed))
            .transpose()
    }

    fn seconds(&self, name: &str) -> Result<Option<Duration>, SettingsError> {
        Ok(self
            .get(name)
            .map(|v| values::seconds(name, v))
            .transpose()?
            .flatten())
    }

    /// What would weaken the connection if it were left aside in silence.
    fn refuse_what_cannot_be_kept(&self) -> Result<(), SettingsError> {
        let gss = [("disable", false), ("prefer", false), ("require", true)];
        if self.choice("gssencmode", &gss)? == Some(true) {
            return Err(SettingsError::new(
                "gssencmode=require can't be honoured: there is no GSSAPI here (use TLS: sslmode=verify-full)",
            ));
        }
        if self.nonempty("requirepeer").is_some() {
            return Err(SettingsError::new(
                "requirepeer can't be honoured: the owner of the server's socket is not looked at here",
            ));
        }
        if self.nonempty("sslcrldir").is_some() {
            return Err(SettingsError::new(
                "sslcrldir can't be honoured: give one file of revocation lists as sslcrl",
            ));
        }
        if let Some(value) = self.nonempty("replication")
            && !["false", "off", "no", "0"].contains(&value.to_ascii_lowercase().as_str())
        {
            return Err(SettingsError::new(
                "replication can't be honoured: a lease needs an ordinary connection",
            ));
        }
        Ok(())
    }

    /// The hosts, with a port each: three lists that belong together item by item.
    fn hosts(&self) -> Result<Vec<Host>, SettingsError> {
        let items = |name| {
            self.nonempty(name)
                .map(|v| v.split(',').map(str::trim).collect::<Vec<_>>())
        };
        let (names, addresses) = (items("host"), items("hostaddr"));
        let ports = items("port").unwrap_or_default();
        let count = match (&names, &addresses) {
            (Some(names), Some(addresses)) if names.len() != addresses.len() => {
                return Err(SettingsError::new(format!(
                    "host names {} and hostaddr {}: they have to be equally many",
                    names.len(),
                    addresses.len()
                )));
            }
            (_, Some(addresses)) => addresses.len(),
            (Some(names), None) => names.len(),
            (None, None) => 1,
        };
        if ports.len() > 1 && ports.len() != count {
            return Err(SettingsError::new(format!(
                "port: {} are given for {count} {}: give one for all, or one for each",
                ports.len(),
                if count == 1 { "host" } else { "hosts" }
            )));
        }
        let pick = |list: &Option<Vec<&str>>, at: usize| {
            list.as_ref()
                .and_then(|l| l.get(at))
                .filter(|v| !v.is_empty())
                .map(|v| (*v).to_owned())
        };
        (0..count)
            .map(|at| {
                let address = pick(&addresses, at)
                    .map(|a| numeric_address(&a))
                    .transpose()?;
                let name = pick(&names, at)
                    .or_else(|| address.is_none().then(|| SOCKET_DIRECTORY.to_owned()));
                let port = ports
                    .get(at)
                    .or(ports.first())
                    .map_or(Ok(5432), |p| values::port(p))?;
                Ok(Host {
                    name,
                    address,
                    port,
                })
            })
            .collect()
    }

    fn socket_options(&self) -> Result<SocketOptions, SettingsError> {
        let number = |name: &str| self.get(name).map(|v| values::integer(name, v)).transpose();
        // Zero is libpq's way of saying "as the system has it"; a setting that is not there leaves the choice to us.
        let seconds = |name: &str, ours: Duration| match self.get(name) {
            Some(value) => values::seconds(name, value),
            None => Ok(Some(ours)),
        };
        Ok(SocketOptions {
            keepalives: number("keepalives")?.is_none_or(|n| n != 0),
            idle: seconds("keepalives_idle", KEEPALIVES_IDLE)?,
            interval: seconds("keepalives_interval", KEEPALIVES_INTERVAL)?,
            count: match number("keepalives_count")? {
                Some(n) => u32::try_from(n).ok().filter(|n| *n > 0),
                None => Some(KEEPALIVES_COUNT),
            },
            user_timeout: match number("tcp_user_timeout")? {
                Some(ms) => u64::try_from(ms)
                    .ok()
                    .filter(|ms| *ms > 0)
                    .map(Duration::from_millis),
                None => Some(TCP_USER_TIMEOUT),
            },
        })
    }
}

fn numeric_address(text: &str) -> Result<IpAddr, SettingsError> {
    text.parse().map_err(|_| {
        SettingsError::new(format!(
            "hostaddr={text:?} is no numeric IPv4 or IPv6 address (names belong into host)"
        ))
    })
}
