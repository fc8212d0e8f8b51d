//! The command line: plain data and its help text. The only inputs are the arguments, and the variables that stand in for
//! options. An empty variable counts as unset.
//!
//! | file | what happens there |
//! |---|---|
//! | `value_parsers` | which values an option accepts |
//! | `parse` | from the arguments to the types |
//! | `help_text` | what a manual page says beyond the options |
//!
//! `completions/` and `man/` are generated from these types. `cargo test --test generated` checks that they are current.

pub mod help_text;
mod parse;
mod value_parsers;

use std::ffi::OsString;
use std::time::Duration;

use clap::{ArgAction, Args, Parser, Subcommand, ValueEnum};

use crate::job::OnLoss;
use crate::lease::{Fence, Holder, Key};
use crate::record::Keep;
use crate::sql::Table;
use crate::timing::Wait;

pub use self::parse::parse;
pub(crate) use self::parse::{PURGE_USAGE, RUN_USAGE, lacks};
pub use self::value_parsers::{LogFormat, WatchArgument, duration, watch};
use self::value_parsers::{
    Named, OneOf, back, code, count, db_timeout, hold_at_least, keep, log_format, older_than,
    once_per, switch, text, ttl,
};
pub(crate) use self::value_parsers::{shown, without_passwords};

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
    after_long_help = help_text::after_help("lease")
)]
pub struct Cli {
    /// The global options.
    #[command(flatten)]
    pub common: Common,
    /// The verb.
    #[command(subcommand)]
    pub command: Command,
}

/// The global options.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Global options")]
pub struct Common {
    /// Connect to this database: a libpq URI or key=value string [default: PGHOST, PGUSER, PGSERVICE, ..., as for psql]
    ///
    /// Every user of the machine can see a password on the command line. Put it into ~/.pgpass, a service file or
    /// LEASE_DATABASE_URL instead.
    #[arg(
        short = 'd',
        long,
        value_name = "URL",
        env = "LEASE_DATABASE_URL",
        global = true,
        hide_env_values = true,
        value_parser = Named(text)
    )]
    pub database_url: Option<String>,

    /// Keep the leases in this table: schema.table, or a bare name for a table in public
    #[arg(
        long,
        value_name = "NAME",
        env = "LEASE_TABLE",
        default_value = "public.lease",
        global = true,
        hide_env_values = true,
        value_parser = Named(Table::parse)
    )]
    pub table: Table,

    /// Give up a database operation after this long, connecting included (10ms to 1day)
    #[arg(long, value_name = "DURATION", env = "LEASE_DB_TIMEOUT", default_value = "10s", global = true, hide_env_values = true, allow_hyphen_values = true, value_parser = Named(db_timeout))]
    pub db_timeout: Duration,

    /// Print errors only: a skipped run prints nothing
    #[arg(short, long, env = "LEASE_QUIET", global = true, hide_env_values = true, action = ArgAction::SetTrue, value_parser = Named(switch))]
    pub quiet: bool,

    /// Report each step on stderr
    #[arg(short, long, global = true)]
    pub verbose: bool,
}

/// The verbs.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run a job while holding a lease
    ///
    /// Claims the lease, runs COMMAND with FENCE, LEASE_KEY and LEASE_HOLDER in its environment, renews the lease by
    /// heartbeat, and releases it when the job has ended. If the lease is lost, the job is stopped.
    #[command(override_usage = RUN_USAGE, after_long_help = help_text::after_help("run"))]
    Run(Run),
    /// Claim a lease in a script
    ///
    /// Prints the term as `export` commands. Claim and eval in two steps, so that a failed claim ends the script:
    /// term=$(lease claim KEY) || exit; eval "$term"
    ///
    /// Nothing renews the lease. Call `lease renew` before it expires, and `lease release` at the end.
    #[command(after_long_help = help_text::after_help("claim"))]
    Claim(ClaimArgs),
    /// Renew a lease that you hold
    ///
    /// KEY, --holder and --fence default to LEASE_KEY, LEASE_HOLDER and FENCE, as `lease claim` prints them. Prints the
    /// term with its new expiry.
    #[command(after_long_help = help_text::after_help("renew"))]
    Renew(Renew),
    /// Release a lease, or evict its holder
    ///
    /// KEY, --holder and --fence default to LEASE_KEY, LEASE_HOLDER and FENCE, as `lease claim` prints them. Releasing a
    /// term a second time does no harm.
    #[command(after_long_help = help_text::after_help("release"))]
    Release(ReleaseArgs),
    /// Show who holds what, and until when
    #[command(after_long_help = help_text::after_help("status"))]
    Status(Status),
    /// Show what ran, where, when, and how it ended
    #[command(after_long_help = help_text::after_help("history"))]
    History(History),
    /// Remove keys that nobody has used for a long time
    ///
    /// Removes free keys whose last term ended longer ago than --older-than, together with their history. A key that is
    /// held, or that is used while purge runs, stays.
    #[command(override_usage = PURGE_USAGE, after_long_help = help_text::after_help("purge"))]
    Purge(Purge),
    /// Create the lease table, or print the SQL for it
    ///
    /// Needed only if the job's role may not create tables: otherwise the first claim creates the table. Running it again
    /// does no harm.
    #[command(after_long_help = help_text::after_help("init"))]
    Init(Init),
}

