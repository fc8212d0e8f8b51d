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
//!
//! | file | what it has |
//! |---|---|
//! | `limits` | the ranges of the durations that an operator can give |
//! | `extension` | how a renewal moves the expiry |
//! | `trust` | until when a lease can be trusted |
//! | `run` | the durations of one `run`, and the inequality between them |
//! | `renewals` | when a run renews, and how long each try may take |
//! | `waiting` | how long a wait and its looks may take |
//! | `text` | durations as text |

mod extension;
mod limits;
mod renewals;
mod run;
#[cfg(test)]
mod tests;
mod text;
mod trust;
mod waiting;

pub use self::extension::Extension;
pub use self::limits::{
    DB_TIMEOUT_RANGE, DEFAULT_DB_TIMEOUT, DEFAULT_TTL, HOLD_RANGE, MAX_TTL, MIN_TTL,
    ONCE_PER_RANGE, TTL_RANGE, Ttl, db_timeout, hold_at_least, once_per,
};
pub use self::renewals::Renewals;
pub use self::run::Timing;
pub use self::text::human;
pub use self::trust::{deadline, left, trusted_until};
pub use self::waiting::{
    EVICTION_LOOK, KEEP_BETWEEN_LOOKS, LAST_LOOK, LIFE_OF_A_LOOKOUT, RELEASE_PATIENCE, Wait,
    eager_pause, keep_for, poll_pause, retry_pause,
};
