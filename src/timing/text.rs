//! Durations as text.

use std::time::Duration;

/// A duration as it would be typed. Digits below a millisecond are shown only if there are no others.
#[must_use]
pub fn human(duration: Duration) -> String {
    let shown = if duration >= Duration::from_millis(1) {
        Duration::from_millis(u64::try_from(duration.as_millis()).unwrap_or(u64::MAX))
    } else {
        duration
    };
    humantime::format_duration(shown).to_string()
}

/// A duration in the form of an option's value, rounded down to the millisecond.
pub(super) fn typed(duration: Duration) -> String {
    let text = human(duration);
    if text.contains(' ') {
        format!("'{text}'")
    } else {
        text
    }
}
