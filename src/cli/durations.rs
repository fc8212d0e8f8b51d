//! Which durations an option accepts.

use std::str::FromStr;
use std::time::Duration;

use super::shown::shown;
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

pub(super) fn counts_months(text: &str) -> bool {
    text.split(|c: char| !c.is_ascii_alphabetic())
        .any(|unit| unit == "M")
        && humantime::parse_duration(text).is_ok()
}

pub(super) fn is_number(text: &str) -> bool {
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

pub(super) fn out_of_range(text: &str, range: &str) -> Invalid {
    Invalid::new(format!("\"{}\" is out of range ({range})", shown(text)))
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
}
