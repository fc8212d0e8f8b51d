//! Wrong usage: one line that says what would be right.

use clap::error::{ContextKind, ContextValue, ErrorKind};

use crate::commands::Ending;
use crate::exit::Exit;
use crate::output;

/// Answers what the command line's parser could not take: help and version on stdout, anything else as one line.
pub(crate) fn refuse(error: &clap::Error) -> Ending {
    if matches!(
        error.kind(),
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion
    ) {
        // A reader who has seen enough (`lease --help | head -3`) is no error.
        let _ = error.print();
        return Ending::Exit(Exit::Done);
    }
    output::say(&line(error));
    Ending::Exit(Exit::Usage)
}

/// How many characters of a wrong value are repeated.
const SHOWN_OF_A_VALUE: usize = 40;

fn line(error: &clap::Error) -> String {
    if error.kind() == ErrorKind::MissingSubcommand {
        return "no command given: run, claim, renew, release, status or init (see `lease --help`)"
            .to_owned();
    }
    if error.kind() == ErrorKind::MissingRequiredArgument
        && let Some(ContextValue::Strings(missing)) = error.get(ContextKind::InvalidArg)
        && missing.iter().any(|m| m.starts_with("<COMMAND>"))
    {
        return "nothing to run: lease run [OPTIONS] <KEY> [--] <COMMAND> [ARGS]...".to_owned();
    }
    let rendered = error.render().to_string();
    let told = rendered.split("\n\nUsage:").next().unwrap_or(&rendered);
    let told = told
        .split("\n\nFor more information")
        .next()
        .unwrap_or(told);
    let told = told.trim_start_matches("error: ");
    let told = match error.get(ContextKind::InvalidValue) {
        Some(ContextValue::String(value)) if value.chars().count() > SHOWN_OF_A_VALUE => {
            let start: String = value.chars().take(SHOWN_OF_A_VALUE).collect();
            told.replace(value.as_str(), &format!("{start}..."))
        }
        Some(_) | None => told.to_owned(),
    };
    let words: Vec<&str> = told.split_whitespace().collect();
    let told = words.join(" ");
    // "to pass '-5s' as a value, use '-- -5s'" would make a key or a command of a duration.
    let told = told.split(" tip: to pass ").next().unwrap_or(&told);
    let told = told.replace(" tip: ", "; ");
    format!("{} (see `lease --help`)", without_passwords(&told))
}

/// A URL that was typed in a wrong place, without its password.
fn without_passwords(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find("://") {
        let (before, after) = rest.split_at(start + 3);
        out.push_str(before);
        let word = after.find(char::is_whitespace).unwrap_or(after.len());
        rest = match after[..word].rfind('@') {
            Some(at) => {
                out.push_str("...");
                &after[at..]
            }
            None => after,
        };
    }
    out.push_str(rest);
    match out.find("password=") {
        Some(at) => format!("{}password=...", &out[..at]),
        None => out,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser as _;

    fn told(args: &[&str]) -> String {
        line(&crate::cli::Cli::try_parse_from(args).expect_err("wrong usage"))
    }

    #[test]
    fn wrong_usage_is_one_line_that_says_what_would_be_right() {
        assert!(told(&["lease", "run", "k", "--tll", "3s", "ls"]).contains("'--ttl'"));
        assert!(told(&["lease", "run", "k"]).starts_with("nothing to run: lease run"));
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
