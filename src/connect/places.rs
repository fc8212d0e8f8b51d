//! From a host to addresses, and the thread that may be left to itself.

use std::net::{IpAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use crate::clock::BootTime;
use crate::fault::Fault;

use super::reason::{Reason, unresolved, without_number};
use super::settings::Host;

/// What can be connected to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Address {
    /// The directory of a socket; an abstract one begins with a NUL.
    Socket(PathBuf),
    Ip(IpAddr),
}

/// The addresses of a host. DNS may hang for as long as it likes: it is asked on a thread of its own.
///
/// # Errors
/// The name is unknown, or nobody answered within `limit`.
pub(super) fn addresses(
    host: &Host,
    limit: Duration,
    shuffle: bool,
) -> Result<Vec<Address>, Reason> {
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
        Reason::new(
            late.fault,
            format!("its name was not resolved: {}", late.text),
        )
    })?;
    let found = found.map_err(|e| Reason::new(Fault::Unreachable, unresolved(&e)))?;
    let mut addresses = Vec::new();
    for ip in found.into_iter().map(Address::Ip) {
        if !addresses.contains(&ip) {
            addresses.push(ip);
        }
    }
    if addresses.is_empty() {
        return Err(Reason::new(Fault::Unreachable, "its name has no address"));
    }
    if shuffle {
        fastrand::shuffle(&mut addresses);
    }
    Ok(addresses)
}

/// How a host is called whose address was not found: its port has nothing to do with that.
pub(super) fn name_of(host: &Host) -> String {
    host.name.clone().unwrap_or_else(|| host.to_string())
}

/// How an address is called in a message: the host as it was given, and the address where a name has several.
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

/// Runs `work` on a thread of its own and waits for it no longer than `limit`.
///
/// The thread is not joined. If its time is up it goes on until the operating system ends what it waits for, and what it
/// then has to give is dropped on that thread.
///
/// # Errors
/// The time is up, or no thread could be started.
pub(super) fn within<T: Send + 'static>(
    limit: Duration,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Reason> {
    let end = BootTime::now() + limit;
    let (sender, receiver) = mpsc::channel();
    thread::Builder::new()
        .name("connect".to_owned())
        .spawn(move || {
            // Nobody may be waiting any more.
            let _ = sender.send(work());
        })
        .map_err(|e| {
            Reason::new(
                Fault::Busy,
                format!(
                    "no thread could be started: {}",
                    without_number(&e.to_string())
                ),
            )
        })?;
    loop {
        // The channel waits by a clock that stands still in suspend, so the boot-time clock is read every second.
        let left = end.remaining();
        match receiver.recv_timeout(left.min(Duration::from_secs(1))) {
            Ok(result) => return Ok(result),
            Err(RecvTimeoutError::Timeout) if !end.has_passed() => {}
            Err(RecvTimeoutError::Timeout) => {
                return Err(Reason::new(
                    Fault::Timeout,
                    format!("no answer within {:.1} s", limit.as_secs_f64()),
                ));
            }
            Err(RecvTimeoutError::Disconnected) => {
                return Err(Reason::new(Fault::Refused, "the attempt broke off"));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_hangs_costs_its_limit_and_no_more() {
        let (keep, wait) = mpsc::channel::<()>();
        let before = BootTime::now();
        let late = within(Duration::from_millis(50), move || wait.recv()).unwrap_err();
        assert_eq!(
            (late.fault, late.text.as_str()),
            (Fault::Timeout, "no answer within 0.1 s")
        );
        assert!(BootTime::now().since(before) < Duration::from_secs(20));
        drop(keep);
        assert_eq!(within(Duration::from_secs(60), || 7).unwrap(), 7);
    }

    #[test]
    fn addresses_need_no_dns_and_sockets_may_be_abstract() {
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

    #[test]
    fn a_host_is_called_as_it_was_given() {
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
