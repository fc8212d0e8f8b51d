//! The one reading of a local clock.
//!
//! The client trusts only durations, and uses them only to give up *sooner* than the server would. They are read on
//! `CLOCK_BOOTTIME`, which keeps running while a laptop or a virtual machine is suspended. `std::time::Instant` uses
//! `CLOCK_MONOTONIC`, which stops then. By that clock, a lease that expired hours ago would still look valid.

use std::ops::{Add, Sub};
use std::time::Duration;

use nix::time::{ClockId, clock_gettime};

/// An instant on this machine's boot-time clock, in nanoseconds since boot.
///
/// It means nothing on another machine or after a reboot, so it is never stored and never sent to the database.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct BootTime(u64);

impl BootTime {
    /// Reads the clock.
    ///
    /// # Panics
    /// If the kernel has no `CLOCK_BOOTTIME` (Linux before 2.6.39). Without a clock, no deadline can be kept.
    #[must_use]
    pub fn now() -> Self {
        Self::try_now().expect("the kernel has a boot-time clock")
    }

    /// Reads the clock; `None` if the kernel does not have it. It is async-signal-safe and never panics, so a child may
    /// call it between fork and exec.
    #[must_use]
    pub fn try_now() -> Option<Self> {
        let read = clock_gettime(ClockId::CLOCK_BOOTTIME).ok()?;
        let seconds = u64::try_from(read.tv_sec()).unwrap_or(0);
        let nanos = u64::try_from(read.tv_nsec()).unwrap_or(0);
        Some(Self(
            seconds.saturating_mul(1_000_000_000).saturating_add(nanos),
        ))
    }

    /// The instant `nanos` nanoseconds after boot. An instant is sent in this form between two processes of one
    /// machine.
    #[must_use]
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// Nanoseconds since boot.
    #[must_use]
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// How long after `earlier` this is; zero if it is not after it.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }

    /// How long from now until this instant; zero once it has passed.
    #[must_use]
    pub fn remaining(self) -> Duration {
        self.since(Self::now())
    }

    /// Whether this instant has passed.
    #[must_use]
    pub fn has_passed(self) -> bool {
        Self::now() >= self
    }
}

impl Add<Duration> for BootTime {
    type Output = Self;

    fn add(self, rhs: Duration) -> Self {
        Self(
            self.0
                .saturating_add(u64::try_from(rhs.as_nanos()).unwrap_or(u64::MAX)),
        )
    }
}

impl Sub<Duration> for BootTime {
    type Output = Self;

    fn sub(self, rhs: Duration) -> Self {
        Self(
            self.0
                .saturating_sub(u64::try_from(rhs.as_nanos()).unwrap_or(u64::MAX)),
        )
    }
}

/// The length of a time as [`utc_now`] writes it.
pub const UTC_LENGTH: usize = 24;

/// The time of day in UTC, as RFC 3339 has it: `2026-12-03T04:00:01.250Z`. It stands in messages and decides nothing.
/// Async-signal-safe.
#[must_use]
pub fn utc_now() -> [u8; UTC_LENGTH] {
    let read = clock_gettime(ClockId::CLOCK_REALTIME).ok();
    read.map_or(*b"1970-01-01T00:00:00.000Z", |t| {
        utc(t.tv_sec(), t.tv_nsec())
    })
}

/// The same for so many seconds since 1970. Years outside of 0 to 9999 are written by their last four digits.
fn utc(seconds: i64, nanos: i64) -> [u8; UTC_LENGTH] {
    let (days, second) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    // Howard Hinnant's civil_from_days: years begin in March, so that the leap day is the last one.
    let days = days + 719_468;
    let (era, day_of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 {
        month_from_march + 3
    } else {
        month_from_march - 9
    };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    let mut out = *b"0000-00-00T00:00:00.000Z";
    let mut put = |at: usize, width: usize, mut value: i64| {
        for place in (at..at + width).rev() {
            if let Some(digit) = out.get_mut(place) {
                *digit = b'0' + u8::try_from(value.rem_euclid(10)).unwrap_or(0);
            }
            value = value.div_euclid(10);
        }
    };
    put(0, 4, year);
    put(5, 2, month);
    put(8, 2, day);
    put(11, 2, second / 3_600);
    put(14, 2, second / 60 % 60);
    put(17, 2, second % 60);
    put(20, 3, nanos / 1_000_000);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_of_day_is_written_as_a_calendar_writes_it() {
        for seconds in [
            0,
            951_782_399,
            951_782_400,
            951_868_800,
            1_709_164_800,
            1_796_270_401,
            4_107_542_399,
            253_402_200_000,
        ] {
            let moment = jiff::Timestamp::from_second(seconds).expect("a moment");
            let right = moment.strftime("%Y-%m-%dT%H:%M:%S.250Z").to_string();
            assert_eq!(String::from_utf8_lossy(&utc(seconds, 250_999_999)), right);
        }
    }

    #[test]
    fn time_goes_forward_and_differences_never_go_below_zero() {
        let a = BootTime::now();
        let b = BootTime::now();
        assert!(b >= a);
        assert_eq!(a.since(a + Duration::from_secs(1)), Duration::ZERO);
        assert_eq!(
            (a + Duration::from_secs(2)).since(a),
            Duration::from_secs(2)
        );
        assert!(a.has_passed());
        assert!(!(a + Duration::from_secs(3600)).has_passed());
    }
}
