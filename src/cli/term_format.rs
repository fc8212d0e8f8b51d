//! The formats in which `claim` and `renew` print a term.

use clap::ValueEnum;

/// The formats of a term.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum TermFormat {
    /// `export` commands for a POSIX shell
    Shell,
    /// One JSON object
    Json,
}
