//! The options of a claim, for `run` and `claim`.

use std::time::Duration;

use clap::Args;

use super::durations::ttl;
use super::value_parsers::{Named, code, text};
use crate::timing::Wait;

/// The options of a claim, for `run` and `claim`.
#[derive(Args, Debug)]
pub struct Acquire {
    /// Let the lease expire this long after the claim or the last renewal (100ms to 30days)
    #[arg(long, value_name = "DURATION", env = "LEASE_TTL", default_value = "60s", hide_env_values = true, allow_hyphen_values = true, value_parser = Named(ttl))]
    pub ttl: Duration,

    /// Whether `ttl` was typed. A default never shortens a lease.
    #[arg(skip)]
    pub ttl_was_typed: bool,

    /// Wait for up to this long, or `forever`, if someone else holds the lease. Waiters are not served in order [default: do not wait]
    #[arg(long, value_name = "DURATION", allow_hyphen_values = true, value_parser = Named(str::parse::<Wait>))]
    pub wait: Option<Wait>,

    /// With --wait, keep one connection while waiting and look every 20 ms, so that the wait ends milliseconds after a release
    #[arg(long, requires = "wait")]
    pub eager: bool,

    /// Exit with this code if someone else holds the lease, the key is cooling or the run is not due; 0 if a skipped run is not a failure
    #[arg(short = 'E', long, value_name = "N", default_value_t = crate::exit::Exit::Conflict.code(), allow_negative_numbers = true, value_parser = Named(code))]
    pub conflict_exit_code: u8,

    /// Begin the holder's name with this; a random part follows [default: host name]
    #[arg(long, value_name = "NAME", value_parser = Named(text))]
    pub name: Option<String>,
}
