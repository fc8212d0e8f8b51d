//! Usage errors: one line that says what would be right.

mod verbs;

use clap::CommandFactory as _;
use clap::error::{ContextKind, ContextValue, ErrorKind};

use crate::cli::{Cli, PURGE_USAGE, RUN_USAGE, lacks, shown, without_passwords};
use crate::commands::Ending;
use crate::exit::Exit;
use crate::output::{self, Level, Message};
use crate::text::os_error_text;

use verbs::joined;

/// Reports what the command-line parser did not accept: help and version on stdout, anything else as one line on
/// stderr.
#[must_use]
pub fn refuse(error: &clap::Error) -> Ending {
    if matches!(
        error.kind(),
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion
    ) {
        return match output::stdout_is_open().and_then(|()| error.print()) {
            Ok(()) => Ending::Exit(Exit::Done),
            // A reader that stops early is not an error: `lease --help | head -3`.
            Err(e) if e.kind() == std::io::ErrorKind::BrokenPipe => Ending::Exit(Exit::Done),
            Err(e) => {
                write(&format!("cannot write to stdout: {}", os_error_text(&e)));
                Ending::Exit(Exit::Failed)
            }
        };
    }
    write(&line(error));
    Ending::Exit(Exit::Usage)
}

/// Always as text: what was asked for is not known yet.
fn write(text: &str) {
    output::write_message(&Message::new(Level::Error, "usage", text));
}

fn line(error: &clap::Error) -> String {
    let kind = error.kind();
    let names_argument = error.get(ContextKind::InvalidArg).is_some();
    let text = if kind == ErrorKind::MissingSubcommand {
        format!(
            "no command given ({}; see `lease --help`)",
            joined(&verbs::names(), "or")
        )
    } else if lacks(error, "<COMMAND>...") {
        format!("missing KEY and COMMAND (usage: {RUN_USAGE})")
    } else if kind == ErrorKind::MissingRequiredArgument && names_argument {
        missing(error)
    } else if kind == ErrorKind::UnknownArgument {
        unknown(error)
    } else if kind == ErrorKind::ArgumentConflict {
        conflict(error)
    } else if kind == ErrorKind::InvalidValue {
        wrong_value(error)
    } else if kind == ErrorKind::InvalidSubcommand {
        unknown_command(error)
    } else if kind == ErrorKind::TooManyValues && names_argument {
        no_value(error)
    } else if names_argument {
        format!("{} (see `{} --help`)", clap_text(error), called(error))
    } else {
        // A text of `cli`, which already says what would be right.
        clap_text(error)
    };
    without_passwords(&text)
}

/// The error text, from clap or from our own value parsers, as one line.
fn clap_text(error: &clap::Error) -> String {
    let rendered = error.render().to_string();
    let text = rendered.split("\n\nUsage:").next().unwrap_or(&rendered);
    let text = text
        .split("\n\nFor more information")
        .next()
        .unwrap_or(text);
    let text = text.strip_prefix("error: ").unwrap_or(text);
    let text = match error.get(ContextKind::InvalidValue) {
        Some(ContextValue::String(value)) => text.replace(value.as_str(), &shown(value)),
        Some(_) | None => text.to_owned(),
    };
    let words: Vec<&str> = text.split_whitespace().collect();
    words.join(" ").replace(" tip: ", "; ")
}

/// `lease`, or `lease` and the verb, for a reference to the help.
fn called(error: &clap::Error) -> String {
    let verb = verb(error);
    verb.map_or_else(
        || "lease".to_owned(),
        |verb| format!("lease {}", verb.get_name()),
    )
}

/// The verb whose usage an error shows.
fn verb(error: &clap::Error) -> Option<clap::Command> {
    let Some(ContextValue::StyledStr(usage)) = error.get(ContextKind::Usage) else {
        return None;
    };
    let usage = usage.to_string();
    let name = usage.split_whitespace().nth(2)?;
    Cli::command().find_subcommand(name).cloned()
}

/// For every verb except `run` and `purge`, only the key can be missing, or what another option needs. For `purge`, only
/// its required option can.
fn missing(error: &clap::Error) -> String {
    if lacks(error, "--wait <DURATION>") {
        return "--eager needs --wait, for example --wait 10m --eager".to_owned();
    }
    match verb(error) {
        Some(verb) if verb.get_name() == "purge" => {
            format!("missing --older-than (usage: {PURGE_USAGE})")
        }
        Some(verb) if verb.get_name() == "release" => {
            "missing KEY: --force does not use LEASE_KEY (usage: lease release --force <KEY>)"
                .to_owned()
        }
        Some(verb) if verb.get_name() == "status" => {
            "missing KEY (usage: lease status --exit-code <KEY>...)".to_owned()
        }
        Some(verb) => format!(
            "missing KEY (usage: lease {} [OPTIONS] <KEY>)",
            verb.get_name()
        ),
        None => clap_text(error),
    }
}

fn unknown_command(error: &clap::Error) -> String {
    let Some(ContextValue::String(typed)) = error.get(ContextKind::InvalidSubcommand) else {
        return clap_text(error);
    };
    let meant = verbs::meant_by(typed);
    let right = if meant.is_empty() {
        format!("{}; see `lease --help`", joined(&verbs::names(), "or"))
    } else {
        format!("did you mean {}?", joined(&meant, "or"))
    };
    format!("unknown command \"{}\" ({right})", shown(typed))
}

