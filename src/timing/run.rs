//! The durations of one `run`, and the inequality between them.

use std::time::Duration;

use super::limits::Ttl;
use super::text::{human, typed};
use super::trust::{deadline, margin};
use crate::clock::BootTime;
use crate::lease::Invalid;

/// The longest default grace.
const MAX_DEFAULT_GRACE: Duration = Duration::from_secs(10);
/// The shortest heartbeat that gives a database time to answer.
const MIN_HEARTBEAT: Duration = Duration::from_millis(10);

/// The durations of one `run`, which are consistent with each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    ttl: Ttl,
    pub(super) heartbeat: Duration,
    grace: Duration,
    pub(super) db_timeout: Duration,
}

impl Timing {
    /// Fills in the defaults and checks every inequality.
    ///
    /// Two tries of a heartbeat must fit before the stop begins: `2 x heartbeat + grace <= ttl - margin`. Without
    /// either option, the heartbeat is a third of the ttl, and the grace is a sixth, at most 10 s. If one of them is
    /// given, the default of the other shrinks to what is left, but not below a sixtieth of the ttl: a job needs a
    /// moment to end, and a database needs one to answer. A given value is never changed.
    ///
    /// # Errors
    /// They do not fit, or the heartbeat is too short. The text names the options that were given, and the largest
    /// value that fits, to the millisecond.
    pub fn new(
        ttl: Ttl,
        heartbeat: Option<Duration>,
        grace: Option<Duration>,
        db_timeout: Duration,
    ) -> Result<Self, Invalid> {
        let whole = ttl.get();
        let room = whole.saturating_sub(margin(whole));
        let (own_beat, own_grace) = (whole / 3, (whole / 6).min(MAX_DEFAULT_GRACE));
        let (least_beat, least_grace) = ((whole / 60).max(MIN_HEARTBEAT), whole / 60);
        if let Some(short) = heartbeat.filter(|h| *h < MIN_HEARTBEAT) {
            return Err(Invalid::new(format!(
                "--heartbeat {} is too short (at least 10ms)",
                human(short)
            )));
        }
        let beats_in = |left: Duration| left / 2;
        let left_by = |beat: Duration| room.saturating_sub(beat.saturating_mul(2));
        let (heartbeat, grace) = match (heartbeat, grace) {
            (None, None) => (own_beat, own_grace),
            (None, Some(grace)) => {
                let largest = left_by(least_beat);
                if grace > largest {
                    return Err(does_not_fit("--grace", grace, ttl, largest));
                }
                (own_beat.min(beats_in(room - grace)), grace)
            }
            (Some(heartbeat), None) => {
                let largest = beats_in(room - least_grace);
                if heartbeat > largest {
                    return Err(does_not_fit("--heartbeat", heartbeat, ttl, largest));
                }
                (heartbeat, own_grace.min(left_by(heartbeat)))
            }
            (Some(heartbeat), Some(grace)) => {
                if heartbeat.saturating_mul(2).saturating_add(grace) > room {
                    let slowest = beats_in(room.saturating_sub(grace));
                    return Err(do_not_fit(
                        heartbeat,
                        grace,
                        ttl,
                        slowest,
                        left_by(heartbeat),
                    ));
                }
                (heartbeat, grace)
            }
        };
        Ok(Self {
            ttl,
            heartbeat,
            grace,
            db_timeout,
        })
    }

    /// How long the lease outlives its last heartbeat.
    #[must_use]
    pub const fn ttl(&self) -> Ttl {
        self.ttl
    }

    /// Between two renewals.
    #[must_use]
    pub const fn heartbeat(&self) -> Duration {
        self.heartbeat
    }

    /// Between TERM and KILL.
    #[must_use]
    pub const fn grace(&self) -> Duration {
        self.grace
    }

    /// The time limit of one database operation.
    #[must_use]
    pub const fn db_timeout(&self) -> Duration {
        self.db_timeout
    }

    /// When the job must be dead, for a claim or renewal that was sent at `sent` and granted.
    #[must_use]
    pub fn deadline(&self, sent: BootTime) -> BootTime {
        deadline(self.ttl, sent)
    }

    /// When the stop of the job must begin, so that the job is dead at `deadline`.
    #[must_use]
    pub fn stop_at(&self, deadline: BootTime) -> BootTime {
        deadline - self.grace
    }

    /// How long after a claim or a renewal was sent the stop of the job must begin.
    #[must_use]
    pub fn trusted(&self) -> Duration {
        (self.ttl.get() - margin(self.ttl.get())).saturating_sub(self.grace)
    }
}

pub(super) const RULE: &str = "two heartbeats, the grace period and a margin must fit into the ttl";

fn does_not_fit(option: &str, given: Duration, ttl: Ttl, largest: Duration) -> Invalid {
    Invalid::new(format!(
        "{option} {} does not fit into --ttl {}: {RULE} (give at most {})",
        typed(given),
        typed(ttl.get()),
        typed(largest)
    ))
}

/// Both were given. Changing either of them may be enough.
fn do_not_fit(
    heartbeat: Duration,
    grace: Duration,
    ttl: Ttl,
    slowest: Duration,
    longest: Duration,
) -> Invalid {
    let mut ways = Vec::new();
    if slowest >= MIN_HEARTBEAT {
        ways.push(format!("a heartbeat of at most {}", typed(slowest)));
    }
    if longest >= Duration::from_millis(1) {
        ways.push(format!("a grace period of at most {}", typed(longest)));
    }
    if ways.is_empty() {
        ways.push("a longer ttl, or neither of the two".to_owned());
    }
    Invalid::new(format!(
        "--heartbeat {} and --grace {} do not fit into --ttl {}: {RULE} (give {})",
        typed(heartbeat),
        typed(grace),
        typed(ttl.get()),
        ways.join(", or ")
    ))
}
