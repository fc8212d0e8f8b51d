//! The arguments of `lease renew`.

use std::time::Duration;

use clap::Args;

use super::durations::ttl;
use super::term_format::TermFormat;
use super::value_parsers::Named;
use crate::lease::{Fence, Holder, Key};

/// Arguments of `lease renew`.
#[derive(Args, Debug)]
pub struct Renew {
    /// Let the lease expire this long from now, even if it had more time left; the default never shortens it (100ms to 30days)
    #[arg(long, value_name = "DURATION", env = "LEASE_TTL", default_value = "60s", hide_env_values = true, allow_hyphen_values = true, value_parser = Named(ttl))]
    pub ttl: Duration,

    /// Whether `ttl` was typed. A default never shortens a lease.
    #[arg(skip)]
    pub ttl_was_typed: bool,

    /// Renew the term of this holder [default: LEASE_HOLDER]
    #[arg(long, value_name = "ID", value_parser = Named(str::parse::<Holder>))]
    pub holder: Option<Holder>,

    /// Renew the term with this fence [default: FENCE]
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = Named(str::parse::<Fence>))]
    pub fence: Option<Fence>,

    /// Print the answer in this format
    #[arg(long, value_name = "FORMAT", value_enum, default_value = "shell")]
    pub format: TermFormat,

    /// The key of the term [default: LEASE_KEY]
    #[arg(value_name = "KEY", value_parser = Named(str::parse::<Key>))]
    pub key: Option<Key>,
}
