//! Host after host, address after address, each within its share of the time.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use postgres::config::{SslMode as CrateSslMode, SslNegotiation};
use postgres::{Client, Config, NoTls, SimpleQueryMessage};

use crate::clock::BootTime;
use crate::fault::Fault;

use super::passfile::{self, Lookup, Place};
use super::places::{self, Address};
use super::reason::{Reason, Stage};
use super::settings::{Host, Settings};
use super::tls::Prepared;
use super::values::{CertMode, ChannelBinding, SslMode, Target};
use super::wire::{Connector, Cover, Handshake};
use super::{Access, OpenError};

/// Opens a connection, before `by`.
///
/// With several hosts, or several addresses of one, each gets its share of the time that is left: a thread of its own,
/// which is left to itself when the share is used up. With a single address the calling thread may hang in spite of
/// `by`, so it must be one that can be abandoned: the `postgres` crate can't bound TLS or authentication.
///
/// With `target_session_attrs=any`, or `prefer-standby`, and several hosts, [`Access::Write`] looks for the one that
/// takes writes, which costs one round trip. As in libpq a refused login ends the search, and an explicit
/// `application_name` wins over the one given here.
///
/// # Errors
/// When no host could be used; the message names each that was tried, with its reason.
pub fn open(
    settings: &Settings,
    application_name: &str,
    access: Access,
    by: BootTime,
) -> Result<Client, OpenError> {
    let attempt = Attempt::new(settings, application_name);
    let several = settings.hosts.len() > 1;
    let passes: &[Target] = match settings.target {
        Target::Any | Target::PreferStandby if several && access == Access::Write => {
            &[Target::ReadWrite]
        }
        Target::PreferStandby if several => &[Target::Standby, Target::Any],
        Target::PreferStandby | Target::Any => &[Target::Any],
        Target::ReadWrite => &[Target::ReadWrite],
        Target::ReadOnly => &[Target::ReadOnly],
        Target::Primary => &[Target::Primary],
        Target::Standby => &[Target::Standby],
    };
    let mut hosts: Vec<&Host> = settings.hosts.iter().collect();
    if settings.shuffle {
        fastrand::shuffle(&mut hosts);
    }
    let mut failures = Vec::new();
    for (pass, target) in passes.iter().enumerate() {
        failures.clear();
        for (at, host) in hosts.iter().enumerate() {
            let still_to_try = hosts.len() - at + (passes.len() - pass - 1) * hosts.len();
            let share = by.remaining() / u32::try_from(still_to_try).unwrap_or(u32::MAX);
            match attempt.host(host, *target, share, several) {
                Ok(client) => return Ok(client),
                Err(reasons) => failures.extend(reasons),
            }
            // libpq: "if a connection is established successfully, but authentication fails, the remaining hosts in the
            // list are not tried". So a wrong password is not hidden behind the last host's "connection refused".
            if failures
                .last()
                .is_some_and(|(_, r)| r.fault == Fault::Login)
            {
                return Err(attempt.error(&failures));
            }
        }
    }
    Err(attempt.error(&failures))
}

/// What every try has in common.
#[derive(Clone)]
struct Attempt {
    settings: Arc<Settings>,
    application_name: String,
    /// The text of the password file, read anew for each connection as libpq does: a password may be changed while a
    /// job runs.
    passwords: Option<String>,
    /// TLS, or why it can't be had: files that are wrong matter only once TLS is wanted.
    tls: Result<Prepared, String>,
}

impl Attempt {
    fn new(settings: &Settings, application_name: &str) -> Self {
        let passwords = settings
            .passfile
            .as_deref()
            .and_then(|path| match passfile::read(path) {
                Lookup::Text(text) => Some(text),
                Lookup::Nothing | Lookup::Unusable(_) => None,
            });
        let needed = settings.tls.mode != SslMode::Disable
            && settings
                .hosts
                .iter()
                .any(|h| h.socket_directory().is_none());
        Self {
            application_name: settings
                .application_name
                .clone()
                .unwrap_or_else(|| application_name.to_owned()),
            passwords,
            tls: if needed {
                settings.tls.prepare()
            } else {
                Err("TLS is off".to_owned())
            },
            settings: Arc::new(settings.clone()),
        }
    }

