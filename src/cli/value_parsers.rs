//! Which values an option accepts. A complaint names the option or the variable that the value came from.

use std::ffi::OsStr;
use std::str::FromStr;
use std::time::Duration;

use clap::builder::{PossibleValue, TypedValueParser};
use clap::error::ErrorKind;
use clap::parser::ValueSource;
use clap::{Arg, Command, ValueEnum};

use crate::lease::Invalid;
use crate::record::Keep;
use crate::timing::{self, DB_TIMEOUT_RANGE, HOLD_RANGE, ONCE_PER_RANGE, TTL_RANGE, Ttl, Wait};

impl FromStr for Wait {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        if text == "forever" {
            return Ok(Self::Forever);
        }
        duration_or(text, ", or forever").map(Self::For)
    }
}

/// The argument after `--watch`. The interval may be left out, and the argument is then the first key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WatchArgument {
    /// The time between two looks.
    Interval(Duration),
    /// The first key.
    Key(String),
}

/// The shortest interval of `--watch`.
const WATCH_SHORTEST: Duration = Duration::from_millis(100);

/// Tells an interval from a key. A key that looks like an interval must be given after `--`.
///
/// # Errors
/// An interval that is too short, negative or without a unit. The text names the option.
pub fn watch(text: &str) -> Result<WatchArgument, Invalid> {
    let looks_like_a_duration = duration(text).is_ok()
        || is_number(text.strip_prefix('-').unwrap_or(text))
        || counts_months(text);
    if looks_like_a_duration {
        watch_interval(text).map(WatchArgument::Interval)
    } else {
        Ok(WatchArgument::Key(text.to_owned()))
    }
}

/// The interval of `--watch`, where a key is not possible.
///
/// # Errors
/// Anything that is not an interval. The text names the option.
pub(super) fn watch_interval(text: &str) -> Result<Duration, Invalid> {
    duration(text)
        .and_then(|every| {
            if every < WATCH_SHORTEST {
                return Err(out_of_range(text, "at least 100ms"));
            }
            Ok(every)
        })
        .map_err(|complaint| Invalid::new(format!("--watch: {complaint}")))
}

/// Reads a duration in the format of humantime, except `M`: it means a month there, which is hardly ever intended.
///
/// # Errors
/// Anything else. The text says what would be right.
pub fn duration(text: &str) -> Result<Duration, Invalid> {
    duration_or(text, "")
}

/// Reads a duration. `other` is what else would be right, for the message.
fn duration_or(text: &str, other: &str) -> Result<Duration, Invalid> {
    let given = shown(text);
    if counts_months(text) {
        return Err(Invalid::new(format!(
            "\"{given}\": M means months (write 5m for minutes, or 30days)"
        )));
    }
    let is_negative = text
        .strip_prefix('-')
        .is_some_and(|t| t.starts_with(|c: char| c.is_ascii_digit()));
    humantime::parse_duration(text).map_err(|_| {
        Invalid::new(if text.is_empty() {
            format!("the value is empty (write 500ms, 30s, 5m or '1h 30m'{other})")
        } else if is_number(text) {
            format!("\"{given}\" has no unit (write {given}s, 5m or '1h 30m'{other})")
        } else if is_negative {
            format!("\"{given}\" is negative")
        } else {
            format!("\"{given}\" is not a duration (write 500ms, 30s, 5m or '1h 30m'{other})")
        })
    })
}

fn counts_months(text: &str) -> bool {
    text.split(|c: char| !c.is_ascii_alphabetic())
        .any(|unit| unit == "M")
        && humantime::parse_duration(text).is_ok()
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_digit() || c == '.')
}

/// A ttl in range.
pub(super) fn ttl(text: &str) -> Result<Duration, Invalid> {
    in_range(text, Ttl::new, TTL_RANGE)
}

/// A time limit of one database operation in range.
pub(super) fn db_timeout(text: &str) -> Result<Duration, Invalid> {
    in_range(text, timing::db_timeout, DB_TIMEOUT_RANGE)
}

/// A time for which the key stays closed, in range.
pub(super) fn hold_at_least(text: &str) -> Result<Duration, Invalid> {
    in_range(text, timing::hold_at_least, HOLD_RANGE)
}

/// A period in range.
pub(super) fn once_per(text: &str) -> Result<Duration, Invalid> {
    in_range(text, timing::once_per, ONCE_PER_RANGE)
}

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

const HUNDRED_YEARS: Duration = Duration::from_secs(100 * 31_557_600);

/// For how long nobody has used a key.
pub(super) fn older_than(text: &str) -> Result<Duration, Invalid> {
    let given = duration(text)?;
    if (Duration::from_millis(1)..=HUNDRED_YEARS).contains(&given) {
        Ok(given)
    } else {
        Err(out_of_range(text, "1ms to 100years"))
    }
}

/// How far back to look. Within no time at all there is nothing to see.
pub(super) fn back(text: &str) -> Result<Duration, Invalid> {
    let given = duration(text)?;
    if given >= Duration::from_millis(1) {
        Ok(given)
    } else {
        Err(out_of_range(text, "1ms or more"))
    }
}

