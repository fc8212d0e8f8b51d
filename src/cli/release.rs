//! The arguments of `lease release`.

use std::time::Duration;

use clap::Args;

use super::durations::hold_at_least;
use super::value_parsers::{Named, code};
use crate::lease::{Fence, Holder, Key};

/// Arguments of `lease release`.
#[derive(Args, Debug)]
pub struct ReleaseArgs {
    /// Keep the key closed until this long after the claim (at most 30days)
    #[arg(long, value_name = "DURATION", default_value = "0s", allow_hyphen_values = true, value_parser = Named(hold_at_least))]
    pub hold_at_least: Duration,

    /// Release the term of this holder [default: LEASE_HOLDER]
    #[arg(long, value_name = "ID", value_parser = Named(str::parse::<Holder>))]
    pub holder: Option<Holder>,

    /// Release the term with this fence [default: FENCE; none with --force]
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = Named(str::parse::<Fence>))]
    pub fence: Option<Fence>,

    /// Record in the history that the script ended with this code; 0 means success
    #[arg(long, value_name = "N", allow_negative_numbers = true, conflicts_with = "force", value_parser = Named(code))]
    pub job_code: Option<u8>,

    /// Evict the current holder, whoever it is; with --fence, only if the fence is still this one
    ///
    /// An evicted run notices at its next heartbeat and stops its job. Until then, its job and another one may both run.
    #[arg(long, requires = "key", conflicts_with = "holder")]
    pub force: bool,

    /// The key of the term [default: LEASE_KEY; required with --force]
    #[arg(value_name = "KEY", value_parser = Named(str::parse::<Key>))]
    pub key: Option<Key>,
}
