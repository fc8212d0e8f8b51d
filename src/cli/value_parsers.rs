//! What the values of options may be. A complaint names the option, or the variable, that the value came from.

use std::ffi::OsStr;
use std::str::FromStr;
use std::time::Duration;

use clap::builder::TypedValueParser;
use clap::error::ErrorKind;
use clap::parser::ValueSource;
use clap::{Arg, Command};

use crate::lease::Invalid;
use crate::timing::{self, DB_TIMEOUT_RANGE, HOLD_RANGE, TTL_RANGE, Ttl, Wait};

impl FromStr for Wait {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        if text == "forever" {
            return Ok(Self::Forever);
        }
        duration(text).map(Self::For).map_err(|e| {
            // What is negative is told what is wrong with it, not what else there is.
            let other = if text.starts_with('-') {
                ""
            } else {
                ", or forever"
            };
            Invalid::new(format!("{e}{other}"))
        })
    }
}

/// What stands after `--watch`, where an interval may be left out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WatchWord {
    /// How often to look.
    Interval(Duration),
    /// The interval was left out, and this is the first key.
    Key(String),
}

/// The shortest interval of `--watch`.
const WATCH_SHORTEST: Duration = Duration::from_millis(100);

/// Tells an interval from a key. A key that looks like an interval is given after `--`.
///
/// # Errors
/// An interval that is too short, negative or without a unit. The text names the option.
pub fn watch(text: &str) -> Result<WatchWord, Invalid> {
    let complaint = |e: Invalid| Invalid::new(format!("--watch {e}"));
    match duration(text) {
        Ok(every) if every >= WATCH_SHORTEST => Ok(WatchWord::Interval(every)),
        Ok(_) => Err(complaint(out_of_range(text, "give at least 100ms"))),
        Err(e) if is_number(text.strip_prefix('-').unwrap_or(text)) || counts_months(text) => {
            Err(complaint(e))
        }
        Err(_) => Ok(WatchWord::Key(text.to_owned())),
    }
}

