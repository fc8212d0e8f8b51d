//! Claiming, with waiting: one loop for `run` and `claim`.

use std::time::Duration;

use crate::cli::Wait;
use crate::clock::BootTime;
use crate::interrupt::Interrupt;
use crate::lease::{Claim, Grant, Holder, Key, Row};
use crate::store::{Applied, Failure, Sent, Store};
use crate::timing::{Ttl, poll_pause};

/// How claiming ended.
#[derive(Debug)]
pub enum Acquired {
    /// The lease is ours; counted from the moment the claim was sent.
    Granted(Sent<Grant>),
    /// Somebody else has it, and there is no time left to wait.
    Held(Row),
    /// Interrupted, with nothing claimed.
    Interrupted,
}

/// What `acquire` tells about while it waits.
#[derive(Debug)]
pub enum Waiting<'a> {
    /// Somebody else has it. Told once for each holder.
    For(&'a Row),
    /// The database failed, and is asked again. Told once for each bout.
    Failed(&'a Failure),
}

/// Claims, again and again if `wait` says so: jittered, and exactly at the holder's expiry.
///
/// # Errors
/// When the database failed and there is no time left, or asking again would change nothing.
pub fn acquire(
    store: &Store,
    key: &Key,
    holder: &Holder,
    ttl: Ttl,
    wait: Option<Wait>,
    interrupt: &Interrupt,
    mut tell: impl FnMut(Waiting<'_>),
) -> Result<Acquired, Failure> {
    let until = match wait {
        None => Some(BootTime::now()),
        Some(Wait::For(limit)) => Some(BootTime::now() + limit),
        Some(Wait::Forever) => None,
    };
    let mut unknown = false;
    let mut told_holder: Option<Option<String>> = None;
    let mut told_failure = false;
    let mut looks = 0;
    loop {
        let claimed = store.claim(key, holder, ttl, store.limit(), Some(interrupt.flag()));
        looks += 1;
        let (outcome, pause) = match claimed {
            Ok(Sent {
                answer: Claim::Granted(grant),
                at,
            }) => {
                if interrupt.is_raised() {
                    return give_back(store, &grant);
                }
                return Ok(Acquired::Granted(Sent { answer: grant, at }));
            }
            Ok(Sent {
                answer: Claim::Held(row),
                at,
            }) => {
                // Whoever holds it, it is not us: that settles an earlier claim of unknown outcome.
                unknown = false;
                told_failure = false;
                if told_holder.as_ref() != Some(&row.holder)
                    && until.is_none_or(|u| !u.has_passed())
                {
                    tell(Waiting::For(&row));
                    told_holder = Some(row.holder.clone());
                    looks = 1;
                }
                let spent = BootTime::now().since(at);
                let left = row.expires_in().saturating_sub(spent);
                (Ok(Acquired::Held(row)), poll_pause(looks, Some(left)))
            }
            Err(failure) => {
                unknown |= failure.applied == Applied::Unknown;
                if interrupt.is_raised() && !unknown {
                    return Ok(Acquired::Interrupted);
                }
                let failure = if unknown { failure.unknown() } else { failure };
                if !failure.fault.is_transient() || interrupt.is_raised() {
                    return Err(failure);
                }
                if !told_failure && until.is_none_or(|u| !u.has_passed()) {
                    tell(Waiting::Failed(&failure));
                    told_failure = true;
                }
                (Err(failure), poll_pause(looks, None))
            }
        };
        if interrupt.is_raised() {
            return if unknown {
                outcome
            } else {
                Ok(Acquired::Interrupted)
            };
        }
        if let Some(until) = until {
            if until.has_passed() {
                return outcome;
            }
            // The last look comes at the end of the wait.
            interrupt.sleep(pause.min(until.remaining()));
        } else {
            interrupt.sleep(pause);
        }
        if interrupt.is_raised() && !unknown {
            return Ok(Acquired::Interrupted);
        }
    }
}

/// Interrupted after COMMIT was sent: the lease is ours, and nobody wants it.
fn give_back(store: &Store, grant: &Grant) -> Result<Acquired, Failure> {
    store.release(&grant.lease, Duration::ZERO, store.limit())?;
    Ok(Acquired::Interrupted)
}
