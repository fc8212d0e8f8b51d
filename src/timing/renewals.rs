//! When a run renews, and how long each try may take.
//!
//! Two aims conflict. A try on a slow link needs enough time, or a healthy job is stopped. A try on a dead connection
//! must be abandoned early enough for another try, on a new connection. While a try hangs, it is unknown which of the
//! two it is. So the time that the last successful try took is the measure:
//!
//! - A try may take a heartbeat, or twice as long as the last successful one. After each timeout, it may take twice as
//!   long as before.
//! - It leaves room for one more try that takes a quarter longer than the last successful one. If there is room for one
//!   try only, that try gets all the time that is left.
//! - The next renewal is due a heartbeat after the last one was sent, or earlier if two tries would not fit otherwise.
//!   The first of them takes a heartbeat, or one and a half times as long as the last successful one.
//! - No try takes longer than the time limit of one database operation.

use std::time::Duration;

use super::Timing;
use crate::clock::BootTime;

/// The renewals of one run.
#[derive(Clone, Copy, Debug)]
pub struct Renewals {
    timing: Timing,
    /// How long the last successful try took, including the connection. After a slow try, the value falls by at most
    /// half at a time.
    usual: Duration,
    /// How many tries in a row have reached their limit.
    timeouts: u32,
    /// How many tries in a row have failed.
    failures: u32,
}

impl Renewals {
    /// Begins after a claim or a renewal that took this long.
    #[must_use]
    pub const fn new(timing: Timing, took: Duration) -> Self {
        Self {
            timing,
            usual: took,
            timeouts: 0,
            failures: 0,
        }
    }

    /// The time that must be left for one more try and the pause before it.
    fn another(&self) -> Duration {
        self.longest_pause(self.failures + 1) + self.usual.mul_f64(1.25)
    }

    /// When the next renewal is due, for one that was sent at `sent`. It is up to a tenth of a heartbeat earlier, so
    /// that a thousand jobs that cron starts in the same minute do not renew at the same time.
    #[must_use]
    pub fn next_beat(&self, sent: BootTime) -> BootTime {
        let beat = self.timing.heartbeat.mul_f64(1.0 - 0.1 * fastrand::f64());
        let two_tries = self.timing.heartbeat.max(self.usual.mul_f64(1.5)) + self.another();
        sent + beat.min(self.timing.trusted().saturating_sub(two_tries))
    }

    /// How long a try may take that begins at `now`, if the stop of the job begins at `stop_at`. After that instant, if
    /// the job runs on without its lease, no limit follows from `stop_at`.
    #[must_use]
    pub fn limit(&self, now: BootTime, stop_at: BootTime) -> Duration {
        let wanted = self
            .timing
            .heartbeat
            .max(self.usual.saturating_mul(2))
            .saturating_mul(1 << self.timeouts.min(16));
        let left = stop_at.since(now);
        let all_but_another = left.saturating_sub(self.another());
        let limit = if left.is_zero() {
            wanted
        } else if all_but_another >= self.usual.mul_f64(1.25) {
            wanted.min(all_but_another)
        } else {
            wanted.min(left)
        };
        limit.min(self.timing.db_timeout)
    }

    /// Records a try that has succeeded.
    pub fn succeeded(&mut self, took: Duration) {
        self.usual = took.max(self.usual / 2);
        self.timeouts = 0;
        self.failures = 0;
    }

    /// Records a failed try whose limit was `limit`. Returns how long to wait before the next one, with jitter.
    pub fn failed(&mut self, took: Duration, limit: Duration) -> Duration {
        self.failures += 1;
        // The server's own limits pass a little before ours.
        if took >= limit.mul_f64(0.75) {
            self.timeouts += 1;
        }
        self.longest_pause(self.failures)
            .mul_f64(0.6 + 0.4 * fastrand::f64())
    }

    /// The longest pause after the `failures`-th failed try in a row.
    fn longest_pause(&self, failures: u32) -> Duration {
        let first = self.timing.heartbeat / 13;
        first
            .saturating_mul(1 << failures.saturating_sub(1).min(4))
            .min(Duration::from_millis(2_500))
    }
}

#[cfg(test)]
mod tests {
    use super::super::{DEFAULT_DB_TIMEOUT, Ttl};
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn timing(ttl: u32, heartbeat: Option<u32>) -> Timing {
        let ttl = Ttl::new(MS * ttl).expect("in range");
        Timing::new(ttl, heartbeat.map(|h| MS * h), None, DEFAULT_DB_TIMEOUT).expect("it fits")
    }

    /// Various durations, with heartbeats from the shortest to the longest that fits.
    fn all() -> Vec<Timing> {
        let mut all = Vec::new();
        for ttl in [
            100,
            300,
            1_000,
            5_000,
            20_000,
            60_000,
            600_000,
            86_400_000,
            2_592_000_000,
        ] {
            for heartbeat in [
                None,
                Some(10),
                Some(ttl / 20),
                Some(ttl / 5),
                Some(ttl / 5 * 2),
            ] {
                let ttl = Ttl::new(MS * ttl).expect("in range");
                let heartbeat = heartbeat.map(|h| MS * h);
                for db_timeout in [100, 1_000, 10_000, 3_600_000] {
                    all.extend(Timing::new(ttl, heartbeat, None, MS * db_timeout));
                }
            }
        }
        assert!(all.len() > 100, "{}", all.len());
        all
    }

