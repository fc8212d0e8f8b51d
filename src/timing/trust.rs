//! Until when a lease can be trusted.

use std::time::Duration;

use super::limits::Ttl;
use crate::clock::BootTime;

/// Until when a lease of `ttl` can be trusted that was requested at `sent` and granted.
#[must_use]
pub fn deadline(ttl: Ttl, sent: BootTime) -> BootTime {
    trusted_until(sent, ttl.get())
}

/// The same if the server has said how long the lease lasts. The expiry may have been later already, and have stayed.
#[must_use]
pub fn trusted_until(sent: BootTime, expires_in: Duration) -> BootTime {
    sent + (expires_in - margin(expires_in))
}

/// What is left at `now` of a lease that was requested at `sent` and lasts `expires_in`. The result may be too small
/// but never too large, because the server has read its clock after `sent`.
#[must_use]
pub fn left(sent: BootTime, expires_in: Duration, now: BootTime) -> Duration {
    expires_in.saturating_sub(now.since(sent))
}

/// How late a busy machine may run the process that sends KILL. The longest delay seen was 66 ms, on two cores with
/// eleven runnable processes.
const LATENESS: Duration = Duration::from_millis(250);

/// The part of the ttl that is not used. It is a hundredth, because clocks do not run equally fast (NTP slews by at
/// most 500 ppm) and machines can be busy. It is at least [`LATENESS`], or a tenth of the ttl if that is less.
pub(super) fn margin(ttl: Duration) -> Duration {
    (ttl / 100).max(LATENESS.min(ttl / 10))
}