    /// Tries every address of a host.
    fn host(
        &self,
        host: &Host,
        target: Target,
        share: Duration,
        several: bool,
    ) -> Result<Client, Vec<(String, Reason)>> {
        let end = BootTime::now() + share;
        let addresses = places::addresses(host, share, self.settings.shuffle)
            .map_err(|r| vec![(host.to_string(), r)])?;
        let mut reasons = Vec::new();
        for (at, address) in addresses.iter().enumerate() {
            let left = end.remaining() / u32::try_from(addresses.len() - at).unwrap_or(u32::MAX);
            let limit = self.settings.connect_timeout.map_or(left, |t| t.min(left));
            let alone = !several && addresses.len() == 1 && limit == left;
            let tried = if alone {
                self.address(host, address, target, left)
            } else {
                let (this, host, address) = (self.clone(), host.clone(), address.clone());
                places::within(limit, move || this.address(&host, &address, target, limit))
                    .unwrap_or_else(Err)
            };
            match tried {
                Ok(client) => return Ok(client),
                Err(reason) => {
                    let login = reason.fault == Fault::Login;
                    reasons.push((places::label(host, address, addresses.len()), reason));
                    if login {
                        break;
                    }
                }
            }
        }
        Err(reasons)
    }

    /// Tries one address, in the ways that `sslmode` allows: the second one only where libpq takes a second one.
    fn address(
        &self,
        host: &Host,
        address: &Address,
        target: Target,
        limit: Duration,
    ) -> Result<Client, Reason> {
        let client = match self.settings.tls.mode {
            SslMode::Disable => self.once(host, address, limit, Way::Plain),
            _ if matches!(address, Address::Socket(_)) => {
                self.once(host, address, limit, Way::Plain)
            }
            SslMode::Allow => self
                .once(host, address, limit, Way::Plain)
                .or_else(|(plain, _)| {
                    if plain.stage != (Stage::Refused { not_now: false }) {
                        return Err((plain, false));
                    }
                    self.once(host, address, limit, Way::Required)
                        .map_err(|(tls, encrypted)| {
                            let text = if tls.stage == Stage::NoTls {
                                plain
                            } else {
                                both(plain, "with TLS", tls)
                            };
                            (text, encrypted)
                        })
                }),
            SslMode::Prefer => {
                self.once(host, address, limit, Way::IfOffered)
                    .or_else(|(tls, encrypted)| {
                        let again = tls.stage == Stage::Handshake
                            || (encrypted && tls.stage == (Stage::Refused { not_now: false }));
                        if !again {
                            return Err((tls, encrypted));
                        }
                        self.once(host, address, limit, Way::Plain)
                            .map_err(|(plain, encrypted)| {
                                (both(tls, "without TLS", plain), encrypted)
                            })
                    })
            }
            SslMode::Require | SslMode::VerifyCa | SslMode::VerifyFull => {
                self.once(host, address, limit, Way::Required)
            }
        };
        let client = client.map_err(|(reason, _)| reason)?;
        fits(client, target)
    }