/// How long the history is kept.
pub(super) fn keep(text: &str) -> Result<Keep, Invalid> {
    const RANGE: &str = "1h to 100years, or forever";
    if text == "forever" {
        return Ok(Keep::Forever);
    }
    let given = duration_or(text, ", or forever")?;
    if (Duration::from_secs(3600)..=HUNDRED_YEARS).contains(&given) {
        Ok(Keep::For(Duration::from_secs(given.as_secs())))
    } else {
        Err(out_of_range(text, RANGE))
    }
}

/// Checked here as well as where it is used, because only here the text is known: somebody who wrote 31days must not read
/// 1month 13h.
fn in_range<T>(
    text: &str,
    check: fn(Duration) -> Result<T, Invalid>,
    range: &str,
) -> Result<Duration, Invalid> {
    let given = duration(text)?;
    match check(given) {
        Ok(_) => Ok(given),
        Err(_) => Err(out_of_range(text, range)),
    }
}

fn out_of_range(text: &str, range: &str) -> Invalid {
    Invalid::new(format!("\"{}\" is out of range ({range})", shown(text)))
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

/// How many characters of a wrong value a message repeats.
const SHOWN_OF_A_VALUE: usize = 40;

/// A wrong value for a message: shortened, and without a password that was typed in the wrong place.
pub(crate) fn shown(text: &str) -> String {
    let text = without_passwords(text);
    if text.chars().count() <= SHOWN_OF_A_VALUE {
        return text;
    }
    let start: String = text.chars().take(SHOWN_OF_A_VALUE).collect();
    format!("{start}...")
}

/// A text without the passwords of the URLs and connection strings in it.
pub(crate) fn without_passwords(text: &str) -> String {
    let mut out = text.to_owned();
    if let Some(scheme) = text.find("://") {
        let start = scheme + 3;
        if let Some(at) = text[start..].rfind('@') {
            out = format!("{}...{}", &text[..start], &text[start + at..]);
        }
    }
    match out.find("password=") {
        Some(at) => format!("{}password=...", &out[..at]),
        None => out,
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_is_a_duration_or_forever() {
        assert_eq!("forever".parse::<Wait>(), Ok(Wait::Forever));
        assert_eq!(
            "5m".parse::<Wait>(),
            Ok(Wait::For(Duration::from_secs(300)))
        );
        let right = "\"soon\" is not a duration (write 500ms, 30s, 5m or '1h 30m', or forever)";
        assert_eq!(
            "soon".parse::<Wait>().map_err(|e| e.to_string()),
            Err(right.to_owned())
        );
    }

    #[test]
    fn what_is_not_a_duration_says_what_would_be_one() {
        let message = |text: &str| duration(text).expect_err(text).to_string();
        let write = "(write 500ms, 30s, 5m or '1h 30m')";
        assert_eq!(message("abc"), format!("\"abc\" is not a duration {write}"));
        assert_eq!(
            message("60"),
            "\"60\" has no unit (write 60s, 5m or '1h 30m')"
        );
        assert_eq!(
            message("1.5"),
            "\"1.5\" has no unit (write 1.5s, 5m or '1h 30m')"
        );
        assert_eq!(message("-5s"), "\"-5s\" is negative");
        assert_eq!(message(""), format!("the value is empty {write}"));
        for months in ["5M", "1h 5M", "5 M"] {
            let right = format!("\"{months}\": M means months (write 5m for minutes, or 30days)");
            assert_eq!(message(months), right);
            assert_eq!(
                watch(months).map_err(|e| e.to_string()),
                Err(format!("--watch: {right}"))
            );
        }
        for bad in ["5 m s", "s", "1h 30", "--wait", " "] {
            assert!(message(bad).contains("is not a duration"), "{bad}");
        }
    }

    #[test]
    fn what_is_out_of_range_is_repeated_as_it_was_written() {
        assert_eq!(
            ttl("31days").map_err(|e| e.to_string()),
            Err("\"31days\" is out of range (100ms to 30days)".to_owned())
        );
        assert!(ttl("30days").is_ok() && db_timeout("1day").is_ok());
        assert!(db_timeout("25h").is_err() && hold_at_least("1year").is_err());
    }

    #[test]
    fn after_watch_comes_an_interval_or_a_key_and_never_a_bare_number() {
        let five_seconds = WatchArgument::Interval(Duration::from_secs(5));
        assert_eq!(watch("5s"), Ok(five_seconds));
        for key in ["nightly", "5-a-day"] {
            assert_eq!(watch(key), Ok(WatchArgument::Key(key.to_owned())));
        }
        let message = |text: &str| watch(text).expect_err(text).to_string();
        assert_eq!(
            message("5"),
            "--watch: \"5\" has no unit (write 5s, 5m or '1h 30m')"
        );
        assert_eq!(
            message("1ms"),
            "--watch: \"1ms\" is out of range (at least 100ms)"
        );
    }

    #[test]
    fn a_value_is_repeated_without_a_password_in_it_even_if_it_is_long() {
        let long = format!("postgres://app:s3cret{}@db/x", "y".repeat(50));
        for text in [
            "postgres://app:s3cret@db/x",
            "postgres://app:s3cret p@db/x",
            "host=db password=s3cret",
            &long,
        ] {
            assert!(!shown(text).contains("s3cret"), "{}", shown(text));
        }
        assert_eq!(shown(&"k".repeat(41)), format!("{}...", "k".repeat(40)));
    }
}
