//! One host: its addresses, and the ways that `sslmode` allows.

use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use postgres::config::{SslMode as CrateSslMode, SslNegotiation};
use postgres::{Client, Config, NoTls};
use tokio::time::Instant;

use crate::clock::BootTime;
use crate::fault::Fault;

use super::handshake::Prepared;
use super::passfile::{self, Lookup, Place};
use super::places::{self, Address};
use super::reason::{Reason, Stage};
use super::session;
use super::settings::{Host, Settings};
use super::values::{CertMode, ChannelBinding, SslMode, Target};
use super::wire::{Connector, Cover, Handshake};

/// How long a connection outlives its purpose: whoever waits for it must have stopped waiting before it breaks, so that
/// the reason given is the right one.
const GRACE: Duration = Duration::from_secs(2);

/// What every try has in common.
#[derive(Clone)]
pub(super) struct Attempt {
    settings: Arc<Settings>,
    application_name: String,
    /// The text of the password file, read anew for each connection as libpq does: a password may be changed while a
    /// job runs.
    passwords: Option<String>,
    /// When a connection ends by itself, a little after whoever asked for it has given up.
    end: Instant,
    /// TLS, or why it can't be had: files that are wrong matter only once TLS is wanted.
    tls: Result<Prepared, String>,
}

impl Attempt {
    pub(super) fn new(settings: &Settings, application_name: &str, by: BootTime) -> Self {
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
            end: Instant::now() + by.remaining() + GRACE,
            tls: if needed {
                settings.tls.prepare()
            } else {
                Err("TLS is off".to_owned())
            },
            settings: Arc::new(settings.clone()),
        }
    }

    /// Tries every address of a host.
    pub(super) fn host(
        &self,
        host: &Host,
        target: Target,
        share: Duration,
    ) -> Result<Client, Vec<(String, Reason)>> {
        let end = BootTime::now() + share;
        let addresses = places::addresses(host, share, self.settings.shuffle)
            .map_err(|r| vec![(places::name_of(host), r)])?;
        let mut reasons = Vec::new();
        for (at, address) in addresses.iter().enumerate() {
            let left = end.remaining() / u32::try_from(addresses.len() - at).unwrap_or(u32::MAX);
            let limit = self.settings.connect_timeout.map_or(left, |t| t.min(left));
            let (this, its_host, its_address) = (self.clone(), host.clone(), address.clone());
            let tried = places::within(limit, move || {
                this.address(&its_host, &its_address, target, limit)
            });
            match tried.unwrap_or_else(Err) {
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
        session::fits(client, target)
    }

    /// One connection in one way; with the reason, whether it was encrypted.
    fn once(
        &self,
        host: &Host,
        address: &Address,
        limit: Duration,
        way: Way,
    ) -> Result<Client, (Reason, bool)> {
        descriptors().map_err(|error| (Reason::of_io(&error), false))?;
        let settings = &self.settings;
        let mut config = Config::new();
        config
            .user(&settings.user)
            .dbname(&settings.database)
            .application_name(&self.application_name)
            .port(host.port)
            .connect_timeout(limit + GRACE)
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
            login_by: Instant::now() + limit + GRACE,
            end: self.end,
        };
        config
            .connect(connector)
            .map_err(|e| (Reason::of(&e), encrypted.load(Ordering::Acquire)))
    }

    fn cover(&self, host: &Host, ip: IpAddr, way: Way) -> Result<Cover, Reason> {
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

/// Whether there are descriptors to be had for a connection. The `postgres` crate makes an event loop of three and
/// panics without them, which in the release build would end a run whose next try might have found some.
fn descriptors() -> io::Result<()> {
    let two = io::pipe()?;
    let four = io::pipe()?;
    drop((two, four));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

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
