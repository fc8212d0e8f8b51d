//! The stream of a connection, and its limits.
//!
//! The `postgres` crate can request TLS and read answers by itself, but without libpq's rules, and without a limit on what
//! a peer may send. It lets its caller replace the stream in one place: the TLS connector of a "direct" connection. Ours
//! requests TLS as libpq does, and returns a stream that checks each message before it is kept in memory.
//!
//! | file | what it does |
//! |---|---|
//! | `connector` | requests TLS, and makes the stream of one connection attempt |
//! | `stream` | the stream, which ends at its time limit |
//! | `inbound` | checks what the server sends |
//! | `error` | the errors of a stream |

mod connector;
mod error;
mod inbound;
mod stream;

pub(super) use self::connector::{Connector, Encryption, Handshake};
pub(super) use self::error::WireError;
