//! Connecting where `psql` connects, against real servers.

#[path = "../support/mod.rs"]
mod support;

mod both;
mod hosts;
mod peers;
mod settings;
mod tls;

use std::time::Duration;

/// How long anything may take that has to happen.
const PATIENCE: Duration = Duration::from_secs(120);

/// A port of this machine that nobody listens on.
const NOBODY: u16 = 1;
