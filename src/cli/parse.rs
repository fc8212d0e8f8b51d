//! Turns the arguments into types. It handles the cases in which clap's own reading would surprise a user.

use std::env;
use std::ffi::{OsStr, OsString};

use clap::builder::Resettable;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::parser::ValueSource;
use clap::{Arg, Command, CommandFactory as _, FromArgMatches as _};

use super::command::{Cli, Command as Verb};
use super::history::HistoryFormat;
use super::run::RUN_USAGE;
use super::shown::shown;
use super::status::StatusFormat;
use super::watch::watch_interval;
use crate::lease::Key;

/// Reads the arguments, which begin with the program's name, and the variables that stand in for options.
///
/// # Errors
/// Help, a version, or wrong usage.
pub fn parse(args: Vec<OsString>) -> Result<Cli, clap::Error> {
    let args = with_the_key_in_its_place(args)?;
    let matches = command()
        .try_get_matches_from(&args)
        .map_err(|error| without_command(error, &args))?;
    let mut cli = Cli::from_arg_matches(&matches)?;
    let typed = || {
        matches
            .subcommand()
            .and_then(|(_, verb)| verb.value_source("ttl"))
            == Some(ValueSource::CommandLine)
    };
    match &mut cli.command {
        Verb::Claim(claim) => claim.acquire.ttl_was_typed = typed(),
        Verb::Renew(renew) => renew.ttl_was_typed = typed(),
        Verb::Status(status) => {
            only_intervals_joined_to_watch(&args)?;
            if status.watch.is_some() && status.format == StatusFormat::OpenMetrics {
                return Err(conflict("--watch", "--format openmetrics", "status"));
            }
        }
        Verb::History(history) => {
            if history.chart && history.format == HistoryFormat::Json {
                return Err(conflict("--chart", "--format json", "history"));
            }
        }
        // The holder of a run is always new, and has no lease that could be shortened.
        Verb::Run(_) | Verb::Release(_) | Verb::Purge(_) | Verb::Init(_) => {}
    }
    Ok(cli)
}

/// An option that goes with some formats only, which clap can't express.
fn conflict(option: &str, format: &str, verb: &str) -> clap::Error {
    clap::Error::raw(
        ErrorKind::ValueValidation,
        format!("{option} cannot be used with {format} (see `lease {verb} --help`)"),
    )
}

/// clap takes `--watch=nightly` and `--watch nightly` for the same. Only the second one can mean a key.
fn only_intervals_joined_to_watch(args: &[OsString]) -> Result<(), clap::Error> {
    args.iter()
        .take_while(|arg| *arg != "--")
        .filter_map(|arg| arg.to_str()?.strip_prefix("--watch="))
        .try_for_each(|text| {
            let interval = watch_interval(text).map(|_| ());
            interval.map_err(|e| clap::Error::raw(ErrorKind::ValueValidation, e))
        })
}

/// The definitions as a process uses them. An empty variable counts as unset, because crontabs and compose files leave such
/// variables behind, and clap would take the empty text as the value. The environment itself is left as it is: the job
/// inherits it.
fn command() -> Command {
    let read = |arg: Arg| match arg.get_env().and_then(env::var_os) {
        Some(value) if value.is_empty() => arg.env(Resettable::Reset),
        Some(_) | None => arg,
    };
    Cli::command()
        .mut_args(read)
        .mut_subcommands(|verb| verb.display_name("lease").mut_args(read))
}

/// Makes sure that the key of `run` comes before the first `--`. Everything after `--` belongs to the command, but if the
/// key was forgotten, clap would take the first of these words as the key and run the rest.
///
/// The one exception is a key that begins with a dash, between two `--` of its own: `lease run --k -CMD`. No command
/// begins with a dash, so nothing else can be meant. clap expects no second `--`, so it is removed.
fn with_the_key_in_its_place(mut args: Vec<OsString>) -> Result<Vec<OsString>, clap::Error> {
    let Some(escape) = args.iter().position(|arg| arg == "--") else {
        return Ok(args);
    };
    let Err(before) = command().try_get_matches_from(&args[..escape]) else {
        return Ok(args);
    };
    if !(lacks(&before, "<KEY>") && lacks(&before, "<COMMAND>...")) {
        return Ok(args);
    }
    let dashed = |arg: &OsStr| arg.as_encoded_bytes().starts_with(b"-");
    let hint = match &args[escape + 1..] {
        [] => return Ok(args),
        [key, second, ..] if dashed(key) && second == "--" => {
            args.remove(escape + 2);
            return Ok(args);
        }
        [key, ..] if dashed(key) => "; write a key that begins with between two --",
        [..] => "",
    };
    Err(wrong(format!("missing KEY (usage: {RUN_USAGE}{hint})")))
}

