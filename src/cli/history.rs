//! The arguments of `lease history`.

use std::time::Duration;

use clap::{Args, ValueEnum};

use super::durations::back;
use super::value_parsers::{Named, count, text};

/// The formats of `history`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum HistoryFormat {
    /// Columns with a heading, with times in the time zone of TZ
    Table,
    /// A JSON array, one object for each run or key, with times in UTC
    Json,
}

/// Arguments of `lease history`.
#[derive(Args, Debug)]
pub struct History {
    /// Show the runs that began no longer ago than this [default: the last 20 runs]
    #[arg(long, value_name = "DURATION", allow_hyphen_values = true, value_parser = Named(back))]
    pub since: Option<Duration>,

    /// Show at most this many runs
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = Named(count))]
    pub limit: Option<u32>,

    /// Show only runs that failed, vanished, or lost their lease
    #[arg(long)]
    pub failed: bool,

    /// Show the last run of each key, and when it last succeeded
    #[arg(long, conflicts_with_all = ["since", "limit"])]
    pub last: bool,

    /// Show the keys whose last success is older than this, and exit 1; if there are none, print nothing and exit 0
    #[arg(long, value_name = "DURATION", allow_hyphen_values = true, value_parser = Named(back), conflicts_with_all = ["since", "limit", "failed", "last"])]
    pub overdue: Option<Duration>,

    /// Draw a line for each key that shows when it ran, failed or did nothing, within --since [default: 24h]
    #[arg(long, conflicts_with_all = ["limit", "failed", "last", "overdue"])]
    pub chart: bool,

    /// Print the runs in this format
    #[arg(long, value_name = "FORMAT", value_enum, default_value = "table")]
    pub format: HistoryFormat,

    /// Keys to show; `*` and `?` are wildcards, `\*` and `\?` match literally [default: all]
    #[arg(value_name = "KEY", value_parser = Named(text))]
    pub keys: Vec<String>,
}
