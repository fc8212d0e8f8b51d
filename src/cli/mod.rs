//! The command line: plain data and its help text. The only inputs are the arguments, and the variables that stand in for
//! options. An empty variable counts as unset.
//!
//! | file | what happens there |
//! |---|---|
//! | `command` | the command line as a whole: the global options and the verbs |
//! | a file for each verb | its arguments |
//! | `claim_options`, `term_format` | what the arguments of several verbs share |
//! | `value_parsers` | which values an option accepts, and which option a complaint names |
//! | `durations` | the same for durations |
//! | `watch` | the argument of `--watch`: an interval or a key |
//! | `shown` | a wrong value, made fit for a message |
//! | `parse` | from the arguments to the types |
//! | `help_text` | what a manual page says beyond the options |
//!
//! `completions/` and `man/` are generated from these types. `cargo test --test generated` checks that they are current.

mod claim;
mod claim_options;
mod command;
mod durations;
pub mod help_text;
mod history;
mod init;
mod parse;
mod purge;
mod release;
mod renew;
mod run;
mod shown;
mod status;
mod term_format;
mod value_parsers;
mod watch;

pub use self::claim::ClaimArgs;
pub use self::claim_options::Acquire;
pub use self::command::{Cli, Command, Common};
pub use self::durations::duration;
pub use self::history::{History, HistoryFormat};
pub use self::init::Init;
pub(crate) use self::parse::lacks;
pub use self::parse::parse;
pub(crate) use self::purge::PURGE_USAGE;
pub use self::purge::Purge;
pub use self::release::ReleaseArgs;
pub use self::renew::Renew;
pub(crate) use self::run::RUN_USAGE;
pub use self::run::Run;
pub(crate) use self::shown::{shown, without_passwords};
pub use self::status::{Status, StatusFormat};
pub use self::term_format::TermFormat;
pub use self::value_parsers::LogFormat;
pub use self::watch::{WatchArgument, watch};
