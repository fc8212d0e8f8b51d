//! Which value counts: what was given, then the service file, then the environment; and what may not be left aside.
//!
//! PostgreSQL documentation, "Database Connection Control Functions" and "Environment Variables"; the order is that of
//! `conninfo_add_defaults`, the checks are those of `pqConnectOptions2`.

use std::net::IpAddr;
use std::time::Duration;

use super::SettingsError;
use super::conninfo::Words;
use super::keywords::{self, KEYWORDS};
use super::service;
use super::settings::{Host, SOCKET_DIRECTORY, SocketOptions};
use super::surroundings::Surroundings;
use super::values;

/// How often, and how long, a silent connection is asked whether it is still there. The operating system's own
/// two hours would keep an abandoned thread alive for as long.
const KEEPALIVES_IDLE: Duration = Duration::from_secs(30);
const KEEPALIVES_INTERVAL: Duration = Duration::from_secs(10);
const KEEPALIVES_COUNT: u32 = 3;
/// How long sent data may stay unacknowledged.
const TCP_USER_TIMEOUT: Duration = Duration::from_secs(60);

/// The text of every setting that was given somewhere, with the place; the first of several counts.
pub(super) struct Found(Vec<(&'static str, String, Place)>);

/// Where a value was found.
#[derive(Clone, Debug)]
enum Place {
    /// The option, or the variable that stands for it.
    Given,
    /// A service of this name.
    Service(String),
    /// An environment variable.
    Variable(&'static str),
}

impl Found {
    pub(super) fn gather(
        mut words: Words,
        around: &Surroundings<'_>,
    ) -> Result<Self, SettingsError> {
        // The last of several equal words in a string counts.
        words.reverse();
        let mut found = Self(Vec::new());
        found.add(words, &Place::Given);
        if let Some(service) = found
            .get("service")
            .map(str::to_owned)
            .or_else(|| around.variable("PGSERVICE"))
        {
            let words = service::find(&service, around)?;
            found.add(words, &Place::Service(service));
        }
        for keyword in KEYWORDS {
            if let Some(variable) = keyword.variable
                && let Some(value) = around.variable(variable)
            {
                found.add(vec![(keyword.name, value)], &Place::Variable(variable));
            }
        }
        if around
            .variable("PGREQUIRESSL")
            .is_some_and(|v| v.starts_with('1'))
        {
            let words = vec![("sslmode", "require".to_owned())];
            found.add(words, &Place::Variable("PGREQUIRESSL"));
        }
        Ok(found)
    }

    /// Adds words that yield to those already there.
    fn add(&mut self, words: Words, place: &Place) {
        let placed = words.into_iter().map(|(n, v)| (n, v, place.clone()));
        self.0.extend(placed);
    }

    /// The same error, beginning with the place where the value was found, unless that is what was given.
    pub(super) fn place(&self, mut error: SettingsError) -> SettingsError {
        let about = error.about.take();
        let found = about.and_then(|about| self.0.iter().find(|(known, ..)| *known == about));
        match found.map(|(_, _, place)| place) {
            Some(Place::Variable(name)) => error.text = format!("{name}: {}", error.text),
            Some(Place::Service(name)) => error.text = format!("service {name:?}: {}", error.text),
            Some(Place::Given) | None => {}
        }
        error
    }

    pub(super) fn get(&self, name: &str) -> Option<&str> {
        debug_assert!(keywords::find(name).is_some(), "{name} is no keyword");
        self.0
            .iter()
            .find(|(known, ..)| *known == name)
            .map(|(_, value, _)| value.as_str())
    }

    /// The value, for settings where libpq takes an empty one for none.
    pub(super) fn nonempty(&self, name: &str) -> Option<&str> {
        self.get(name).filter(|v| !v.is_empty())
    }

    pub(super) fn choice<T: Copy>(
        &self,
        name: &str,
        allowed: &[(&str, T)],
    ) -> Result<Option<T>, SettingsError> {
        self.get(name)
            .map(|v| values::choice(name, v, allowed))
            .transpose()
    }

    pub(super) fn seconds(&self, name: &str) -> Result<Option<Duration>, SettingsError> {
        Ok(self
            .get(name)
            .map(|v| values::seconds(name, v))
            .transpose()?
            .flatten())
    }

    /// What would weaken the connection if it were left aside in silence.
    pub(super) fn refuse_what_cannot_be_kept(&self) -> Result<(), SettingsError> {
        let gss = [("disable", false), ("prefer", false), ("require", true)];
        if self.choice("gssencmode", &gss)? == Some(true) {
            return Err(SettingsError::about(
                "gssencmode",
                "gssencmode=require can't be honoured: there is no GSSAPI here (use TLS: sslmode=verify-full)",
            ));
        }
        if self.nonempty("requirepeer").is_some() {
            return Err(SettingsError::about(
                "requirepeer",
                "requirepeer can't be honoured: the owner of the server's socket is not looked at here",
            ));
        }
        if self.nonempty("sslcrldir").is_some() {
            return Err(SettingsError::about(
                "sslcrldir",
                "sslcrldir can't be honoured: give one file of revocation lists as sslcrl",
            ));
        }
        if let Some(value) = self.nonempty("replication")
            && !["false", "off", "no", "0"].contains(&value.to_ascii_lowercase().as_str())
        {
            return Err(SettingsError::about(
                "replication",
                "replication can't be honoured: a lease needs an ordinary connection",
            ));
        }
        Ok(())
    }

    /// The hosts, with a port each: three lists that belong together item by item.
    pub(super) fn hosts(&self) -> Result<Vec<Host>, SettingsError> {
        let items = |name| {
            self.nonempty(name)
                .map(|v| v.split(',').map(str::trim).collect::<Vec<_>>())
        };
        let (names, addresses) = (items("host"), items("hostaddr"));
        let ports = items("port").unwrap_or_default();
        let count = match (&names, &addresses) {
            (Some(names), Some(addresses)) if names.len() != addresses.len() => {
                return Err(SettingsError::about(
                    "hostaddr",
                    format!(
                        "host names {} and hostaddr {}: they have to be equally many",
                        names.len(),
                        addresses.len()
                    ),
                ));
            }
            (_, Some(addresses)) => addresses.len(),
            (Some(names), None) => names.len(),
            (None, None) => 1,
        };
        if ports.len() > 1 && ports.len() != count {
            return Err(SettingsError::about(
                "port",
                format!(
                    "port: {} are given for {count} {}: give one for all, or one for each",
                    ports.len(),
                    if count == 1 { "host" } else { "hosts" }
                ),
            ));
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

    pub(super) fn socket_options(&self) -> Result<SocketOptions, SettingsError> {
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
        SettingsError::about(
            "hostaddr",
            format!(
                "hostaddr={text:?} is no numeric IPv4 or IPv6 address (names belong into host)"
            ),
        )
    })
}

#[cfg(test)]
mod tests;
