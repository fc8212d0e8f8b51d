//! The arguments of `lease claim`.

use clap::Args;

use super::claim_options::Acquire;
use super::term_format::TermFormat;
use super::value_parsers::Named;
use crate::lease::{Holder, Key};

/// Arguments of `lease claim`.
#[derive(Args, Debug)]
pub struct ClaimArgs {
    /// The options of the claim.
    #[command(flatten)]
    pub acquire: Acquire,

    /// Claim as exactly this holder. If it has the lease already, the claim extends it, and the default --ttl never shortens it
    #[arg(long, value_name = "ID", conflicts_with = "name", value_parser = Named(str::parse::<Holder>))]
    pub holder: Option<Holder>,

    /// Print the answer in this format
    #[arg(long, value_name = "FORMAT", value_enum, default_value = "shell")]
    pub format: TermFormat,

    /// The key of the lease: 1 to 1024 bytes of UTF-8
    #[arg(value_name = "KEY", value_parser = Named(str::parse::<Key>))]
    pub key: Key,
}
