//! Where the database is, and opening a connection to it within a time limit.
//!
//! People have one way of saying where their database is, and it works in `psql`. It has to work here, word for
//! word: a URI or a `key=value` string, PG* variables, a service file, a password file, the six degrees of `sslmode`.
//! The `postgres` crate's own reader of connection strings knows a third of that, and reads some of it differently, so
//! it is not used.
//!
//! | file | what happens there |
//! |---|---|
//! | `keywords` | the words of a connection string and their variables |
//! | `conninfo`, `uri` | `key=value` strings and URIs, to words |
//! | `service`, `passfile` | the two files |
//! | `values`, `options` | what a value may be and means |
//! | `found` | which value counts, and which may not be left aside; the hosts |
//! | `settings` | all of it together, with the defaults |
//! | `tls`, `handshake`, `pem` | what was set about TLS, what a handshake needs, and the files it comes from |
//! | `verify`, `explain` | whether a certificate is trusted, and why not |
//! | `wire`, `inbound` | the bytes of a connection: SSLRequest, limits, the way of authentication |
//! | `open`, `attempt`, `places` | host after host, address after address, each within its share of the time |
//! | `session` | whether a server is of the wanted kind |
//! | `reason` | errors, in words |

use std::fmt;

use crate::fault::Fault;

mod attempt;
mod conninfo;
mod explain;
mod found;
mod handshake;
mod inbound;
mod keywords;
mod open;
mod options;
mod passfile;
mod pem;
mod places;
mod reason;
mod service;
mod session;
mod settings;
mod surroundings;
mod tls;
mod uri;
mod values;
mod verify;
mod wire;

pub use open::open;
pub use settings::Settings;

/// What the connection is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Reading: any server will do, a standby too.
    Read,
    /// Writing: of several hosts, the one that takes writes.
    Write,
}

/// A connection string, variable or file that can't be used. The text names the setting and says what would be right;
/// it never holds a password.
#[derive(Debug)]
pub struct SettingsError {
    text: String,
    /// The keyword of the setting, where the text does not say where its value comes from.
    about: Option<String>,
}

impl SettingsError {
    fn new(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            about: None,
        }
    }

    /// An error in the value of one setting; `Found` knows where that was found.
    fn about(keyword: &str, text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            about: Some(keyword.to_owned()),
        }
    }
}

impl fmt::Display for SettingsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for SettingsError {}

/// Why no connection could be opened.
#[derive(Debug)]
pub struct OpenError {
    /// The kind of failure, of the host that decided it.
    pub fault: Fault,
    /// A fragment for a message: every host that was tried, with its reason. Never a password.
    pub message: String,
}
