//! One host: its addresses, with the encryption that `sslmode` allows.

use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use postgres::config::{SslMode as CrateSslMode, SslNegotiation};
use postgres::error::DbError;
use postgres::{Client, Config, NoTls};
use tokio::time::Instant;

use crate::clock::BootTime;
use crate::fault::Fault;

use super::error::{ConnectError, Stage};
use super::resolve::{self, Address};
use super::session;
use super::settings::{
    CertMode, ChannelBinding, Host, Passfile, PassfileEntry, Settings, SslMode, Target,
    find_password, read_passfile,
};
use super::time_limit::within;
use super::tls::{self, Prepared};
use super::way::{Way, WayError, in_the_order_of};
use super::wire::{Connector, Encryption, Handshake};

/// How long a connection lasts beyond its time limit. The caller gives up first, so that the error in its message is the
/// time limit.
const GRACE: Duration = Duration::from_secs(2);

/// Receives what a server says besides its answers.
pub type OnNotice = Arc<dyn Fn(&DbError) + Send + Sync>;

/// An open connection.
#[allow(missing_debug_implementations)] // `Client` has none.
pub struct Connected {
    /// The connection.
    pub client: Client,
    /// The server that answered, as messages name it: `db-1:5432`.
    pub server: String,
}

/// What all attempts have in common.
#[derive(Clone)]
pub(super) struct Attempt {
    settings: Arc<Settings>,
    application_name: String,
    /// The text of the password file. As in libpq, it is read for each connection, because a password may change while a
    /// job runs.
    passwords: Option<String>,
    on_notice: Option<OnNotice>,
    /// When a connection ends by itself.
    end: Instant,
    /// The preparation for TLS, or why it failed. A failure matters only for an attempt with TLS.
    tls: Result<Prepared, String>,
}

impl Attempt {
    pub(super) fn new(
        settings: &Settings,
        application_name: &str,
        ends: BootTime,
        on_notice: Option<OnNotice>,
    ) -> Self {
        let passwords = settings
            .passfile
            .as_deref()
            .and_then(|path| match read_passfile(path) {
                Passfile::Text(text) => Some(text),
                Passfile::Missing | Passfile::Unusable(_) => None,
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
            on_notice,
            end: Instant::now() + ends.remaining() + GRACE,
            tls: if needed {
                tls::prepare(&settings.tls)
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
    ) -> Result<Connected, Vec<(String, ConnectError)>> {
        let end = BootTime::now() + share;
        let addresses = resolve::addresses(host, share, self.settings.shuffle)
            .map_err(|r| vec![(resolve::name_of(host), r)])?;
        let mut errors = Vec::new();
        for (at, address) in addresses.iter().enumerate() {
            let left = end.remaining() / u32::try_from(addresses.len() - at).unwrap_or(u32::MAX);
            let limit = self.settings.connect_timeout.map_or(left, |t| t.min(left));
            let (this, its_host, its_address) = (self.clone(), host.clone(), address.clone());
            let tried = within(limit, move || {
                this.address(&its_host, &its_address, target, limit)
            });
            let server = resolve::label(host, address, addresses.len());
            match tried.unwrap_or_else(Err) {
                Ok(client) => return Ok(Connected { client, server }),
                Err(error) => {
                    let login = error.fault == Fault::Login;
                    errors.push((server, error));
                    if login {
                        break;
                    }
                }
            }
        }
        Err(errors)
    }

    /// Tries one address.
    fn address(
        &self,
        host: &Host,
        address: &Address,
        target: Target,
        limit: Duration,
    ) -> Result<Client, ConnectError> {
        let mode = match address {
            Address::Socket(_) => SslMode::Disable,
            Address::Ip(_) => self.settings.tls.mode,
        };
        let client = in_the_order_of(mode, |way| self.once(host, address, limit, way))?;
        session::fits(client, target)
    }

    /// One attempt.
    fn once(
        &self,
        host: &Host,
        address: &Address,
        limit: Duration,
        way: Way,
    ) -> Result<Client, WayError> {
        descriptors().map_err(|error| (ConnectError::of_io(&error), false))?;
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
        if let Some(on_notice) = self.on_notice.clone() {
            config.notice_callback(move |notice| on_notice(&notice));
        }
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
                        ConnectError::new(
                            Fault::Refused,
                            "require_auth and sslcertmode=require are not supported on a Unix socket",
                        ),
                        false,
                    ));
                }
                config.host_path(path).ssl_mode(CrateSslMode::Disable);
                return config
                    .connect(NoTls)
                    .map_err(|e| (ConnectError::of(&e), false));
            }
            Address::Ip(ip) => *ip,
        };
        // This name is not used. The connector knows the one that the certificate must be for.
        config.host("server").hostaddr(ip);
        config
            .ssl_mode(CrateSslMode::Require)
            .ssl_negotiation(SslNegotiation::Direct);
        let encrypted = Arc::new(AtomicBool::new(false));
        let connector = Connector {
            encryption: self.encryption(host, ip, way).map_err(|r| (r, false))?,
            methods: settings.require_auth,
            cert_mode: settings.tls.cert_mode,
            encrypted: Arc::clone(&encrypted),
            login_by: Instant::now() + limit + GRACE,
            end: self.end,
        };
        config
            .connect(connector)
            .map_err(|e| (ConnectError::of(&e), encrypted.load(Ordering::Acquire)))
    }

    fn encryption(&self, host: &Host, ip: IpAddr, way: Way) -> Result<Encryption, ConnectError> {
        if way == Way::Plain {
            return Ok(Encryption::Plain);
        }
        if host.name.is_none() && self.settings.tls.mode == SslMode::VerifyFull {
            return Err(ConnectError::new(
                Fault::Refused,
                "sslmode=verify-full needs host as well as hostaddr: the certificate must be for that name",
            ));
        }
        let prepared = self.tls.clone().map_err(|why| ConnectError {
            stage: Stage::Handshake,
            ..ConnectError::new(Fault::Refused, why)
        })?;
        let handshake = Handshake {
            prepared,
            server: host.name.clone().unwrap_or_else(|| ip.to_string()),
            direct: self.settings.tls.direct,
        };
        Ok(if way == Way::Required {
            Encryption::Required(handshake)
        } else {
            Encryption::IfOffered(handshake)
        })
    }

    fn password(&self, host: &Host) -> Option<String> {
        let settings = &self.settings;
        settings.password.clone().or_else(|| {
            let text = self.passwords.as_deref()?;
            host.for_passfile().iter().find_map(|name| {
                let entry = PassfileEntry {
                    host: name,
                    port: host.port,
                    database: &settings.database,
                    user: &settings.user,
                };
                find_password(text, &entry)
            })
        })
    }
}

/// Checks that there are enough free file descriptors for a connection. The `postgres` crate needs three for an event loop,
/// and panics without them. That would end a run, although the next attempt might succeed.
fn descriptors() -> io::Result<()> {
    let two = io::pipe()?;
    let four = io::pipe()?;
    drop((two, four));
    Ok(())
}
