//! The support is tested like anything else: a witness that sees nothing would let every test pass.

#[path = "../support/mod.rs"]
mod support;

mod networks;
mod processes;
mod sandbox;
mod servers;
mod standbys;
mod terminals;
