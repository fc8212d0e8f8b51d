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

/// The text of every setting that was given somewhere.
pub(super) struct Found(Words);

impl Found {
    pub(super) fn gather(
        mut words: Words,
        around: &Surroundings<'_>,
    ) -> Result<Self, SettingsError> {
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
    pub(super) fn add(&mut self, words: Words) {
        self.0.extend(words);
    }

    pub(super) fn get(&self, name: &str) -> Option<&str> {
        debug_assert!(keywords::find(name).is_some(), "{name} is no keyword");
        self.0
            .iter()
            .find(|(known, _)| *known == name)
            .map(|(_, value)| value.as_str())
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
    pub(super) fn hosts(&self) -> Result<Vec<Host>, SettingsError> {
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
        SettingsError::new(format!(
            "hostaddr={text:?} is no numeric IPv4 or IPv6 address (names belong into host)"
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::super::Settings;
    use super::*;

    fn resolve(given: &str) -> Result<Settings, String> {
        Settings::resolve_in(Some(given), &|name| {
            (name == "HOME").then(|| "/nonexistent".to_owned())
        })
        .map_err(|e| e.to_string())
    }

    #[test]
    fn a_silent_connection_ends_without_being_asked_to() {
        let socket = |given: &str| resolve(given).unwrap().socket;
        let ours = SocketOptions {
            keepalives: true,
            idle: Some(KEEPALIVES_IDLE),
            interval: Some(KEEPALIVES_INTERVAL),
            count: Some(KEEPALIVES_COUNT),
            user_timeout: Some(TCP_USER_TIMEOUT),
        };
        assert_eq!(socket("host=h"), ours);
        // libpq's unit is the millisecond, and zero leaves the choice to the system.
        assert_eq!(
            socket("tcp_user_timeout=2000").user_timeout,
            Some(Duration::from_secs(2))
        );
        assert_eq!(socket("tcp_user_timeout=0").user_timeout, None);
        assert_eq!(
            socket("keepalives_idle=7").idle,
            Some(Duration::from_secs(7))
        );
        assert_eq!(socket("keepalives_interval=0").interval, None);
        assert_eq!(socket("keepalives_count=2").count, Some(2));
        assert!(!socket("keepalives=0").keepalives);
    }

    #[test]
    fn the_lists_of_hosts_belong_together_item_by_item() {
        let hosts = |given: &str| {
            let hosts = resolve(given)?.hosts;
            Ok::<_, String>(
                hosts
                    .iter()
                    .map(ToString::to_string)
                    .collect::<Vec<_>>()
                    .join(" "),
            )
        };
        assert_eq!(hosts("").unwrap(), "/var/run/postgresql/.s.PGSQL.5432");
        assert_eq!(hosts("host=a,b port=1,2").unwrap(), "a:1 b:2");
        assert_eq!(hosts("host=a,b port=1").unwrap(), "a:1 b:1");
        assert_eq!(hosts("host=a,b port=,2").unwrap(), "a:5432 b:2");
        assert_eq!(
            hosts("host=a,,c").unwrap(),
            "a:5432 /var/run/postgresql/.s.PGSQL.5432 c:5432"
        );
        assert_eq!(
            hosts("hostaddr=::1,10.0.0.5 port=7").unwrap(),
            "[::1]:7 10.0.0.5:7"
        );
        assert_eq!(
            hosts("host=a, hostaddr=10.0.0.5,10.0.0.6").unwrap(),
            "a (10.0.0.5):5432 10.0.0.6:5432"
        );
        assert_eq!(
            hosts("host=a port=1,2").unwrap_err(),
            "port: 2 are given for 1 host: give one for all, or one for each"
        );
        assert_eq!(
            hosts("host=a,b hostaddr=::1").unwrap_err(),
            "host names 2 and hostaddr 1: they have to be equally many"
        );
    }

    #[test]
    fn what_would_weaken_the_connection_is_refused_by_name() {
        for (given, named) in [
            ("gssencmode=require", "gssencmode"),
            ("requirepeer=postgres", "requirepeer"),
            ("sslcrldir=/etc/ssl/crl", "sslcrldir"),
            ("replication=database", "replication"),
            ("options='-c role=app'", "options"),
            ("gssencmode=always", "gssencmode"),
            ("sslrootcert=system sslmode=require", "sslrootcert=system"),
            ("sslnegotiation=direct", "sslnegotiation=direct"),
            ("require_auth=scram", "require_auth"),
        ] {
            let text = resolve(given).map(drop).unwrap_err();
            assert!(text.starts_with(named), "{given}: {text}");
        }
        for harmless in [
            "gssencmode=prefer",
            "replication=off",
            "sslcompression=1 sslpassword=x",
            "gssdelegation=1",
        ] {
            assert_eq!(resolve(harmless).map(drop), Ok(()), "{harmless}");
        }
    }

    #[test]
    fn a_description_has_no_password() {
        let settings = resolve("postgresql://app:secret@db1,db2:6/orders").unwrap();
        assert_eq!(settings.describe(), "app@db1:5432,db2:6/orders");
    }
}
