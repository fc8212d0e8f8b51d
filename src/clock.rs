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

#[cfg(test)]
mod tests {
    use super::*;

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
