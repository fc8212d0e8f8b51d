//! The command line as a whole: the global options and the verbs.

use std::time::Duration;

use clap::{ArgAction, Args, Parser, Subcommand};

use super::claim::ClaimArgs;
use super::durations::db_timeout;
use super::help_text;
use super::history::History;
use super::init::Init;
use super::purge::{PURGE_USAGE, Purge};
use super::release::ReleaseArgs;
use super::renew::Renew;
use super::run::{RUN_USAGE, Run};
use super::status::Status;
use super::value_parsers::{Named, switch, text};
use crate::sql::Table;

/// Keep a job from running on two machines at once.
///
/// A lease is a row in a PostgreSQL table, with a key, a holder, an expiry and a number that grows, the fence. `lease
/// run` claims the lease, runs the job, renews the lease by heartbeat, and releases it when the job has ended. If the
/// lease is lost, it stops the job.
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

    /// Keep the leases in this table: schema.table, or only the name of a table in public
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

    /// Print errors only; a skipped run then prints nothing
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
    /// Prints `export` commands with the key, the holder and the fence. Claim and eval in two steps, so that a failed
    /// claim ends the script: term=$(lease claim KEY) || exit; eval "$term"
    ///
    /// Nothing renews the lease by itself, and nothing stops the script if the lease is lost: use `lease run` where
    /// you can. Call `lease renew` before the lease expires, and `lease release` at the end.
    #[command(after_long_help = help_text::after_help("claim"))]
    Claim(ClaimArgs),
    /// Renew a lease that you hold
    ///
    /// Acts on the term that LEASE_KEY, LEASE_HOLDER and FENCE name, as `lease claim` prints them, unless KEY,
    /// --holder or --fence is given. Prints them again, with the new expiry.
    #[command(after_long_help = help_text::after_help("renew"))]
    Renew(Renew),
    /// Release a lease, or evict its holder
    ///
    /// Acts on the term that LEASE_KEY, LEASE_HOLDER and FENCE name, as `lease claim` prints them, unless KEY,
    /// --holder or --fence is given. A second release does no harm.
    #[command(after_long_help = help_text::after_help("release"))]
    Release(ReleaseArgs),
    /// Show who holds what, and until when
    ///
    /// Shows the keys that are held, expired or cooling, with their holders. With KEY, it shows those keys in any
    /// state.
    #[command(after_long_help = help_text::after_help("status"))]
    Status(Status),
    /// Show what ran, where, when, and how it ended
    ///
    /// Shows the runs of all keys, or of each KEY, with the newest first. A run is a term of a key: a lease run, or a
    /// script that claims.
    #[command(after_long_help = help_text::after_help("history"))]
    History(History),
    /// Remove keys that nobody has used for a long time
    ///
    /// Removes free keys whose last term ended longer ago than --older-than, with their history. A key that is held,
    /// or that is used while purge runs, stays.
    #[command(override_usage = PURGE_USAGE, after_long_help = help_text::after_help("purge"))]
    Purge(Purge),
    /// Create the lease table, or print the SQL for it
    ///
    /// Needed only if the role of the jobs may not create tables. Otherwise the first claim creates the table. A
    /// second run does no harm.
    #[command(after_long_help = help_text::after_help("init"))]
    Init(Init),
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    fn run(args: &[&str]) -> Run {
        let cli = Cli::try_parse_from(args).expect("parses");
        let Command::Run(run) = cli.command else {
            panic!("{cli:?}")
        };
        run
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
