//! Connections to real servers, compared with `psql`.

#[path = "../support/mod.rs"]
mod support;

mod both;
mod hosts;
mod peers;
mod settings;
mod tls;

use std::time::Duration;

/// The time limit for something that must happen.
const PATIENCE: Duration = Duration::from_secs(120);

/// A port of this machine without a server.
const NOBODY: u16 = 1;
