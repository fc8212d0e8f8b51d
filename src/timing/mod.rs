//! Every duration, and every inequality between durations, in one constructor.
//!
//! One renewal, sent at `s` and granted:
//!
//! ```text
//! s ------- heartbeat -------> retries ... | stop begins (TERM) | grace | KILL | margin | s + ttl: the server may grant it to another
//! ```
//!
//! The rule is River's `trusted_until = sent + ttl - margin`. It counts from the moment of sending, so the time that an
//! answer takes only shortens the trust.

mod renewals;

use std::time::Duration;

pub use self::renewals::Renewals;
use crate::clock::BootTime;
use crate::lease::Invalid;

/// The default ttl.
pub const DEFAULT_TTL: Duration = Duration::from_secs(60);
/// The shortest ttl.
pub const MIN_TTL: Duration = Duration::from_millis(100);
/// The longest ttl: 30 days.
pub const MAX_TTL: Duration = Duration::from_secs(30 * 24 * 3600);
/// The longest default grace.
const MAX_DEFAULT_GRACE: Duration = Duration::from_secs(10);
/// The default time limit of one database operation.
pub const DEFAULT_DB_TIMEOUT: Duration = Duration::from_secs(10);
/// The shortest time limit of one database operation.
const MIN_DB_TIMEOUT: Duration = Duration::from_millis(10);
/// The longest time limit of one database operation: a day. `--wait` is the option for a longer wait.
const MAX_DB_TIMEOUT: Duration = Duration::from_secs(24 * 3600);
/// The shortest heartbeat that gives a database time to answer.
const MIN_HEARTBEAT: Duration = Duration::from_millis(10);

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

/// How long to keep trying while another holder has the lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// At most this long.
    For(Duration),
    /// Until it succeeds or is interrupted.
    Forever,
}

/// How a renewal moves the expiry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extension {
    /// To this long from now, even if that shortens the lease. Heartbeats do this: if the server's clock was set back,
    /// the expiry is far ahead, and the lease must not outlive its holder by more than the ttl.
    To(Ttl),
    /// To this long from now, but never to an earlier time. Without an explicit ttl, a caller must not shorten a lease
    /// that others rely on. For example, a job may call `lease renew` between two heartbeats.
    AtLeast(Ttl),
}

impl Extension {
    /// For a ttl that was given explicitly for this call, or that is a default.
    #[must_use]
    pub const fn of(ttl: Ttl, was_typed: bool) -> Self {
        if was_typed {
            Self::To(ttl)
        } else {
            Self::AtLeast(ttl)
        }
    }

    /// The new expiry, counted from now.
    #[must_use]
    pub const fn ttl(self) -> Ttl {
        match self {
            Self::To(ttl) | Self::AtLeast(ttl) => ttl,
        }
    }

    /// Whether a later expiry stays.
    #[must_use]
    pub const fn keeps_more(self) -> bool {
        match self {
            Self::To(_) => false,
            Self::AtLeast(_) => true,
        }
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

/// The durations of one `run`, which are consistent with each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    ttl: Ttl,
    heartbeat: Duration,
    grace: Duration,
    db_timeout: Duration,
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

const RULE: &str = "two heartbeats, the grace period and a margin must fit into the ttl";

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

/// A duration in the form of an option's value, rounded down to the millisecond.
fn typed(duration: Duration) -> String {
    let text = human(duration);
    if text.contains(' ') {
        format!("'{text}'")
    } else {
        text
    }
}

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
fn margin(ttl: Duration) -> Duration {
    (ttl / 100).max(LATENESS.min(ttl / 10))
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
const SHORTEST_POLL: Duration = Duration::from_millis(2);

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

#[cfg(test)]
mod tests;
