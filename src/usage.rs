//! Wrong usage: one line that says what would be right.

use clap::CommandFactory as _;
use clap::error::{ContextKind, ContextValue, ErrorKind};

use crate::cli::{Cli, RUN_USAGE, lacks, shown, without_passwords};
use crate::commands::Ending;
use crate::exit::Exit;
use crate::output;

/// Answers what the command line's parser could not take: help and version on stdout, anything else as one line.
pub(crate) fn refuse(error: &clap::Error) -> Ending {
    if matches!(
        error.kind(),
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion
    ) {
        return match output::stdout_is_open().and_then(|()| error.print()) {
            Ok(()) => Ending::Exit(Exit::Done),
            // A reader who has seen enough (`lease --help | head -3`) is no error.
            Err(e) if e.kind() == std::io::ErrorKind::BrokenPipe => Ending::Exit(Exit::Done),
            Err(e) => {
                output::say(&format!("cannot write to stdout: {}", output::io_error(&e)));
                Ending::Exit(Exit::Failed)
            }
        };
    }
    output::say(&line(error));
    Ending::Exit(Exit::Usage)
}

const COMMANDS: &str = "run, claim, renew, release, status or init";

fn line(error: &clap::Error) -> String {
    let kind = error.kind();
    let names_argument = error.get(ContextKind::InvalidArg).is_some();
    let text = if kind == ErrorKind::MissingSubcommand {
        format!("no command given: {COMMANDS} (see `lease --help`)")
    } else if lacks(error, "<COMMAND>...") {
        format!("no KEY and no COMMAND: {RUN_USAGE}")
    } else if kind == ErrorKind::MissingRequiredArgument && names_argument {
        which_key(error)
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
        format!("{} (see `{} --help`)", told(error), called(error))
    } else {
        // `cli`'s own words, which say what would be right.
        told(error)
    };
    without_passwords(&text)
}

/// clap's own words, or ours that went through it, as one line.
fn told(error: &clap::Error) -> String {
    let rendered = error.render().to_string();
    let told = rendered.split("\n\nUsage:").next().unwrap_or(&rendered);
    let told = told
        .split("\n\nFor more information")
        .next()
        .unwrap_or(told);
    let told = told.strip_prefix("error: ").unwrap_or(told);
    let told = match error.get(ContextKind::InvalidValue) {
        Some(ContextValue::String(value)) => told.replace(value.as_str(), &shown(value)),
        Some(_) | None => told.to_owned(),
    };
    let words: Vec<&str> = told.split_whitespace().collect();
    words.join(" ").replace(" tip: ", "; ")
}

/// `lease`, or `lease` and the verb, as the help is called for.
fn called(error: &clap::Error) -> String {
    let verb = verb(error);
    verb.map_or_else(
        || "lease".to_owned(),
        |verb| format!("lease {}", verb.get_name()),
    )
}

/// The verb that the usage in an error is of.
fn verb(error: &clap::Error) -> Option<clap::Command> {
    let Some(ContextValue::StyledStr(usage)) = error.get(ContextKind::Usage) else {
        return None;
    };
    let usage = usage.to_string();
    let name = usage.split_whitespace().nth(2)?;
    Cli::command().find_subcommand(name).cloned()
}

/// A key is all that any verb but `run` can lack.
fn which_key(error: &clap::Error) -> String {
    match verb(error) {
        Some(verb) if verb.get_name() == "release" => {
            "which KEY? lease release --force <KEY> (LEASE_KEY is not used with --force)".to_owned()
        }
        Some(verb) if verb.get_name() == "status" => {
            "which KEY? lease status --exit-code <KEY>...".to_owned()
        }
        Some(verb) => format!("which KEY? lease {} [OPTIONS] <KEY>", verb.get_name()),
        None => told(error),
    }
}

fn unknown_command(error: &clap::Error) -> String {
    let Some(ContextValue::String(given)) = error.get(ContextKind::InvalidSubcommand) else {
        return told(error);
    };
    let given = shown(given);
    match error.get(ContextKind::SuggestedSubcommand) {
        Some(ContextValue::Strings(meant)) if !meant.is_empty() => format!(
            "unknown command {given}: did you mean {}? (see `lease --help`)",
            meant.join(" or ")
        ),
        Some(_) | None => {
            format!("unknown command {given}: it is none of {COMMANDS} (see `lease --help`)")
        }
    }
}

/// A switch that was given a value.
fn no_value(error: &clap::Error) -> String {
    let Some(ContextValue::String(option)) = error.get(ContextKind::InvalidArg) else {
        return told(error);
    };
    let (option, help) = (first_word(option), called(error));
    format!("{option} takes no value (see `{help} --help`)")
}

/// The verbs that have an option of this name, if this one has not.
fn elsewhere(option: &str) -> Vec<String> {
    let has = |verb: &clap::Command| {
        verb.get_arguments().any(|arg| {
            let long = arg.get_long().map(|long| format!("--{long}"));
            let short = arg.get_short().map(|short| format!("-{short}"));
            [long, short].contains(&Some(option.to_owned()))
        })
    };
    let cli = Cli::command();
    let verbs = cli.get_subcommands().filter(|verb| has(verb));
    verbs.map(|verb| verb.get_name().to_owned()).collect()
}