/// Names the key that is not followed by a command.
fn without_command(error: clap::Error, args: &[OsString]) -> clap::Error {
    if !lacks(&error, "<COMMAND>...") || lacks(&error, "<KEY>") {
        return error;
    }
    let key = command()
        .ignore_errors(true)
        .try_get_matches_from(args)
        .ok()
        .and_then(|matches| {
            let (_, run) = matches.subcommand()?;
            run.try_get_one::<Key>("key").ok()?.cloned()
        });
    match key {
        Some(key) => wrong(format!(
            "missing COMMAND after the key \"{}\" (usage: {RUN_USAGE})",
            shown(key.as_str())
        )),
        None => error,
    }
}

fn wrong(text: String) -> clap::Error {
    clap::Error::raw(ErrorKind::MissingRequiredArgument, text)
}

/// Whether an error says that this argument is missing.
pub(crate) fn lacks(error: &clap::Error, argument: &str) -> bool {
    error.kind() == ErrorKind::MissingRequiredArgument
        && matches!(error.get(ContextKind::InvalidArg),
            Some(ContextValue::Strings(missing)) if missing.iter().any(|m| m == argument))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(args: &[&str]) -> Result<Cli, clap::Error> {
        let args = std::iter::once(&"lease").chain(args);
        parse(args.map(Into::into).collect())
    }

    /// The key and the command of a run.
    fn run(args: &[&str]) -> Result<(String, Vec<OsString>), String> {
        let cli = read(args).map_err(|e| e.to_string())?;
        let Verb::Run(run) = cli.command else {
            panic!("{cli:?}")
        };
        Ok((run.key.as_str().to_owned(), run.command))
    }

    #[test]
    fn what_follows_two_dashes_is_never_the_key_of_run() {
        for forgotten in [
            &["run", "--", "echo", "hi", "there"][..],
            &["run", "--ttl", "5s", "-q", "--", "echo", "hi"],
            &["-q", "run", "--", "echo"],
            &["run", "--", "-k", "echo"],
        ] {
            let message = run(forgotten).expect_err("no key");
            assert!(
                message.contains("missing KEY (usage: lease run"),
                "{forgotten:?}: {message}"
            );
        }
        for (given, command) in [
            (
                &["run", "k", "--", "echo", "--", "x"][..],
                &["echo", "--", "x"][..],
            ),
            (&["run", "k", "echo", "--", "x"], &["echo", "--", "x"]),
            (&["run", "--name", "n", "k", "--", "echo"], &["echo"]),
        ] {
            let (key, found) = run(given).expect("a key");
            assert_eq!((key.as_str(), found.as_slice()), ("k", &as_os(command)[..]));
        }
    }

    #[test]
    fn a_key_of_run_that_begins_with_a_dash_is_written_between_two_dashes() {
        let (key, command) =
            run(&["run", "-q", "--", "-k", "--", "ls", "-l", "--", "x"]).expect("accepted");
        assert_eq!(key, "-k");
        assert_eq!(command, as_os(&["ls", "-l", "--", "x"]));
        assert!(run(&["run", "--", "k", "--", "ls"]).is_err());
        assert!(run(&["run", "--", "-k", "--"]).is_err());
    }

    fn as_os(words: &[&str]) -> Vec<OsString> {
        words.iter().map(Into::into).collect()
    }

    #[test]
    fn two_dashes_before_the_key_of_other_verbs_only_protect_it() {
        for verb in ["claim", "renew", "release", "status"] {
            assert!(read(&[verb, "--", "-k"]).is_ok(), "{verb}");
        }
    }

    #[test]
    fn the_last_of_several_equal_options_counts_and_switches_may_be_repeated() {
        let cli = read(&[
            "-q", "claim", "-vv", "-q", "-q", "--ttl", "3s", "--ttl", "4s", "k",
        ]);
        let cli = cli.expect("accepted");
        assert!(cli.common.quiet && cli.common.verbose);
        let Verb::Claim(claim) = cli.command else {
            panic!("{:?}", cli.command)
        };
        assert_eq!(claim.acquire.ttl, std::time::Duration::from_secs(4));
        let cli = read(&[
            "--table", "a", "status", "x", "--table", "b", "--all", "y", "z",
        ]);
        let cli = cli.expect("accepted");
        assert_eq!(cli.common.table.name(), "b");
        let Verb::Status(status) = cli.command else {
            panic!("{:?}", cli.command)
        };
        assert_eq!(status.keys, ["x", "y", "z"]);
    }
}