/// The options of a claim, for `run` and `claim`.
#[derive(Args, Debug)]
pub struct Acquire {
    /// Let the lease expire this long after the claim or the last renewal (100ms to 30days)
    #[arg(long, value_name = "DURATION", env = "LEASE_TTL", default_value = "60s", hide_env_values = true, allow_hyphen_values = true, value_parser = Named(ttl))]
    pub ttl: Duration,

    /// Whether `ttl` was typed. A default never shortens a lease.
    #[arg(skip)]
    pub ttl_was_typed: bool,

    /// Retry for up to this long if someone else holds the lease; `forever` is allowed. Waiters are not served in order [default: do not wait]
    #[arg(long, value_name = "DURATION", allow_hyphen_values = true, value_parser = Named(str::parse::<Wait>))]
    pub wait: Option<Wait>,

    /// With --wait, keep one connection while waiting and look every 20 ms, so that the wait ends milliseconds after a release
    #[arg(long, requires = "wait")]
    pub eager: bool,

    /// Exit with this code if someone else holds the lease, the key is cooling or the run is not due; 0 if a skipped run is not a failure
    #[arg(short = 'E', long, value_name = "N", default_value_t = crate::exit::Exit::Conflict.code(), allow_negative_numbers = true, value_parser = Named(code))]
    pub conflict_exit_code: u8,

    /// Start the holder's name with this; a random part is always added [default: host name]
    #[arg(long, value_name = "NAME", value_parser = Named(text))]
    pub name: Option<String>,
}

/// Arguments of `lease run`.
#[derive(Args, Debug)]
pub struct Run {
    /// The options of the claim.
    #[command(flatten)]
    pub acquire: Acquire,

    /// Keep the key closed until this long after the claim, even if the job ends sooner (at most 30days)
    ///
    /// Replicas whose clocks differ by seconds then do not run the same cron minute twice.
    #[arg(long, value_name = "DURATION", default_value = "0s", allow_hyphen_values = true, value_parser = Named(hold_at_least))]
    pub hold_at_least: Duration,

    /// Run only if the last success of this key is older than this (1s to 10years)
    ///
    /// Otherwise it is a skipped run. A success is a job that ended with code 0 and did not lose its lease, as `lease
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

/// The formats of a term.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum TermFormat {
    /// `export` commands for a POSIX shell
    Shell,
    /// One JSON object
    Json,
}

/// Arguments of `lease claim`.
#[derive(Args, Debug)]
pub struct ClaimArgs {
    /// The options of the claim.
    #[command(flatten)]
    pub acquire: Acquire,

    /// Claim as exactly this holder. If it already has the lease, extend it; the default --ttl never shortens it
    #[arg(long, value_name = "ID", conflicts_with = "name", value_parser = Named(str::parse::<Holder>))]
    pub holder: Option<Holder>,

    /// Print the answer in this format
    #[arg(long, value_name = "FORMAT", value_enum, default_value = "shell")]
    pub format: TermFormat,

    /// The key of the lease: 1 to 1024 bytes of UTF-8
    #[arg(value_name = "KEY", value_parser = Named(str::parse::<Key>))]
    pub key: Key,
}

/// Arguments of `lease renew`.
#[derive(Args, Debug)]
pub struct Renew {
    /// Set the expiry to this long from now, even if that shortens it; the default never shortens it (100ms to 30days)
    #[arg(long, value_name = "DURATION", env = "LEASE_TTL", default_value = "60s", hide_env_values = true, allow_hyphen_values = true, value_parser = Named(ttl))]
    pub ttl: Duration,