    /// One connection in one way; with the reason, whether it was encrypted.
    fn once(
        &self,
        host: &Host,
        address: &Address,
        limit: Duration,
        way: Way,
    ) -> Result<Client, (Reason, bool)> {
        let settings = &self.settings;
        let mut config = Config::new();
        config
            .user(&settings.user)
            .dbname(&settings.database)
            .application_name(&self.application_name)
            .port(host.port)
            .connect_timeout(limit)
            .keepalives(settings.socket.keepalives)
            .channel_binding(match settings.channel_binding {
                ChannelBinding::Disable => postgres::config::ChannelBinding::Disable,
                ChannelBinding::Prefer => postgres::config::ChannelBinding::Prefer,
                ChannelBinding::Require => postgres::config::ChannelBinding::Require,
            });
        if let Some(password) = self.password(host) {
            config.password(password);
        }
        if let Some(idle) = settings.socket.idle {
            config.keepalives_idle(idle);
        }
        if let Some(interval) = settings.socket.interval {
            config.keepalives_interval(interval);
        }
        if let Some(count) = settings.socket.count {
            config.keepalives_retries(count);
        }
        if let Some(timeout) = settings.socket.user_timeout {
            config.tcp_user_timeout(timeout);
        }
        let ip = match address {
            Address::Socket(path) => {
                if settings.require_auth.is_some() || settings.tls.cert_mode == CertMode::Require {
                    return Err((
                        Reason::new(
                            Fault::Refused,
                            "require_auth and sslcertmode=require can't be honoured on a socket",
                        ),
                        false,
                    ));
                }
                config.host_path(path).ssl_mode(CrateSslMode::Disable);
                return config.connect(NoTls).map_err(|e| (Reason::of(&e), false));
            }
            Address::Ip(ip) => *ip,
        };
        // The name is not used: the connector knows which one the certificate has to bear.
        config.host("server").hostaddr(ip);
        config
            .ssl_mode(CrateSslMode::Require)
            .ssl_negotiation(SslNegotiation::Direct);
        let encrypted = Arc::new(AtomicBool::new(false));
        let connector = Connector {
            cover: self.cover(host, ip, way).map_err(|r| (r, false))?,
            methods: settings.require_auth,
            cert_mode: settings.tls.cert_mode,
            encrypted: Arc::clone(&encrypted),
        };
        config
            .connect(connector)
            .map_err(|e| (Reason::of(&e), encrypted.load(Ordering::Acquire)))
    }

    fn cover(&self, host: &Host, ip: std::net::IpAddr, way: Way) -> Result<Cover, Reason> {
        if way == Way::Plain {
            return Ok(Cover::Plain);
        }
        if host.name.is_none() && self.settings.tls.mode == SslMode::VerifyFull {
            return Err(Reason::new(
                Fault::Refused,
                "sslmode=verify-full needs host beside hostaddr: the name that the certificate has to bear",
            ));
        }
        let prepared = self.tls.clone().map_err(|why| Reason {
            stage: Stage::Handshake,
            ..Reason::new(Fault::Refused, why)
        })?;
        let handshake = Handshake {
            prepared,
            server: host.name.clone().unwrap_or_else(|| ip.to_string()),
            direct: self.settings.tls.direct,
        };
        Ok(if way == Way::Required {
            Cover::Required(handshake)
        } else {
            Cover::IfOffered(handshake)
        })
    }

    fn password(&self, host: &Host) -> Option<String> {
        let settings = &self.settings;
        settings.password.clone().or_else(|| {
            let text = self.passwords.as_deref()?;
            host.for_passfile().iter().find_map(|name| {
                let place = Place {
                    host: name,
                    port: host.port,
                    database: &settings.database,
                    user: &settings.user,
                };
                passfile::find(text, &place)
            })
        })
    }

