//! The arguments of `lease purge`.

use std::time::Duration;

use clap::Args;

use super::durations::older_than;
use super::value_parsers::{Named, text};

/// The usage of `purge`: the one verb with an option that is required.
pub(crate) const PURGE_USAGE: &str = "lease purge --older-than <DURATION> [OPTIONS] [KEY]...";

/// Arguments of `lease purge`.
#[derive(Args, Debug)]
pub struct Purge {
    /// Remove only keys that nobody has used for this long (1ms to 100years)
    #[arg(long, value_name = "DURATION", required = true, allow_hyphen_values = true, value_parser = Named(older_than))]
    pub older_than: Duration,

    /// List the keys that would be removed, and remove nothing
    #[arg(long)]
    pub dry_run: bool,

    /// Keys to remove; `*` and `?` are wildcards, `\*` and `\?` match literally [default: all]
    #[arg(value_name = "KEY", value_parser = Named(text))]
    pub keys: Vec<String>,
}
