//! How long a wait and its looks may take.

use std::time::Duration;

/// How long to keep trying while another holder has the lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// At most this long.
    For(Duration),
    /// Until it succeeds or is interrupted.
    Forever,
}

/// How long the last try of a wait may take beyond the end of the wait: a claim that was sent must get its answer.
pub const LAST_LOOK: Duration = Duration::from_secs(1);

/// How long a look into the history may take for the client that has evicted a holder. The answer changes only a message.
pub const EVICTION_LOOK: Duration = Duration::from_secs(1);

/// How long a release continues after a signal that asks `lease` to end. A signal that ends a job often reaches `lease`
/// too, a moment later: the kernel or the shell sends HUP when a terminal is closed, and a service manager sends TERM
/// to both. This must not leave the lease unreleased. A person who presses Ctrl-C because the database hangs may do
/// that.
pub const RELEASE_PATIENCE: Duration = Duration::from_secs(2);

/// The first and the longest pause between two looks of a waiter. The pause doubles from the first to the longest, with
/// a jitter of a quarter.
const FIRST_POLL: Duration = Duration::from_millis(100);
const LAST_POLL: Duration = Duration::from_secs(2);
/// The shortest pause between two looks, if a lease is just about to expire.
pub(super) const SHORTEST_POLL: Duration = Duration::from_millis(2);

/// How long a waiter sleeps after its `looks`-th look (1, 2, ...). `expires_in` is when the lease expires, `None` if
/// that is unknown.
///
/// It looks exactly at the expiry, so that a dead holder blocks others for no longer than its ttl. It also looks before
/// that, because a holder may release early.
#[must_use]
pub fn poll_pause(looks: u32, expires_in: Option<Duration>) -> Duration {
    let base = FIRST_POLL
        .saturating_mul(1 << looks.saturating_sub(1).min(5))
        .min(LAST_POLL);
    let jittered = base.mul_f64(0.75 + 0.5 * fastrand::f64());
    expires_in.map_or(jittered, |left| jittered.min(left.max(SHORTEST_POLL)))
}