    /// All failures in one line. The kind is that of a refused login if there is one; otherwise one that may pass by
    /// itself, if there is one, since then it is worth coming back.
    fn error(&self, failures: &[(String, Reason)]) -> OpenError {
        let fault = failures
            .iter()
            .map(|(_, r)| r.fault)
            .min_by_key(|f| (*f != Fault::Login, !f.is_transient()))
            .unwrap_or(Fault::Unreachable);
        let texts: Vec<String> = failures
            .iter()
            .map(|(place, r)| {
                let who = if r.fault == Fault::Login {
                    format!(
                        " (user {:?}, database {:?})",
                        self.settings.user, self.settings.database
                    )
                } else {
                    String::new()
                };
                format!("{place}: {}{who}", r.text)
            })
            .collect();
        OpenError {
            fault,
            message: texts.join("; "),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Plain,
    IfOffered,
    Required,
}

/// The reasons of both ways, unless the second one adds nothing.
fn both(first: Reason, way: &str, second: Reason) -> Reason {
    if first.text == second.text {
        return second;
    }
    Reason {
        text: format!("{}; {way}: {}", first.text, second.text),
        ..second
    }
}

/// Gives the connection back if the server is of the wanted kind.
fn fits(mut client: Client, target: Target) -> Result<Client, Reason> {
    if target == Target::Any || target == Target::PreferStandby {
        return Ok(client);
    }
    // One round trip, which also works through a pooler in transaction mode.
    let rows = client
        .simple_query("SELECT pg_catalog.pg_is_in_recovery(), pg_catalog.current_setting('transaction_read_only')")
        .map_err(|e| Reason::of(&e))?;
    let answer = rows.iter().find_map(|message| {
        let SimpleQueryMessage::Row(row) = message else {
            return None;
        };
        Some((row.get(0) == Some("t"), row.get(1) == Some("on")))
    });
    let Some((standby, read_only)) = answer else {
        return Err(Reason::new(
            Fault::Refused,
            "the server did not say whether it is a standby",
        ));
    };
    let why = match target {
        Target::ReadWrite if standby => "it is a standby and takes no writes",
        Target::ReadWrite if read_only => "its transactions are read-only",
        Target::Primary if standby => "it is a standby, and target_session_attrs wants a primary",
        Target::ReadOnly if !(standby || read_only) => {
            "it takes writes, and target_session_attrs wants read-only"
        }
        Target::Standby if !standby => "it is a primary, and target_session_attrs wants a standby",
        Target::Any
        | Target::PreferStandby
        | Target::ReadWrite
        | Target::ReadOnly
        | Target::Primary
        | Target::Standby => {
            return Ok(client);
        }
    };
    let fault = if standby || read_only {
        Fault::ReadOnly
    } else {
        Fault::Unreachable
    };
    Err(Reason::new(fault, why))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_message_names_every_host_and_the_kind_is_the_one_that_matters() {
        let none = |_: &str| None;
        let settings =
            Settings::resolve_in(Some("user=app dbname=orders host=/nowhere"), &none).unwrap();
        let attempt = Attempt::new(&settings, "lease");
        let at = |place: &str, fault, text: &str| (place.to_owned(), Reason::new(fault, text));
        let error = attempt.error(&[
            at("10.0.0.5:5432", Fault::Unreachable, "connection refused"),
            at(
                "10.0.0.6:5432",
                Fault::Down,
                "the database system is starting up",
            ),
        ]);
        assert_eq!(
            error.message,
            "10.0.0.5:5432: connection refused; 10.0.0.6:5432: the database system is starting up"
        );
        assert_eq!(error.fault, Fault::Unreachable);
        let error = attempt.error(&[
            at("a:1", Fault::Refused, "TLS: no"),
            at("b:1", Fault::Login, "password authentication failed"),
        ]);
        assert_eq!(error.fault, Fault::Login);
        assert_eq!(
            error.message,
            "a:1: TLS: no; b:1: password authentication failed (user \"app\", database \"orders\")"
        );
        let error = attempt.error(&[
            at("a:1", Fault::Refused, "TLS: no"),
            at("b:1", Fault::ReadOnly, "a standby"),
        ]);
        assert_eq!(error.fault, Fault::ReadOnly);
    }

    #[test]
    fn two_ways_that_fail_alike_are_told_once() {
        let reason = |text: &str| Reason::new(Fault::Login, text);
        assert_eq!(both(reason("a"), "with TLS", reason("a")).text, "a");
        assert_eq!(
            both(reason("a"), "with TLS", reason("b")).text,
            "a; with TLS: b"
        );
    }
}