/// Reads a duration as humantime writes it, but for its `M`, a month, which nobody means who writes it.
///
/// # Errors
/// Anything else. The text begins with what was given, so that the name of an option can stand before it, and says what
/// would be right.
pub fn duration(text: &str) -> Result<Duration, Invalid> {
    if counts_months(text) {
        return Err(Invalid::new(format!(
            "{}: M would be a month: write 5m for minutes, or 30days",
            shown(text)
        )));
    }
    humantime::parse_duration(text).map_err(|_| {
        let given = shown(text);
        Invalid::new(if text.is_empty() {
            "is empty: write 500ms, 30s, 5m or '1h 30m'".to_owned()
        } else if is_number(text) {
            format!("{given} has no unit: write {given}s, 5m or '1h 30m'")
        } else if text
            .strip_prefix('-')
            .is_some_and(|t| t.starts_with(|c: char| c.is_ascii_digit()))
        {
            format!("{given}: a duration can't be negative")
        } else {
            format!("{given} is no duration: write 500ms, 30s, 5m or '1h 30m'")
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

/// The ttl, as long as it is in range.
pub(super) fn ttl(text: &str) -> Result<Duration, Invalid> {
    in_range(text, Ttl::new, TTL_RANGE)
}

/// The limit of one database operation, as long as it is in range.
pub(super) fn db_timeout(text: &str) -> Result<Duration, Invalid> {
    in_range(text, timing::db_timeout, DB_TIMEOUT_RANGE)
}

/// How long others are kept out, as long as it is in range.
pub(super) fn hold_at_least(text: &str) -> Result<Duration, Invalid> {
    in_range(text, timing::hold_at_least, HOLD_RANGE)
}

/// Checked here and not only where it is used, since here the text is at hand: whoever wrote 31days should not read of
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
    Invalid::new(format!("{} is out of range: {range}", shown(text)))
}

/// An exit code.
pub(super) fn code(text: &str) -> Result<u8, Invalid> {
    let right = "give a number from 0 to 255";
    text.parse().map_err(|_| {
        Invalid::new(if text.is_empty() {
            format!("is empty: {right}")
        } else {
            format!("{}: {right}", shown(text))
        })
    })
}

/// Any text, as long as it is UTF-8.
pub(super) fn text(text: &str) -> Result<String, Invalid> {
    Ok(text.to_owned())
}

/// A switch in a variable.
pub(super) fn switch(text: &str) -> Result<bool, Invalid> {
    let no = ["", "0", "n", "no", "f", "false", "off"];
    Ok(!no.contains(&text.to_ascii_lowercase().as_str()))
}

/// How many characters of a wrong value are repeated.
const SHOWN_OF_A_VALUE: usize = 40;

/// A wrong value as a message may repeat it: not too long, and without a password that was typed in a wrong place.
pub(crate) fn shown(text: &str) -> String {
    let text = without_passwords(text);
    if text.chars().count() <= SHOWN_OF_A_VALUE {
        return text;
    }
    let start: String = text.chars().take(SHOWN_OF_A_VALUE).collect();
    format!("{start}...")
}

/// A text with URLs and connection strings in it, without their passwords.
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

/// Reads a value with a function, and puts the name of where it came from before the complaint.
#[derive(Clone)]
pub(super) struct Named<T> {
    read: fn(&str) -> Result<T, Invalid>,
    between: &'static str,
}

impl<T> Named<T> {
    /// For complaints that are a sentence of their own: `--holder: the holder is empty`.
    pub(super) const fn word(read: fn(&str) -> Result<T, Invalid>) -> Self {
        Self {
            read,
            between: ": ",
        }
    }

    /// For complaints that begin with the value: `--ttl 60 has no unit`.
    pub(super) const fn value(read: fn(&str) -> Result<T, Invalid>) -> Self {
        Self { read, between: " " }
    }
}

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
        let complaint = match value.to_str().map(self.read) {
            Some(Ok(read)) => return Ok(read),
            Some(Err(complaint)) if arg.is_some_and(Arg::is_positional) => complaint.to_string(),
            Some(Err(complaint)) => format!("{name}{}{complaint}", self.between),
            None => format!("{name} is not UTF-8"),
        };
        Err(clap::Error::raw(ErrorKind::ValueValidation, complaint).with_cmd(command))
    }
}

/// The variable that a value came from, or its option, by the short name where there is one.
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
        assert_eq!(
            "soon".parse::<Wait>().map_err(|e| e.to_string()),
            Err("soon is no duration: write 500ms, 30s, 5m or '1h 30m', or forever".to_owned())
        );
    }

    #[test]
    fn a_duration_that_is_none_says_what_would_be_one() {
        let told = |text: &str| duration(text).expect_err(text).to_string();
        assert_eq!(
            told("abc"),
            "abc is no duration: write 500ms, 30s, 5m or '1h 30m'"
        );
        assert_eq!(told("60"), "60 has no unit: write 60s, 5m or '1h 30m'");
        assert_eq!(told("1.5"), "1.5 has no unit: write 1.5s, 5m or '1h 30m'");
        assert_eq!(told("-5s"), "-5s: a duration can't be negative");
        assert_eq!(told(""), "is empty: write 500ms, 30s, 5m or '1h 30m'");
        for months in ["5M", "1h 5M", "5 M"] {
            let hint = "M would be a month: write 5m for minutes, or 30days";
            assert_eq!(told(months), format!("{months}: {hint}"));
            assert_eq!(
                watch(months).map_err(|e| e.to_string()),
                Err(format!("--watch {months}: {hint}"))
            );
        }
        for bad in ["5 m s", "s", "1h 30", "--wait", " "] {
            assert!(told(bad).contains("is no duration"), "{bad}");
        }
    }

    #[test]
    fn what_is_out_of_range_is_repeated_as_it_was_written() {
        assert_eq!(
            ttl("31days").map_err(|e| e.to_string()),
            Err("31days is out of range: give 100ms to 30days".to_owned())
        );
        assert!(ttl("30days").is_ok() && db_timeout("1day").is_ok());
        assert!(db_timeout("25h").is_err() && hold_at_least("1year").is_err());
    }

    #[test]
    fn after_watch_stands_an_interval_or_a_key_and_never_a_bare_number() {
        assert_eq!(watch("5s"), Ok(WatchWord::Interval(Duration::from_secs(5))));
        assert_eq!(watch("nightly"), Ok(WatchWord::Key("nightly".to_owned())));
        assert_eq!(watch("5-a-day"), Ok(WatchWord::Key("5-a-day".to_owned())));
        let told = |text: &str| watch(text).expect_err(text).to_string();
        assert_eq!(told("5"), "--watch 5 has no unit: write 5s, 5m or '1h 30m'");
        assert_eq!(
            told("1ms"),
            "--watch 1ms is out of range: give at least 100ms"
        );
    }

    #[test]
    fn a_value_is_repeated_without_a_password_in_it_however_long_it_is() {
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