fn unknown(error: &clap::Error) -> String {
    let Some(ContextValue::String(arg)) = error.get(ContextKind::InvalidArg) else {
        return told(error);
    };
    let help = called(error);
    if !arg.starts_with('-') {
        // Whoever gives a command to claim is looking for run.
        let run = match verb(error) {
            Some(verb) if verb.get_name() == "claim" => {
                "; to run a command under a lease: lease run"
            }
            Some(_) | None => "",
        };
        return format!(
            "one argument too many: {}{run} (see `{help} --help`)",
            shown(arg)
        );
    }
    if let [others @ .., last] = &elsewhere(arg)[..] {
        let verbs = match others {
            [] => last.clone(),
            others => format!("{} and {last}", others.join(", ")),
        };
        let place = match verb(error) {
            Some(verb) => format!(", not of {}", verb.get_name()),
            None => ": it goes after the command".to_owned(),
        };
        return format!("{arg} is an option of {verbs}{place} (see `{help} --help`)");
    }
    let arg = shown(arg);
    if let Some(ContextValue::String(suggested)) = error.get(ContextKind::SuggestedArg) {
        return format!("unknown option {arg}: did you mean {suggested}? (see `{help} --help`)");
    }
    let verb = verb(error);
    let takes_key = verb
        .as_ref()
        .is_some_and(|v| v.get_positionals().any(|p| p.get_id() != "command"));
    let hint = match verb.as_ref().map(clap::Command::get_name) {
        Some("run") => "; a key that begins with - stands between two --",
        Some(_) if takes_key => "; a key that begins with - goes after --",
        Some(_) | None => "",
    };
    format!("unknown option {arg}{hint} (see `{help} --help`)")
}

/// A value that is missing, or none of a few words.
fn wrong_value(error: &clap::Error) -> String {
    let (Some(ContextValue::String(option)), Some(ContextValue::String(value))) = (
        error.get(ContextKind::InvalidArg),
        error.get(ContextKind::InvalidValue),
    ) else {
        return told(error);
    };
    let option = first_word(option);
    let right = match error.get(ContextKind::ValidValue) {
        Some(ContextValue::Strings(right)) if !right.is_empty() => {
            format!(": give {}", right.join(" or "))
        }
        Some(_) | None => String::new(),
    };
    if value.is_empty() {
        format!("{option} needs a value{right}")
    } else {
        format!("{option} {} is unknown{right}", shown(value))
    }
}

/// An option without the name of its value.
fn first_word(text: &str) -> &str {
    text.split([' ', '=']).next().unwrap_or(text)
}

fn conflict(error: &clap::Error) -> String {
    let Some(ContextValue::String(arg)) = error.get(ContextKind::InvalidArg) else {
        return told(error);
    };
    let other = match error.get(ContextKind::PriorArg) {
        Some(ContextValue::String(other)) => Some(other),
        Some(ContextValue::Strings(others)) => others.first(),
        Some(_) | None => None,
    };
    let Some(other) = other else {
        return told(error);
    };
    format!(
        "{} can't be used together with {} (see `{} --help`)",
        first_word(arg),
        first_word(other),
        called(error)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(args: &[&str]) -> String {
        let args = args.iter().map(Into::into).collect();
        line(&crate::cli::parse(args).expect_err("wrong usage"))
    }

    #[test]
    fn wrong_usage_is_one_line_that_says_what_would_be_right() {
        assert!(told(&["lease", "run", "k", "--tll", "3s", "ls"]).contains("did you mean --ttl?"));
        assert!(
            told(&["lease", "run", "k"]).starts_with("no COMMAND after the key \"k\": lease run")
        );
        assert_eq!(
            told(&["lease", "claim", "k", "--ttl"]),
            "--ttl needs a value"
        );
        assert_eq!(
            told(&["lease", "claim", "k", "--format", "yaml"]),
            "--format yaml is unknown: give shell or json"
        );
        assert!(told(&["lease", "claim", ""]).contains("give 1 to 1024 bytes"));
        assert!(told(&["lease", "claim", "k", "--ttl", "soon"]).contains("500ms, 30s, 5m"));
        assert!(told(&["lease"]).contains("run, claim, renew"));
        for args in [
            &["lease", "run", "k", "--tll", "3s", "ls"][..],
            &["lease", "stauts"],
        ] {
            assert!(!told(args).contains('\n'));
        }
    }

    #[test]
    fn a_password_that_was_typed_in_the_wrong_place_is_not_repeated() {
        let line = told(&["lease", "claim", "k", "postgres://app:s3cret@db/x"]);
        assert!(!line.contains("s3cret"), "{line}");
        assert!(line.contains("@db/x"), "{line}");
        let line = told(&["lease", "claim", "k", "host=db password=s3cret"]);
        assert!(!line.contains("s3cret"), "{line}");
    }
}
