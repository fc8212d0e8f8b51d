//! Connecting where `psql` connects, against real servers.

#[path = "../support/mod.rs"]
mod support;

mod both;
mod certificates;
mod hosts;
mod peers;
mod server;
mod settings;
mod tls;
