//! Why a connection attempt failed: in words, and as a kind.
//!
//! The `postgres` crate says "error connecting to server", and keeps the cause in a chain of sources.

use std::error::Error;
use std::io;

use crate::fault::Fault;
use crate::text::{one_line, os_error_text};

use super::tls::UntrustedCertificate;
use super::wire::WireError;

/// Why one connection attempt failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ConnectError {
    pub(super) fault: Fault,
    pub(super) text: String,
    /// Where it failed, which decides whether a second attempt is made.
    pub(super) stage: Stage,
    /// Whether the role can log in, but not to this database.
    pub(super) lacks_connect: bool,
}

/// Where a connection attempt failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// Before or after the other stages.
    Elsewhere,
    /// In the TLS handshake.
    Handshake,
    /// The server does not support TLS.
    NoTls,
    /// The server refused the login. `not_now` means that it cannot accept any at the moment (57P03).
    Refused { not_now: bool },
}

impl ConnectError {
    pub(super) fn new(fault: Fault, text: impl Into<String>) -> Self {
        Self {
            fault,
            text: text.into(),
            stage: Stage::Elsewhere,
            lacks_connect: false,
        }
    }

    /// The cause of an error of the `postgres` crate.
    pub(super) fn of(error: &postgres::Error) -> Self {
        if let Some(said) = error.as_db_error() {
            let code = said.code().code();
            return Self {
                fault: Fault::at_login(code, said.routine()),
                text: one_line(said.message()),
                stage: Stage::Refused {
                    not_now: code == "57P03",
                },
                // The server's function that checks CONNECT. Unlike the message, its name is not translated.
                lacks_connect: code == "42501" && said.routine() == Some("CheckMyDatabase"),
            };
        }
        let mut source = error.source();
        while let Some(cause) = source {
            if let Some(io) = cause.downcast_ref::<io::Error>() {
                return Self::of_io(io);
            }
            if let Some(wire) = cause.downcast_ref::<WireError>() {
                return Self::of_wire(wire);
            }
            if cause.source().is_none() {
                return Self::of_text(&cause.to_string());
            }
            source = cause.source();
        }
        if error.is_closed() {
            return Self::new(Fault::Unreachable, "the server closed the connection");
        }
        Self::new(Fault::Refused, one_line(&error.to_string()))
    }

    /// The cause of an error of the socket, or of our stream on top of it.
    pub(super) fn of_io(error: &io::Error) -> Self {
        if let Some(inner) = error.get_ref() {
            if let Some(wire) = inner.downcast_ref::<WireError>() {
                return Self::of_wire(wire);
            }
            if let Some(tls) = inner.downcast_ref::<rustls::Error>() {
                return Self::new(Fault::Refused, format!("TLS: {}", tls_text(tls)));
            }
        }
        let known = [
            (
                io::ErrorKind::ConnectionReset,
                "connection reset by the server",
            ),
            (io::ErrorKind::TimedOut, "connection timed out"),
            (
                io::ErrorKind::UnexpectedEof,
                "the server closed the connection unexpectedly",
            ),
            (
                io::ErrorKind::NotFound,
                "no such socket (is the server running on this machine?)",
            ),
        ];
        let known = known.iter().find(|(kind, _)| *kind == error.kind());
        let text = known.map_or_else(|| os_error_text(error), |(_, text)| (*text).to_owned());
        Self::new(Fault::Unreachable, text)
    }

    fn of_wire(error: &WireError) -> Self {
        match error {
            WireError::Handshake(io) => Self {
                stage: Stage::Handshake,
                ..Self::of_io(io)
            },
            WireError::NoTls => Self {
                stage: Stage::NoTls,
                ..Self::new(Fault::Refused, error.to_string())
            },
            WireError::Late => Self::new(Fault::Timeout, error.to_string()),
            WireError::AuthMethod(_) => Self::new(Fault::Login, error.to_string()),
            WireError::NotPostgres | WireError::TooMuch | WireError::CertificateNotRequested => {
                Self::new(Fault::Refused, error.to_string())
            }
        }
    }

    /// The crate's own refusals, which have no type of their own.
    fn of_text(text: &str) -> Self {
        match text {
            "password missing" => Self::new(
                Fault::Login,
                "the server requested a password, and none is set (PGPASSWORD, a password file, or the connection string)",
            ),
            "server did not use channel binding" => Self::new(
                Fault::Login,
                "channel_binding=require: the server did not bind the login to a TLS connection",
            ),
            "unsupported authentication method" => Self::new(
                Fault::Login,
                "the server requested a method of authentication that is not supported (Kerberos, GSSAPI or SSPI)",
            ),
            other => Self::new(Fault::Refused, one_line(other)),
        }
    }
}

fn tls_text(error: &rustls::Error) -> String {
    if let rustls::Error::InvalidCertificate(rustls::CertificateError::Other(other)) = error
        && let Some(why) = other.0.downcast_ref::<UntrustedCertificate>()
    {
        return one_line(&why.to_string());
    }
    if let rustls::Error::AlertReceived(alert) = error {
        let hint = if matches!(
            alert,
            rustls::AlertDescription::CertificateRequired
                | rustls::AlertDescription::HandshakeFailure
        ) {
            " (does the server require a client certificate? see sslcert and sslkey)"
        } else {
            ""
        };
        return format!("the server ended the handshake: {alert:?}{hint}");
    }
    one_line(&error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_of_the_socket_reads_like_our_own() {
        let refused = io::Error::from_raw_os_error(111);
        assert_eq!(ConnectError::of_io(&refused).text, "connection refused");
        let unreachable = io::Error::from_raw_os_error(101);
        assert_eq!(
            ConnectError::of_io(&unreachable).text,
            "network is unreachable"
        );
        assert_eq!(ConnectError::of_io(&unreachable).fault, Fault::Unreachable);
    }

    #[test]
    fn an_error_of_our_stream_is_found_in_one_of_the_socket() {
        let error = ConnectError::of_io(&WireError::NoTls.into());
        assert_eq!((error.fault, error.stage), (Fault::Refused, Stage::NoTls));
        let error = ConnectError::of_io(&WireError::AuthMethod("password").into());
        assert_eq!(error.fault, Fault::Login);
    }
}