/// A switch that was given a value.
fn no_value(error: &clap::Error) -> String {
    let Some(ContextValue::String(option)) = error.get(ContextKind::InvalidArg) else {
        return clap_text(error);
    };
    let (option, help) = (first_word(option), called(error));
    format!("{option} does not take a value (see `{help} --help`)")
}

fn unknown(error: &clap::Error) -> String {
    let Some(ContextValue::String(arg)) = error.get(ContextKind::InvalidArg) else {
        return clap_text(error);
    };
    let help = called(error);
    let verb = verb(error);
    let name = verb.as_ref().map(clap::Command::get_name);
    if !arg.starts_with('-') {
        // A command after `claim` was meant for `run`.
        let run = match name {
            Some("claim") => "to run a command under a lease, use lease run; ",
            Some(_) | None => "",
        };
        return format!(
            "unexpected argument \"{}\" ({run}see `{help} --help`)",
            shown(arg)
        );
    }
    let others = verbs::with_option(arg);
    if !others.is_empty() {
        let others = joined(&others, "and");
        return match name {
            Some(name) => {
                format!("{arg} is an option of {others}, not of {name} (see `{help} --help`)")
            }
            None => format!("{arg} is an option of {others} (put it after the command)"),
        };
    }
    let takes_key = verb
        .as_ref()
        .is_some_and(|v| v.get_positionals().any(|p| p.get_id() != "command"));
    let hint = if let Some(ContextValue::String(meant)) = error.get(ContextKind::SuggestedArg) {
        format!("did you mean {meant}?")
    } else if name == Some("run") {
        format!("see `{help} --help`; write a key that begins with - between two --")
    } else if takes_key {
        format!("see `{help} --help`; write a key that begins with - after --")
    } else {
        format!("see `{help} --help`")
    };
    format!("unknown option {} ({hint})", shown(arg))
}

/// A missing value, or a value that is not one of the possible values.
fn wrong_value(error: &clap::Error) -> String {
    let (Some(ContextValue::String(option)), Some(ContextValue::String(value))) = (
        error.get(ContextKind::InvalidArg),
        error.get(ContextKind::InvalidValue),
    ) else {
        return clap_text(error);
    };
    let option = first_word(option);
    let right = match error.get(ContextKind::ValidValue) {
        Some(ContextValue::Strings(right)) if !right.is_empty() => {
            format!(" ({})", joined(right, "or"))
        }
        Some(_) | None => String::new(),
    };
    if value.is_empty() {
        format!("{option} needs a value{right}")
    } else {
        format!("{option}: unknown value \"{}\"{right}", shown(value))
    }
}

/// The option, without the name of its value.
fn first_word(text: &str) -> &str {
    text.split([' ', '=']).next().unwrap_or(text)
}

fn conflict(error: &clap::Error) -> String {
    let Some(ContextValue::String(arg)) = error.get(ContextKind::InvalidArg) else {
        return clap_text(error);
    };
    let other = match error.get(ContextKind::PriorArg) {
        Some(ContextValue::String(other)) => Some(other),
        Some(ContextValue::Strings(others)) => others.first(),
        Some(_) | None => None,
    };
    let Some(other) = other else {
        return clap_text(error);
    };
    format!(
        "{} cannot be used with {} (see `{} --help`)",
        first_word(arg),
        first_word(other),
        called(error)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(args: &[&str]) -> String {
        let args = args.iter().map(Into::into).collect();
        line(&crate::cli::parse(args).expect_err("wrong usage"))
    }

    #[test]
    fn wrong_usage_is_one_line_that_says_what_would_be_right() {
        assert!(
            message(&["lease", "run", "k", "--tll", "3s", "ls"]).contains("did you mean --ttl?")
        );
        assert!(
            message(&["lease", "run", "k"])
                .starts_with("missing COMMAND after the key \"k\" (usage: lease run")
        );
        assert_eq!(
            message(&["lease", "claim", "k", "--ttl"]),
            "--ttl needs a value"
        );
        assert_eq!(
            message(&["lease", "claim", "k", "--format", "yaml"]),
            "--format: unknown value \"yaml\" (shell or json)"
        );
        assert!(message(&["lease", "claim", ""]).contains("1 to 1024 bytes"));
        assert!(message(&["lease", "claim", "k", "--ttl", "soon"]).contains("500ms, 30s, 5m"));
        assert!(message(&["lease"]).contains("run, claim, renew"));
        for args in [
            &["lease", "run", "k", "--tll", "3s", "ls"][..],
            &["lease", "stauts"],
        ] {
            assert!(!message(args).contains('\n'));
        }
    }

    #[test]
    fn a_password_that_was_typed_in_the_wrong_place_is_not_repeated() {
        let line = message(&["lease", "claim", "k", "postgres://app:s3cret@db/x"]);
        assert!(!line.contains("s3cret"), "{line}");
        assert!(line.contains("@db/x"), "{line}");
        let line = message(&["lease", "claim", "k", "host=db password=s3cret"]);
        assert!(!line.contains("s3cret"), "{line}");
    }
}
