//! The hosts to try, in their order.

use std::fmt;
use std::net::IpAddr;

use super::error::SettingsError;
use super::layered::LayeredSettings;
use super::values;

/// The directory of the server's socket if no host is given, as Debian and Red Hat build libpq.
pub(super) const SOCKET_DIRECTORY: &str = "/var/run/postgresql";

/// One place where a server may be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::connect) struct Host {
    /// A name, an address, or the directory of a socket. The server's certificate must be for it.
    pub(in crate::connect) name: Option<String>,
    /// The address to connect to, without a DNS query (`hostaddr`).
    pub(in crate::connect) address: Option<IpAddr>,
    pub(in crate::connect) port: u16,
}

impl Host {
    /// The hosts of three lists: `host`, `hostaddr` and `port`, item by item.
    pub(super) fn list(settings: &LayeredSettings) -> Result<Vec<Self>, SettingsError> {
        let items = |name| {
            settings
                .nonempty(name)
                .map(|v| v.split(',').map(str::trim).collect::<Vec<_>>())
        };
        let (names, addresses) = (items("host"), items("hostaddr"));
        let ports = items("port").unwrap_or_default();
        let count = match (&names, &addresses) {
            (Some(names), Some(addresses)) if names.len() != addresses.len() => {
                return Err(SettingsError::about(
                    "hostaddr",
                    format!(
                        "host has {} entries and hostaddr has {}: give the same number of each",
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
                    "port has {} entries for {count} {}: give one port for all hosts, or one for each",
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
                Ok(Self {
                    name,
                    address,
                    port,
                })
            })
            .collect()
    }

    /// The directory of the socket, if the host is one. "@" stands for Linux's abstract names.
    pub(in crate::connect) fn socket_directory(&self) -> Option<&str> {
        self.name
            .as_deref()
            .filter(|n| self.address.is_none() && n.starts_with(['/', '@']))
    }

    /// The host in a line of the password file: the name, or the address if there is only `hostaddr`.
    pub(in crate::connect) fn for_passfile(&self) -> Option<String> {
        let name = self.name.clone();
        name.or_else(|| self.address.map(|a| a.to_string()))
    }
}

fn numeric_address(text: &str) -> Result<IpAddr, SettingsError> {
    text.parse().map_err(|_| {
        SettingsError::about(
            "hostaddr",
            format!("hostaddr={text:?} is not a numeric IPv4 or IPv6 address (put names in host)"),
        )
    })
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(directory) = self.socket_directory() {
            return write!(f, "{directory}/.s.PGSQL.{}", self.port);
        }
        match (&self.name, self.address) {
            (Some(name), _) if name.contains(':') => write!(f, "[{name}]")?,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_shown_as_it_was_given() {
        let name = |n: Option<&str>, a: Option<&str>| {
            Host {
                name: n.map(str::to_owned),
                address: a.map(|a| a.parse().unwrap()),
                port: 5433,
            }
            .to_string()
        };
        assert_eq!(name(Some("db1"), None), "db1:5433");
        assert_eq!(name(Some("db1"), Some("10.0.0.5")), "db1 (10.0.0.5):5433");
        assert_eq!(name(None, Some("10.0.0.5")), "10.0.0.5:5433");
        assert_eq!(name(None, Some("::1")), "[::1]:5433");
        assert_eq!(name(Some("::1"), None), "[::1]:5433");
        assert_eq!(name(Some("/run/pg"), None), "/run/pg/.s.PGSQL.5433");
    }
}
