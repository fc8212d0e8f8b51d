//! The addresses of a host.

use std::io;
use std::net::{IpAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::time::Duration;

use crate::fault::Fault;
use crate::text::without_number;

use super::error::ConnectError;
use super::settings::Host;
use super::time_limit::within;

/// An address to connect to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Address {
    /// The directory of a socket. An abstract one begins with a NUL.
    Socket(PathBuf),
    Ip(IpAddr),
}

/// The addresses of a host. DNS may hang, so it is asked on a thread of its own.
///
/// # Errors
/// The name is unknown, or there was no answer within `limit`.
pub(super) fn addresses(
    host: &Host,
    limit: Duration,
    shuffle: bool,
) -> Result<Vec<Address>, ConnectError> {
    if let Some(directory) = host.socket_directory() {
        let path = directory
            .strip_prefix('@')
            .map_or_else(|| directory.to_owned(), |name| format!("\0{name}"));
        return Ok(vec![Address::Socket(path.into())]);
    }
    if let Some(address) = host.address {
        return Ok(vec![Address::Ip(address)]);
    }
    let name = host.name.clone().unwrap_or_default();
    if let Ok(address) = name.parse() {
        return Ok(vec![Address::Ip(address)]);
    }
    let port = host.port;
    let found = within(limit, move || {
        (name.as_str(), port)
            .to_socket_addrs()
            .map(|found| found.map(|a| a.ip()).collect::<Vec<_>>())
    })
    .map_err(|late| {
        ConnectError::new(
            late.fault,
            format!("cannot resolve the name: {}", late.text),
        )
    })?;
    let found = found.map_err(|e| ConnectError::new(Fault::Unreachable, unresolved(&e)))?;
    let mut addresses = Vec::new();
    for ip in found.into_iter().map(Address::Ip) {
        if !addresses.contains(&ip) {
            addresses.push(ip);
        }
    }
    if addresses.is_empty() {
        return Err(ConnectError::new(
            Fault::Unreachable,
            "the name has no address",
        ));
    }
    if shuffle {
        fastrand::shuffle(&mut addresses);
    }
    Ok(addresses)
}

/// The name in a message about a host without an address. The port does not matter then.
pub(super) fn name_of(host: &Host) -> String {
    host.name.clone().unwrap_or_else(|| host.to_string())
}

/// The name of an address in a message: the host as it was given, and the address if the name has several.
pub(super) fn label(host: &Host, address: &Address, of: usize) -> String {
    match address {
        Address::Ip(ip) if of > 1 => Host {
            address: Some(*ip),
            ..host.clone()
        }
        .to_string(),
        Address::Ip(_) | Address::Socket(_) => host.to_string(),
    }
}

/// Why a name has no address. The standard library passes on the texts of `getaddrinfo`, but not its codes. The texts are
/// not translated, because this process never calls `setlocale`.
fn unresolved(error: &io::Error) -> String {
    let text = error.to_string();
    let text = text
        .strip_prefix("failed to lookup address information: ")
        .unwrap_or(&text);
    // EAI_NONAME and EAI_NODATA of glibc, EAI_NONAME of musl and macOS.
    let unknown = [
        "Name or service not known",
        "No address associated with hostname",
        "Name does not resolve",
        "nodename nor servname provided, or not known",
    ];
    if unknown.contains(&text) {
        return "no such host".to_owned();
    }
    format!("cannot resolve the name: {}", without_number(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_name_is_no_such_host() {
        let told = |text: &str| {
            unresolved(&io::Error::other(format!(
                "failed to lookup address information: {text}"
            )))
        };
        assert_eq!(told("Name or service not known"), "no such host");
        assert_eq!(
            told("Temporary failure in name resolution"),
            "cannot resolve the name: temporary failure in name resolution"
        );
    }

    #[test]
    fn an_address_needs_no_dns_and_a_socket_may_be_abstract() {
        let host = |name: Option<&str>, address: Option<&str>| Host {
            name: name.map(str::to_owned),
            address: address.map(|a| a.parse().unwrap()),
            port: 5432,
        };
        let find = |h: &Host| addresses(h, Duration::from_secs(60), false).unwrap();
        assert_eq!(
            find(&host(Some("/run/pg"), None)),
            vec![Address::Socket("/run/pg".into())]
        );
        assert_eq!(
            find(&host(Some("@lease"), None)),
            vec![Address::Socket("\0lease".into())]
        );
        assert_eq!(
            find(&host(Some("::1"), None)),
            vec![Address::Ip("::1".parse().unwrap())]
        );
        assert_eq!(
            find(&host(Some("db.invalid"), Some("10.0.0.5"))),
            vec![Address::Ip("10.0.0.5".parse().unwrap())]
        );
        assert!(
            addresses(
                &host(Some("no.such.name.invalid"), None),
                Duration::from_secs(60),
                false
            )
            .is_err()
        );
    }
}
