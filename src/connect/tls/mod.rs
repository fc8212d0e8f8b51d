//! TLS: the handshake, and the verification of the server's certificate.
//!
//! | file | what it does |
//! |---|---|
//! | `prepare` | reads the files that the settings name, and prepares a handshake |
//! | `pem` | files with certificates and keys |
//! | `verify` | verifies the server's certificate |
//! | `certificate_error` | says why a certificate is not accepted |

mod certificate_error;
mod pem;
mod prepare;
mod verify;

pub(super) use self::prepare::{Prepared, prepare};
pub(super) use self::verify::UntrustedCertificate;
