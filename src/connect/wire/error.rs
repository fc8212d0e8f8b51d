//! The errors of a stream.

use std::fmt;
use std::io;

/// Why a connection failed before the server could report an error itself.
#[derive(Debug)]
pub(in crate::connect) enum WireError {
    /// The answer is not PostgreSQL's protocol.
    NotPostgres,
    /// The peer sends more than a server ever would.
    TooMuch,
    /// The server does not support TLS, and it is required.
    NoTls,
    /// The TLS handshake failed.
    Handshake(io::Error),
    /// The server requested a method of authentication that `require_auth` excludes.
    AuthMethod(&'static str),
    /// The server took too long.
    Late,
    /// The server accepted the login without the certificate that `sslcertmode=require` wants it to check.
    CertificateNotRequested,
}

impl fmt::Display for WireError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotPostgres => f.write_str("the peer is not a PostgreSQL server"),
            Self::TooMuch => f.write_str("the peer sends more than a PostgreSQL server would"),
            Self::NoTls => f.write_str("the server does not support TLS, but sslmode requires it"),
            Self::Handshake(e) => write!(f, "TLS: {e}"),
            Self::AuthMethod("none") => {
                f.write_str("require_auth: the server did not request authentication")
            }
            Self::AuthMethod(method) => {
                write!(
                    f,
                    "require_auth: the server requested {method} authentication"
                )
            }
            Self::Late => f.write_str("the server did not answer in time"),
            Self::CertificateNotRequested => {
                f.write_str("sslcertmode=require: the server did not request a certificate")
            }
        }
    }
}

impl std::error::Error for WireError {}

impl From<WireError> for io::Error {
    fn from(e: WireError) -> Self {
        Self::new(io::ErrorKind::InvalidData, e)
    }
}
