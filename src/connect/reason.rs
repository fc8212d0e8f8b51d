//! Why a connection failed, in words and as a kind.
//!
//! The `postgres` crate says "error connecting to server" and keeps the reason in a chain of sources; this looks there.

use std::error::Error;
use std::io;

use crate::fault::Fault;

use super::verify::Untrusted;
use super::wire::WireError;

/// Why one try came to nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Reason {
    pub(super) fault: Fault,
    pub(super) text: String,
    /// Where it broke off, which decides whether another way is tried.
    pub(super) stage: Stage,
    /// Whether the role may log in, but not into this database.
    pub(super) lacks_connect: bool,
}

/// How far a try came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// Before or after everything else here.
    Elsewhere,
    /// In setting TLS up.
    Handshake,
    /// The server has no TLS.
    NoTls,
    /// The server itself refused the login; true if it only can't take it right now (57P03).
    Refused { not_now: bool },
}

impl Reason {
    pub(super) fn new(fault: Fault, text: impl Into<String>) -> Self {
        Self {
            fault,
            text: text.into(),
            stage: Stage::Elsewhere,
            lacks_connect: false,
        }
    }

    /// What the `postgres` crate reports.
    pub(super) fn of(error: &postgres::Error) -> Self {
        if let Some(said) = error.as_db_error() {
            let code = said.code().code();
            return Self {
                fault: Fault::at_login(code, said.routine()),
                text: printable(said.message()),
                stage: Stage::Refused {
                    not_now: code == "57P03",
                },
                // The server's function that looks at CONNECT. Unlike the message, its name is not translated.
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
        Self::new(Fault::Refused, printable(&error.to_string()))
    }

    /// What the socket, or our own stream on top of it, reports.
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
            (io::ErrorKind::ConnectionRefused, "connection refused"),
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
                "there is no such socket (is the server running there?)",
            ),
        ];
        let text = known
            .iter()
            .find(|(kind, _)| *kind == error.kind())
            .map_or_else(
                || without_number(&error.to_string()),
                |(_, text)| (*text).to_owned(),
            );
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
            WireError::Method(_) => Self::new(Fault::Login, error.to_string()),
            WireError::NotPostgres | WireError::TooMuch | WireError::NoCertificateAsked => {
                Self::new(Fault::Refused, error.to_string())
            }
        }
    }

    /// The crate's own refusals, which have no type.
    fn of_text(text: &str) -> Self {
        match text {
            "password missing" => Self::new(
                Fault::Login,
                "the server asks for a password, and none is set (PGPASSWORD, a password file, or the connection string)",
            ),
            "server did not use channel binding" => Self::new(
                Fault::Login,
                "channel_binding=require: the server does not bind the login to a TLS connection",
            ),
            "unsupported authentication method" => Self::new(
                Fault::Login,
                "the server asks for a way of authentication that is not supported here (Kerberos, GSSAPI or SSPI)",
            ),
            other => Self::new(Fault::Refused, printable(other)),
        }
    }
}

fn tls_text(error: &rustls::Error) -> String {
    if let rustls::Error::InvalidCertificate(rustls::CertificateError::Other(other)) = error
        && let Some(why) = other.0.downcast_ref::<Untrusted>()
    {
        return printable(&why.to_string());
    }
    if let rustls::Error::AlertReceived(alert) = error {
        let hint = if matches!(
            alert,
            rustls::AlertDescription::CertificateRequired
                | rustls::AlertDescription::HandshakeFailure
        ) {
            " (does it want a client certificate? sslcert, sslkey)"
        } else {
            ""
        };
        return format!("the server broke the handshake off: {alert:?}{hint}");
    }
    printable(&error.to_string())
}

/// Why a name has no address. `getaddrinfo`'s codes reach us as its texts alone, which nobody translates, since this
/// process never calls `setlocale`.
pub(super) fn unresolved(error: &io::Error) -> String {
    let text = without_number(&error.to_string());
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
    format!("its name was not resolved: {}", without_number(text))
}

/// The text of an error of the operating system without its number, in lower case as our own messages.
pub(super) fn without_number(text: &str) -> String {
    let text = text.split_once(" (os error").map_or(text, |(t, _)| t);
    let mut chars = text.chars();
    let text = match (chars.next(), chars.next()) {
        (Some(a), Some(b)) if a.is_uppercase() && b.is_lowercase() => {
            format!("{}{}", a.to_lowercase(), &text[a.len_utf8()..])
        }
        _ => text.to_owned(),
    };
    printable(&text)
}

/// What a stranger sent, without anything that could write to a terminal, on one line.
pub(super) fn printable(text: &str) -> String {
    let text: String = text
        .chars()
        .take(1000)
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect();
    text.trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_systems_errors_read_like_our_own() {
        let refused = io::Error::from_raw_os_error(111);
        assert_eq!(Reason::of_io(&refused).text, "connection refused");
        let unreachable = io::Error::from_raw_os_error(101);
        assert_eq!(Reason::of_io(&unreachable).text, "network is unreachable");
        assert_eq!(Reason::of_io(&unreachable).fault, Fault::Unreachable);
        assert_eq!(without_number("DNS is down"), "DNS is down");
    }

    #[test]
    fn a_name_that_nobody_knows_is_no_such_host() {
        let told = |text: &str| {
            unresolved(&io::Error::other(format!(
                "failed to lookup address information: {text}"
            )))
        };
        assert_eq!(told("Name or service not known"), "no such host");
        assert_eq!(
            told("Temporary failure in name resolution"),
            "its name was not resolved: temporary failure in name resolution"
        );
    }

    #[test]
    fn our_streams_errors_are_found_behind_the_sockets() {
        let reason = Reason::of_io(&WireError::NoTls.into());
        assert_eq!((reason.fault, reason.stage), (Fault::Refused, Stage::NoTls));
        let reason = Reason::of_io(&WireError::Method("password").into());
        assert_eq!(reason.fault, Fault::Login);
    }

    #[test]
    fn a_server_cannot_write_to_the_terminal() {
        assert_eq!(printable("a\x1b[31mb\nc"), "a [31mb c");
    }
}
