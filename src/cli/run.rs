//! The arguments of `lease run`.

use std::ffi::OsString;
use std::time::Duration;

use clap::Args;

use super::claim_options::Acquire;
use super::durations::{duration, hold_at_least, once_per};
use super::value_parsers::{LogFormat, Named, OneOf, log_format};
use crate::job::OnLoss;
use crate::lease::Key;

/// The usage of `run`.
pub(crate) const RUN_USAGE: &str = "lease run [OPTIONS] <KEY> [--] <COMMAND> [ARGS]...";

/// Arguments of `lease run`.
#[derive(Args, Debug)]
pub struct Run {
    /// The options of the claim.
    #[command(flatten)]
    pub acquire: Acquire,

    /// Keep the key closed until this long after the claim, even if the job ends sooner (at most 30days)
    ///
    /// Without it, a machine whose clock is late could run a short job a second time.
    #[arg(long, value_name = "DURATION", default_value = "0s", allow_hyphen_values = true, value_parser = Named(hold_at_least))]
    pub hold_at_least: Duration,

    /// Run only if the last success of this key is older than this (1s to 10years)
    ///
    /// Otherwise the run is skipped. A success is a job that ended with code 0 and did not lose its lease, as `lease
    /// history` shows it.
    #[arg(long, value_name = "DURATION", allow_hyphen_values = true, value_parser = Named(once_per))]
    pub once_per: Option<Duration>,

    /// Renew the lease this often [default: ttl / 3, or less if --grace leaves less room]
    #[arg(long, value_name = "DURATION", allow_hyphen_values = true, value_parser = Named(duration))]
    pub heartbeat: Option<Duration>,

    /// Wait this long between TERM and KILL when stopping the job [default: ttl / 6, at most 10s, or less if --heartbeat leaves less room]
    #[arg(long, value_name = "DURATION", allow_hyphen_values = true, value_parser = Named(duration))]
    pub grace: Option<Duration>,

    /// Choose what happens to the job if the lease is lost
    #[arg(long, value_name = "WHAT", value_enum, default_value = "stop")]
    pub on_loss: OnLoss,

    /// Write the messages of lease to stderr in this format
    #[arg(long, value_name = "FORMAT", env = "LEASE_LOG_FORMAT", default_value = "text", hide_env_values = true, value_parser = OneOf(Named(log_format)))]
    pub log_format: LogFormat,

    /// The key of the lease: 1 to 1024 bytes of UTF-8
    #[arg(value_name = "KEY", value_parser = Named(str::parse::<Key>))]
    pub key: Key,

    /// The job: a command and its arguments, started without a shell
    #[arg(value_name = "COMMAND", required = true, trailing_var_arg = true, num_args = 1.., value_hint = clap::ValueHint::CommandWithArguments)]
    pub command: Vec<OsString>,
}