    /// Whether `ttl` was typed. A default never shortens a lease.
    #[arg(skip)]
    pub ttl_was_typed: bool,

    /// Renew the term of this holder [default: LEASE_HOLDER]
    #[arg(long, value_name = "ID", value_parser = Named(str::parse::<Holder>))]
    pub holder: Option<Holder>,

    /// Renew the term with this fence [default: FENCE]
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = Named(str::parse::<Fence>))]
    pub fence: Option<Fence>,

    /// Print the answer in this format
    #[arg(long, value_name = "FORMAT", value_enum, default_value = "shell")]
    pub format: TermFormat,

    /// The key of the term [default: LEASE_KEY]
    #[arg(value_name = "KEY", value_parser = Named(str::parse::<Key>))]
    pub key: Option<Key>,
}

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

    /// Record in the history that the script ended with this code; 0 is a success
    #[arg(long, value_name = "N", allow_negative_numbers = true, conflicts_with = "force", value_parser = Named(code))]
    pub job_code: Option<u8>,

    /// Evict the current holder; with --fence, only if the term still has that fence
    ///
    /// An evicted run notices at its next heartbeat and stops its job. Until then, its job and another one may both run.
    #[arg(long, requires = "key", conflicts_with = "holder")]
    pub force: bool,

    /// The key of the term [default: LEASE_KEY; required with --force]
    #[arg(value_name = "KEY", value_parser = Named(str::parse::<Key>))]
    pub key: Option<Key>,
}

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

    /// Exit 0 if every named key is held, and 1 if not; with -q, print nothing
    #[arg(long, requires = "keys")]
    pub exit_code: bool,

    /// Show the leases again at this interval until interrupted, at a terminal also until q is pressed; an argument that is not a duration is taken as a KEY [default interval: 2s]
    #[arg(long, value_name = "INTERVAL", num_args = 0..=1, conflicts_with = "exit_code", value_parser = Named(text))]
    pub watch: Option<Option<String>>,

    /// Print the leases in this format
    #[arg(long, value_name = "FORMAT", value_enum, default_value = "table")]
    pub format: StatusFormat,

    /// Keys to show, whatever their state; `*` and `?` are wildcards, `\*` and `\?` match literally [default: all that are not free]
    #[arg(value_name = "KEY", value_parser = Named(text))]
    pub keys: Vec<String>,
}

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
    /// Show the runs that began within this time [default: the last 20 runs]
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

    /// Show the keys whose last success is older than this; exit 1 if there is one, and 0 without output if not
    #[arg(long, value_name = "DURATION", allow_hyphen_values = true, value_parser = Named(back), conflicts_with_all = ["since", "limit", "failed", "last"])]
    pub overdue: Option<Duration>,

    /// Draw a line for each key: when it ran, failed, is running, or did nothing within --since [default: 24h]
    #[arg(long, conflicts_with_all = ["limit", "failed", "last", "overdue"])]
    pub chart: bool,

    /// Print the runs in this format
    #[arg(long, value_name = "FORMAT", value_enum, default_value = "table")]
    pub format: HistoryFormat,

    /// Keys to show; `*` and `?` are wildcards, `\*` and `\?` match literally [default: all]
    #[arg(value_name = "KEY", value_parser = Named(text))]
    pub keys: Vec<String>,
}

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

/// Arguments of `lease init`.
#[derive(Args, Debug)]
pub struct Init {
    /// Print the SQL instead of running it; needs no database
    #[arg(long)]
    pub print: bool,

    /// Also create lease_check_fence and its table, in the schema of --table
    #[arg(long)]
    pub with_fencing: bool,

    /// Keep the history of a key for this long (1h to 100years, or forever) [default: as before, at first 90days]
    #[arg(long, value_name = "DURATION", allow_hyphen_values = true, value_parser = Named(keep))]
    pub keep_history: Option<Keep>,

    /// Create no history of runs; one that exists stays
    #[arg(long, conflicts_with = "keep_history")]
    pub no_history: bool,
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
            | Command::History(_)
            | Command::Purge(_)
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
    fn a_mistyped_option_after_the_key_is_not_taken_as_the_command() {
        assert!(Cli::try_parse_from(["lease", "run", "k", "--tll", "3s", "ls"]).is_err());
    }
}
