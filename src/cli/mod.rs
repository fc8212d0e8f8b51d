//! The command line: plain data and its help text. Nothing is read or written here but the arguments, and the
//! variables that stand in for options; an empty variable is none.
//!
//! | file | what happens there |
//! |---|---|
//! | `words` | what the values of options may be |
//! | `parse` | from the arguments to the types |
//! | `manual` | what the manual says beyond the options |
//!
//! `completions/` and `man/` are generated from these types; `cargo test --test generated` proves that they are current.

pub mod manual;
mod parse;
mod words;

use std::ffi::OsString;
use std::time::Duration;

use clap::{ArgAction, Args, Parser, Subcommand, ValueEnum};

use crate::job::OnLoss;
use crate::lease::{Fence, Holder, Key};
use crate::sql::Table;
use crate::timing::Wait;

pub use self::parse::parse;
pub(crate) use self::parse::{RUN_USAGE, lacks};
use self::words::{Named, code, db_timeout, hold_at_least, switch, text, ttl};
pub use self::words::{WatchWord, duration, watch};
pub(crate) use self::words::{shown, without_passwords};

/// Keep a job from running on two machines at once.
///
/// A lease is a row in a PostgreSQL table, with a holder, an expiry and a fencing token. `lease run` claims it, runs the
/// job, renews it by heartbeat, stops the job if the lease is lost, and releases it when the job has ended.
#[derive(Debug, Parser)]
#[command(
    name = "lease",
    bin_name = "lease",
    version,
    propagate_version = true,
    args_override_self = true,
    subcommand_required = true,
    arg_required_else_help = false,
    max_term_width = 100,
    after_long_help = manual::after_help("lease")
)]
pub struct Cli {
    /// What every command takes.
    #[command(flatten)]
    pub common: Common,
    /// The verb.
    #[command(subcommand)]
    pub command: Command,
}

/// What every command takes.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "For every command")]
pub struct Common {
    /// Where the database is: a libpq URI or key=value string; without it PGHOST, PGUSER, PGSERVICE... as with psql
    ///
    /// A password on the command line can be seen by everybody on the machine. Put it into ~/.pgpass, a service file or
    /// LEASE_DATABASE_URL instead.
    #[arg(
        short = 'd',
        long,
        value_name = "URL",
        env = "LEASE_DATABASE_URL",
        global = true,
        hide_env_values = true,
        value_parser = Named::word(text)
    )]
    pub database_url: Option<String>,

    /// The table that holds the leases: schema.table, or a bare name for one in public
    #[arg(
        long,
        value_name = "NAME",
        env = "LEASE_TABLE",
        default_value = "public.lease",
        global = true,
        hide_env_values = true,
        value_parser = Named::value(Table::parse)
    )]
    pub table: Table,

    /// The most that one database operation may take, connecting included
    #[arg(long, value_name = "DURATION", env = "LEASE_DB_TIMEOUT", default_value = "10s", global = true, hide_env_values = true, allow_hyphen_values = true, value_parser = Named::value(db_timeout))]
    pub db_timeout: Duration,

    /// Errors only: a skipped run says nothing
    #[arg(short, long, env = "LEASE_QUIET", global = true, hide_env_values = true, action = ArgAction::SetTrue, value_parser = Named::word(switch))]
    pub quiet: bool,

    /// Say what is done, step by step, on stderr
    #[arg(short, long, global = true)]
    pub verbose: bool,
}

/// The verbs.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run a job while holding a lease
    ///
    /// Claims the lease, runs COMMAND with FENCE, LEASE_KEY and LEASE_HOLDER in its environment, renews by heartbeat,
    /// and releases when the job has ended. If the lease is lost, the job is stopped.
    #[command(override_usage = RUN_USAGE, after_long_help = manual::after_help("run"))]
    Run(Run),
    /// Take a lease, for scripts
    ///
    /// Prints the term for `eval "$(lease claim KEY)"`. Nothing renews it: call `lease renew` before it expires, and
    /// `lease release` at the end.
    #[command(after_long_help = manual::after_help("claim"))]
    Claim(ClaimArgs),
    /// Extend a lease that is held
    ///
    /// With --ttl it expires that long from now, also where more was left. Without --ttl nothing is taken away: it expires
    /// LEASE_TTL (or 60s) from now, or as before where that is later.
    ///
    /// KEY, --holder and --fence default to LEASE_KEY, LEASE_HOLDER and FENCE, as `lease claim` prints them.
    #[command(after_long_help = manual::after_help("renew"))]
    Renew(Renew),
    /// Give a lease back, or take it from whoever has it
    ///
    /// KEY, --holder and --fence default to LEASE_KEY, LEASE_HOLDER and FENCE, as `lease claim` prints them.
    #[command(after_long_help = manual::after_help("release"))]
    Release(ReleaseArgs),
    /// Show who holds what, and until when
    #[command(after_long_help = manual::after_help("status"))]
    Status(Status),
    /// Make the table, or print the SQL that makes it
    ///
    /// Harmless where the table exists. Needed only where the job's role may not create tables: everywhere else the first
    /// claim makes it.
    #[command(after_long_help = manual::after_help("init"))]
    Init(Init),
}

