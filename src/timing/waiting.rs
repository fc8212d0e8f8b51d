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

/// The longest that a connection is kept for the next operation.
const LONGEST_KEEP: Duration = Duration::from_millis(100);

/// How long a connection is kept that it took `took` to make: as long, so that it holds its place at the server for at most
/// twice the time. Never long: a connection that took long may have waited in a queue, and others still wait in it.
#[must_use]
pub fn keep_for(took: Duration) -> Duration {
    took.min(LONGEST_KEEP)
}

/// How long a waiter with `--eager` keeps its connection for the next look.
pub const KEEP_BETWEEN_LOOKS: Duration = Duration::from_secs(10);

/// How long such a connection is used beyond the time limit of the first look. It is then replaced, so that a new address
/// or a new password is noticed.
pub const LIFE_OF_A_LOOKOUT: Duration = Duration::from_secs(60);

/// The pause between two looks of a waiter with `--eager`, with a jitter of a quarter.
const EAGER_PAUSE: Duration = Duration::from_millis(20);
/// The pause is at least this many times as long as the look has taken: the waiters of a busy server look less often.
const EAGER_REST: u32 = 10;

/// The first pause between two looks of a waiter, or between two tries after a failure. It doubles from one to the next,
/// with a jitter of a quarter.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
/// The longest pause between two looks, for [`FRESH`]. Most jobs take seconds or minutes, and the next one should start
/// soon after a release.
const LONGEST_AT_FIRST: Duration = Duration::from_millis(500);
/// How long a wait is fresh.
const FRESH: Duration = Duration::from_secs(300);
/// The longest pause between two looks after that, and between two tries.
const LONGEST_PAUSE: Duration = Duration::from_secs(2);
/// The shortest pause between two looks, if a lease is just about to expire.
pub(super) const SHORTEST_POLL: Duration = Duration::from_millis(2);

/// How long a waiter sleeps after its `looks`-th look (1, 2, ...), if it has waited for `waited`. The lease expires in
/// `expires_in`.
///
/// It looks exactly at the expiry, so that a dead holder blocks others for no longer than its ttl. It also looks before
/// that, because a holder may release early.
#[must_use]
pub fn poll_pause(looks: u32, waited: Duration, expires_in: Duration) -> Duration {
    let longest = if waited < FRESH {
        LONGEST_AT_FIRST
    } else {
        LONGEST_PAUSE
    };
    pause(looks, longest).min(expires_in.max(SHORTEST_POLL))
}

/// The same for a waiter with `--eager`, whose last look took `took`.
#[must_use]
pub fn eager_pause(took: Duration, expires_in: Duration) -> Duration {
    let pause = EAGER_PAUSE.max(took * EAGER_REST).min(LONGEST_AT_FIRST);
    jittered(pause).min(expires_in.max(SHORTEST_POLL))
}

/// How long to sleep after the `failures`-th failure in a row (1, 2, ...).
#[must_use]
pub fn retry_pause(failures: u32) -> Duration {
    pause(failures, LONGEST_PAUSE)
}

fn pause(number: u32, longest: Duration) -> Duration {
    let base = FIRST_PAUSE
        .saturating_mul(1 << number.saturating_sub(1).min(5))
        .min(longest);
    jittered(base)
}

fn jittered(pause: Duration) -> Duration {
    pause.mul_f64(0.75 + 0.5 * fastrand::f64())
}
