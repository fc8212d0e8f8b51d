//! The arguments of `lease status`.

use clap::{Args, ValueEnum};

use super::value_parsers::{Named, text};

/// The formats of `status`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum StatusFormat {
    /// Columns with a heading
    Table,
    /// A JSON array, one object for each key
    Json,
    /// Gauges for each key, free ones too, for node_exporter's textfile collector
    #[value(name = "openmetrics")]
    OpenMetrics,
}

/// Arguments of `lease status`.
#[derive(Args, Debug)]
pub struct Status {
    /// Show free keys too
    #[arg(long)]
    pub all: bool,

    /// Exit 0 if every named key is held, and 1 otherwise; with -q, print nothing
    #[arg(long, requires = "keys")]
    pub exit_code: bool,

    /// Show the leases again and again at this interval, until q or Ctrl-C is pressed; an argument that is not a duration is taken as a KEY [default interval: 2s]
    #[arg(long, value_name = "INTERVAL", num_args = 0..=1, conflicts_with = "exit_code", value_parser = Named(text))]
    pub watch: Option<Option<String>>,

    /// Print the leases in this format
    #[arg(long, value_name = "FORMAT", value_enum, default_value = "table")]
    pub format: StatusFormat,

    /// Keys to show, whatever their state; `*` and `?` are wildcards, `\*` and `\?` match literally [default: all that are not free]
    #[arg(value_name = "KEY", value_parser = Named(text))]
    pub keys: Vec<String>,
}