/// What a claim takes, for `run` and `claim` alike.
#[derive(Args, Debug)]
pub struct Acquire {
    /// How long the lease outlives its last heartbeat (100ms to 30days)
    #[arg(long, value_name = "DURATION", env = "LEASE_TTL", default_value = "60s", hide_env_values = true, allow_hyphen_values = true, value_parser = Named::value(ttl))]
    pub ttl: Duration,

    /// Whether `ttl` was typed, and is no default: only then may a claim take away what its holder had left.
    #[arg(skip)]
    pub ttl_was_typed: bool,

    /// Keep trying for that long if someone else holds it; `forever` is allowed [default: no waiting]
    #[arg(long, value_name = "DURATION", allow_hyphen_values = true, value_parser = Named::value(str::parse::<Wait>))]
    pub wait: Option<Wait>,

    /// Exit code when someone else holds the lease
    #[arg(short = 'E', long, value_name = "N", default_value_t = crate::exit::Exit::Conflict.code(), allow_negative_numbers = true, value_parser = Named::value(code))]
    pub conflict_exit_code: u8,

    /// The readable part of the holder; a random part is always added [default: host name]
    #[arg(long, value_name = "NAME", value_parser = Named::word(text))]
    pub name: Option<String>,
}

/// Arguments of `lease run`.
#[derive(Args, Debug)]
pub struct Run {
    /// How the lease is claimed.
    #[command(flatten)]
    pub acquire: Acquire,

    /// Keep others out until this long after the claim, however short the job was
    ///
    /// Replicas whose clocks differ by seconds then do not run the same minute of cron twice.
    #[arg(long, value_name = "DURATION", default_value = "0s", allow_hyphen_values = true, value_parser = Named::value(hold_at_least))]
    pub hold_at_least: Duration,

    /// Time between renewals [default: ttl / 3, less if --grace leaves less]
    #[arg(long, value_name = "DURATION", allow_hyphen_values = true, value_parser = Named::value(duration))]
    pub heartbeat: Option<Duration>,

    /// Between TERM and KILL when the job is stopped [default: ttl / 6, at most 10s, less if --heartbeat leaves less]
    #[arg(long, value_name = "DURATION", allow_hyphen_values = true, value_parser = Named::value(duration))]
    pub grace: Option<Duration>,

    /// What becomes of the job when the lease is lost
    #[arg(long, value_name = "WHAT", value_enum, default_value = "stop")]
    pub on_loss: OnLoss,

    /// What the lease is on: 1 to 1024 bytes of UTF-8
    #[arg(value_name = "KEY", value_parser = Named::word(str::parse::<Key>))]
    pub key: Key,

    /// The job: a command and its arguments, started without a shell
    #[arg(value_name = "COMMAND", required = true, trailing_var_arg = true, num_args = 1.., value_hint = clap::ValueHint::CommandWithArguments)]
    pub command: Vec<OsString>,
}

/// How a term is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum TermFormat {
    /// Lines for a POSIX shell's eval
    Shell,
    /// One JSON object
    Json,
}

/// Arguments of `lease claim`.
#[derive(Args, Debug)]
pub struct ClaimArgs {
    /// How the lease is claimed.
    #[command(flatten)]
    pub acquire: Acquire,

    /// An exact identity, to claim again (extend) what that holder has: it is then good for --ttl from now on; without --ttl as before where that is later
    #[arg(long, value_name = "ID", conflicts_with = "name", value_parser = Named::word(str::parse::<Holder>))]
    pub holder: Option<Holder>,

    /// How the answer is printed
    #[arg(long, value_name = "FORMAT", value_enum, default_value = "shell")]
    pub format: TermFormat,

    /// What the lease is on: 1 to 1024 bytes of UTF-8
    #[arg(value_name = "KEY", value_parser = Named::word(str::parse::<Key>))]
    pub key: Key,
}

/// Arguments of `lease renew`.
#[derive(Args, Debug)]
pub struct Renew {
    /// How long the lease is good from now on; without --ttl as before where that is later (100ms to 30days)
    #[arg(long, value_name = "DURATION", env = "LEASE_TTL", default_value = "60s", hide_env_values = true, allow_hyphen_values = true, value_parser = Named::value(ttl))]
    pub ttl: Duration,

