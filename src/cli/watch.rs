//! The argument of `--watch`: an interval or a key.

use std::time::Duration;

use super::durations::{counts_months, duration, is_number, out_of_range};
use crate::lease::Invalid;

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

#[cfg(test)]
mod tests {
    use super::*;

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
        assert_eq!(
            message("5M"),
            "--watch: \"5M\": M means months (write 5m for minutes, or 30days)"
        );
    }
}
