//! Connecting where `psql` connects, against real servers.

mod both;
mod certificates;
mod hosts;
mod peers;
mod server;
mod settings;
mod tls;