    fn start() -> BootTime {
        BootTime::from_nanos(1_000_000_000)
    }

    /// Lets every try fail at its limit. Returns when each began, and its limit.
    fn black_hole(timing: Timing, took: Duration) -> Vec<(BootTime, Duration)> {
        let mut renewals = Renewals::new(timing, took);
        let stop_at = timing.stop_at(timing.deadline(start()));
        let mut now = renewals.next_beat(start());
        let mut tries = Vec::new();
        while now < stop_at && tries.len() < 10_000 {
            let limit = renewals.limit(now, stop_at);
            tries.push((now, limit));
            now = now + limit + renewals.failed(limit, limit);
        }
        tries
    }

    #[test]
    fn all_tries_together_end_before_the_job_is_stopped() {
        for timing in all() {
            let stop_at = timing.stop_at(timing.deadline(start()));
            for took in [MS, MS * 50, MS * 500, MS * 5_000] {
                for (began, limit) in black_hole(timing, took) {
                    assert!(began + limit <= stop_at, "{timing:?} {took:?}");
                    assert!(limit <= timing.db_timeout(), "{timing:?} {took:?}");
                }
            }
        }
    }

    #[test]
    fn a_dead_connection_leaves_time_for_a_try_like_the_last_good_one() {
        for timing in all() {
            let room = timing.trusted();
            for took in [MS, MS * 50, MS * 500, MS * 5_000] {
                // Only if there is room for two of them, and each is short enough.
                if took * 5 > room || took * 2 > timing.db_timeout() {
                    continue;
                }
                let tries = black_hole(timing, took);
                let good = tries.iter().filter(|(_, limit)| *limit >= took).count();
                assert!(good >= 2, "{timing:?} {took:?}: {tries:?}");
                let first = timing.heartbeat().min(timing.db_timeout());
                assert!(tries[0].1 >= first, "{timing:?} {took:?}: {tries:?}");
            }
        }
    }

    #[test]
    fn a_link_on_which_each_renewal_takes_the_same_time_keeps_its_lease() {
        for timing in all() {
            let room = timing.trusted();
            for percent in [1, 10, 30, 50] {
                let takes = room * percent / 100;
                if takes > timing.db_timeout() {
                    continue;
                }
                // The statement is sent after two thirds of the time; the answer comes at the end.
                let mut renewals = Renewals::new(timing, takes);
                let (mut sent, mut now) = (start(), start() + takes / 3);
                for beat in 0..50 {
                    let stop_at = timing.stop_at(timing.deadline(sent));
                    now = now.max(renewals.next_beat(sent));
                    let limit = renewals.limit(now, stop_at);
                    assert!(limit >= takes, "{beat}: {timing:?} {percent} %: {limit:?}");
                    (sent, now) = (now + takes * 2 / 3, now + takes);
                    assert!(now <= stop_at, "{beat}: {timing:?} {percent} %");
                    renewals.succeeded(takes);
                }
            }
        }
    }

    #[test]
    fn a_try_may_take_a_heartbeat_and_twice_as_long_after_each_timeout() {
        let timing = timing(20_000, Some(1_000));
        let stop_at = timing.stop_at(timing.deadline(start()));
        let mut renewals = Renewals::new(timing, MS * 20);
        let mut limits = Vec::new();
        for _ in 0..4 {
            let limit = renewals.limit(start() + MS, stop_at);
            renewals.failed(limit, limit);
            limits.push(limit);
        }
        assert_eq!(limits, [1, 2, 4, 8].map(|s| MS * 1_000 * s));
        // A try that fails at once says nothing about how long an answer takes.
        let mut refused = Renewals::new(timing, MS * 20);
        refused.failed(MS, MS * 1_000);
        assert_eq!(refused.limit(start(), stop_at), MS * 1_000);
        renewals.succeeded(MS * 20);
        assert_eq!(renewals.limit(start(), stop_at), MS * 1_000);
    }

    #[test]
    fn a_slow_claim_lets_the_first_renewal_take_as_long_and_begin_sooner() {
        let timing = timing(5_000, None);
        let stop_at = timing.stop_at(timing.deadline(start()));
        let quick = Renewals::new(timing, MS * 10);
        assert!(quick.next_beat(start()) >= start() + MS * 1_500);
        assert_eq!(
            quick.limit(start() + MS * 1_600, stop_at),
            timing.heartbeat()
        );
        // This happened with six round trips of 300 ms.
        let slow = Renewals::new(timing, MS * 1_850);
        assert_eq!(slow.next_beat(start()), start());
        assert!(slow.limit(start() + MS * 600, stop_at) >= MS * 1_850);
    }

    #[test]
    fn a_job_that_runs_on_without_its_lease_is_renewed_as_before() {
        let timing = timing(20_000, Some(1_000));
        let renewals = Renewals::new(timing, MS * 20);
        assert_eq!(renewals.limit(start() + MS, start()), MS * 1_000);
    }

    #[test]
    fn pauses_grow_and_stay_short() {
        let timing = timing(60_000, None);
        let mut renewals = Renewals::new(timing, MS);
        let pauses: Vec<_> = (0..9).map(|_| renewals.failed(MS, MS * 10_000)).collect();
        assert!(
            pauses[0] <= MS * 1_600 && pauses[0] >= MS * 900,
            "{pauses:?}"
        );
        assert!(
            pauses[8] <= MS * 2_500 && pauses[8] >= MS * 1_500,
            "{pauses:?}"
        );
    }
}