    /// Whether `ttl` was typed, and is no default: only then may it take away what was left.
    #[arg(skip)]
    pub ttl_was_typed: bool,

    /// Whose lease it is [default: LEASE_HOLDER]
    #[arg(long, value_name = "ID", value_parser = Named::word(str::parse::<Holder>))]
    pub holder: Option<Holder>,

    /// The fence of the term [default: FENCE]
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = Named::word(str::parse::<Fence>))]
    pub fence: Option<Fence>,

    /// How the answer is printed
    #[arg(long, value_name = "FORMAT", value_enum, default_value = "shell")]
    pub format: TermFormat,

    /// What the lease is on [default: LEASE_KEY]
    #[arg(value_name = "KEY", value_parser = Named::word(str::parse::<Key>))]
    pub key: Option<Key>,
}

/// Arguments of `lease release`.
#[derive(Args, Debug)]
pub struct ReleaseArgs {
    /// Keep others out until this long after the claim
    #[arg(long, value_name = "DURATION", default_value = "0s", allow_hyphen_values = true, value_parser = Named::value(hold_at_least))]
    pub hold_at_least: Duration,

    /// Whose lease it is [default: LEASE_HOLDER]
    #[arg(long, value_name = "ID", value_parser = Named::word(str::parse::<Holder>))]
    pub holder: Option<Holder>,

    /// The fence of the term [default: FENCE; with --force only what is given here]
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = Named::word(str::parse::<Fence>))]
    pub fence: Option<Fence>,

    /// Take the lease from whoever has it; with --fence only if it is still that term
    ///
    /// An evicted run notices at its next heartbeat and stops its job. Until then both may run.
    #[arg(long, requires = "key", conflicts_with = "holder")]
    pub force: bool,

    /// What the lease is on [default: LEASE_KEY; with --force only what is given here]
    #[arg(value_name = "KEY", value_parser = Named::word(str::parse::<Key>))]
    pub key: Option<Key>,
}

/// How the leases are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum StatusFormat {
    /// Columns for people
    Table,
    /// A JSON array of objects
    Json,
}

/// Arguments of `lease status`.
#[derive(Args, Debug)]
pub struct Status {
    /// Show the free ones too
    #[arg(long)]
    pub all: bool,

    /// Exit with 0 if every named key is held, with 1 if not
    #[arg(long, requires = "keys")]
    pub exit_code: bool,

    /// Show again and again until interrupted; a word that is no duration is a KEY [default interval: 2s]
    #[arg(long, value_name = "INTERVAL", num_args = 0..=1, conflicts_with = "exit_code", value_parser = Named::word(text))]
    pub watch: Option<Option<String>>,

    /// How the leases are shown
    #[arg(long, value_name = "FORMAT", value_enum, default_value = "table")]
    pub format: StatusFormat,

    /// Which ones, in any state; * and ? are wildcards, \* and \? are not [default: all that are not free]
    #[arg(value_name = "KEY", value_parser = Named::word(text))]
    pub keys: Vec<String>,
}

/// Arguments of `lease init`.
#[derive(Args, Debug)]
pub struct Init {
    /// Write the SQL to stdout instead; needs no database
    #[arg(long)]
    pub print: bool,

    /// Add lease_check_fence and its table, in the schema of --table
    #[arg(long)]
    pub with_fencing: bool,
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    fn run(args: &[&str]) -> Run {
        match Cli::try_parse_from(args).expect("parses").command {
            Command::Run(run) => run,
            other @ (Command::Claim(_)
            | Command::Renew(_)
            | Command::Release(_)
            | Command::Status(_)
            | Command::Init(_)) => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_definitions_are_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn options_of_run_may_stand_before_and_after_the_key() {
        let a = run(&["lease", "run", "--ttl", "3s", "k", "--", "ls", "--help"]);
        let b = run(&["lease", "run", "k", "--ttl", "3s", "ls", "--help"]);
        assert_eq!(a.acquire.ttl, Duration::from_secs(3));
        assert_eq!(b.acquire.ttl, Duration::from_secs(3));
        assert_eq!(a.command, ["ls", "--help"]);
        assert_eq!(b.command, ["ls", "--help"]);
    }

    #[test]
    fn after_the_command_everything_is_the_commands_own() {
        let r = run(&[
            "lease", "run", "k", "cat", "-v", "--ttl", "1s", "-q", "--", "f",
        ]);
        assert_eq!(r.command, ["cat", "-v", "--ttl", "1s", "-q", "--", "f"]);
        assert_eq!(r.acquire.ttl, Duration::from_secs(60));
    }

    #[test]
    fn a_mistyped_option_after_the_key_is_no_command() {
        assert!(Cli::try_parse_from(["lease", "run", "k", "--tll", "3s", "ls"]).is_err());
    }
}
