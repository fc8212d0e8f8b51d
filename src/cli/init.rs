//! The arguments of `lease init`.

use clap::Args;

use super::durations::keep;
use super::value_parsers::Named;
use crate::record::Keep;

/// Arguments of `lease init`.
#[derive(Args, Debug)]
pub struct Init {
    /// Print the SQL instead of running it; this needs no database
    #[arg(long)]
    pub print: bool,

    /// Also create lease_check_fence and its table, in the schema of --table
    #[arg(long)]
    pub with_fencing: bool,

    /// Keep the history of each key for at least this long (1h to 100years, or forever) [default: no change, and 90days for a new table]
    #[arg(long, value_name = "DURATION", allow_hyphen_values = true, value_parser = Named(keep))]
    pub keep_history: Option<Keep>,

    /// Create no history of runs; an existing one stays
    #[arg(long, conflicts_with = "keep_history")]
    pub no_history: bool,
}
