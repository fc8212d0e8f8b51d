//! The ranges of the durations that an operator can give.

use std::time::Duration;

use super::text::human;
use crate::lease::Invalid;

/// The default ttl.
pub const DEFAULT_TTL: Duration = Duration::from_secs(60);
/// The shortest ttl.
pub const MIN_TTL: Duration = Duration::from_millis(100);
/// The longest ttl: 30 days.
pub const MAX_TTL: Duration = Duration::from_secs(30 * 24 * 3600);
/// The default time limit of one database operation.
pub const DEFAULT_DB_TIMEOUT: Duration = Duration::from_secs(10);
/// The shortest time limit of one database operation.
const MIN_DB_TIMEOUT: Duration = Duration::from_millis(10);
/// The longest time limit of one database operation: a day. `--wait` is the option for a longer wait.
const MAX_DB_TIMEOUT: Duration = Duration::from_secs(24 * 3600);

/// The shortest period of `--once-per`.
const MIN_ONCE_PER: Duration = Duration::from_secs(1);
/// The longest period of `--once-per`.
const MAX_ONCE_PER: Duration = Duration::from_secs(10 * 31_557_600);

/// The range of a ttl, for messages.
pub const TTL_RANGE: &str = "100ms to 30days";
/// The same for the time limit of one database operation.
pub const DB_TIMEOUT_RANGE: &str = "10ms to 1day";
/// The same for `--hold-at-least`.
pub const HOLD_RANGE: &str = "at most 30days";
/// The same for the period of `--once-per`.
pub const ONCE_PER_RANGE: &str = "1s to 10years";

/// How long a lease outlives its last heartbeat: [`MIN_TTL`] to [`MAX_TTL`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ttl(Duration);

impl Ttl {
    /// Checks the bounds.
    ///
    /// # Errors
    /// Outside [`MIN_TTL`] to [`MAX_TTL`].
    pub fn new(ttl: Duration) -> Result<Self, Invalid> {
        if ttl < MIN_TTL || ttl > MAX_TTL {
            return Err(Invalid::new(format!(
                "--ttl {} is out of range ({TTL_RANGE})",
                human(ttl)
            )));
        }
        Ok(Self(ttl))
    }

    /// The duration.
    #[must_use]
    pub const fn get(self) -> Duration {
        self.0
    }
}

/// Checks the time limit of one database operation.
///
/// # Errors
/// Outside 10 ms to a day.
pub fn db_timeout(limit: Duration) -> Result<Duration, Invalid> {
    if limit < MIN_DB_TIMEOUT || limit > MAX_DB_TIMEOUT {
        return Err(Invalid::new(format!(
            "--db-timeout {} is out of range ({DB_TIMEOUT_RANGE})",
            human(limit)
        )));
    }
    Ok(limit)
}

/// Checks the period of `--once-per`.
///
/// # Errors
/// Outside one second to ten years. A shorter period makes no sense for a job, and a longer one is a typing mistake.
pub fn once_per(period: Duration) -> Result<Duration, Invalid> {
    if period < MIN_ONCE_PER || period > MAX_ONCE_PER {
        return Err(Invalid::new(format!(
            "--once-per {} is out of range ({ONCE_PER_RANGE})",
            human(period)
        )));
    }
    Ok(period)
}

/// Checks the time of `--hold-at-least`.
///
/// # Errors
/// More than [`MAX_TTL`]. A typing mistake could keep a job from running for years.
pub fn hold_at_least(hold: Duration) -> Result<Duration, Invalid> {
    if hold > MAX_TTL {
        return Err(Invalid::new(format!(
            "--hold-at-least {} is out of range ({HOLD_RANGE})",
            human(hold)
        )));
    }
    Ok(hold)
}
