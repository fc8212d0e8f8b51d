//! Which values an option accepts. A complaint names the option or the variable that the value came from.

use std::ffi::OsStr;

use clap::builder::{PossibleValue, TypedValueParser};
use clap::error::ErrorKind;
use clap::parser::ValueSource;
use clap::{Arg, Command, ValueEnum};

use super::shown::shown;
use crate::lease::Invalid;

/// How many lines are wanted at most.
pub(super) fn count(text: &str) -> Result<u32, Invalid> {
    match text.parse() {
        Ok(count) if count >= 1 => Ok(count),
        Ok(_) | Err(_) => Err(Invalid::new(format!(
            "\"{}\" is not a number of lines (write 1 or more)",
            shown(text)
        ))),
    }
}

/// An exit code.
pub(super) fn code(text: &str) -> Result<u8, Invalid> {
    text.parse().map_err(|_| {
        Invalid::new(if text.is_empty() {
            "the value is empty (give a number from 0 to 255)".to_owned()
        } else {
            format!("\"{}\" is not a number from 0 to 255", shown(text))
        })
    })
}

/// Any text in UTF-8.
pub(super) fn text(text: &str) -> Result<String, Invalid> {
    Ok(text.to_owned())
}

/// The formats of the messages on stderr.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// A line for people
    Text,
    /// One JSON object on each line
    Json,
}

/// The format of the messages.
pub(super) fn log_format(text: &str) -> Result<LogFormat, Invalid> {
    LogFormat::from_str(text, false).map_err(|_| {
        Invalid::new(format!(
            "\"{}\" is not a format (text or json)",
            shown(text)
        ))
    })
}

/// A switch that is set by a variable.
pub(super) fn switch(text: &str) -> Result<bool, Invalid> {
    let no = ["", "0", "n", "no", "f", "false", "off"];
    Ok(!no.contains(&text.to_ascii_lowercase().as_str()))
}

/// Reads a value with a function. A complaint gets the name of the option or the variable: `--ttl: "60" has no unit`.
#[derive(Clone)]
pub(super) struct Named<T>(pub(super) fn(&str) -> Result<T, Invalid>);

impl<T: Clone + Send + Sync + 'static> TypedValueParser for Named<T> {
    type Value = T;

    fn parse_ref(
        &self,
        command: &Command,
        arg: Option<&Arg>,
        value: &OsStr,
    ) -> Result<T, clap::Error> {
        self.parse_ref_(command, arg, value, ValueSource::CommandLine)
    }

    fn parse_ref_(
        &self,
        command: &Command,
        arg: Option<&Arg>,
        value: &OsStr,
        source: ValueSource,
    ) -> Result<T, clap::Error> {
        let name = arg.map(|arg| name(arg, source)).unwrap_or_default();
        let complaint = match value.to_str().map(self.0) {
            Some(Ok(read)) => return Ok(read),
            Some(Err(complaint)) if arg.is_some_and(Arg::is_positional) => complaint.to_string(),
            Some(Err(complaint)) => format!("{name}: {complaint}"),
            None => format!("{name} is not UTF-8"),
        };
        Err(clap::Error::raw(ErrorKind::ValueValidation, complaint).with_cmd(command))
    }
}

/// Reads one of a list of values. Help and shell completions show the list.
#[derive(Clone)]
pub(super) struct OneOf<T>(pub(super) Named<T>);

impl<T: ValueEnum + Clone + Send + Sync + 'static> TypedValueParser for OneOf<T> {
    type Value = T;

    fn parse_ref(
        &self,
        command: &Command,
        arg: Option<&Arg>,
        value: &OsStr,
    ) -> Result<T, clap::Error> {
        self.0.parse_ref(command, arg, value)
    }

    fn parse_ref_(
        &self,
        command: &Command,
        arg: Option<&Arg>,
        value: &OsStr,
        source: ValueSource,
    ) -> Result<T, clap::Error> {
        self.0.parse_ref_(command, arg, value, source)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(
            T::value_variants().iter().filter_map(T::to_possible_value),
        ))
    }
}

/// The variable that a value came from, or its option, by the short name if there is one.
fn name(arg: &Arg, source: ValueSource) -> String {
    if source == ValueSource::EnvVariable
        && let Some(variable) = arg.get_env()
    {
        return variable.to_string_lossy().into_owned();
    }
    match (arg.get_short(), arg.get_long(), arg.get_value_names()) {
        (Some(short), _, _) => format!("-{short}"),
        (None, Some(long), _) => format!("--{long}"),
        (None, None, Some([name, ..])) => name.to_string(),
        (None, None, _) => arg.get_id().to_string(),
    }
}
