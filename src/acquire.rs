//! Claiming, with waiting and with signals: one loop for `run` and `claim`.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender};
use std::thread;
use std::time::Duration;

use crate::clock::BootTime;
use crate::fault::Fault;
use crate::heartbeat::Beat;
use crate::interrupt::Interrupt;
use crate::job::Signo;
use crate::lease::{Claim, Grant, Holder, Key, Row};
use crate::process::{self, Change, Children};
use crate::signals::Caught;
use crate::store::{Applied, Failure, Sent, Store};
use crate::timing::{Extension, Wait, poll_pause};

/// What the main thread of `run` and `claim` waits for.
#[derive(Debug)]
pub enum Input {
    /// A signal, or news of a child.
    Caught(Caught),
    /// Claiming takes longer.
    Waiting(Waiting),
    /// Claiming has ended.
    Acquired(Result<Acquired, Failure>),
    /// News of the heartbeat.
    Beat(Beat),
}

impl From<Caught> for Input {
    fn from(caught: Caught) -> Self {
        Self::Caught(caught)
    }
}

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

/// Why claiming takes longer.
#[derive(Debug)]
pub enum Waiting {
    /// Somebody else has it. Told once for each holder.
    For(Row),
    /// The database failed, and is asked again. Told once for each bout.
    Failed(Failure),
}

/// A claim to be made.
#[derive(Clone)]
pub struct Wanted {
    /// Where.
    pub store: Store,
    /// On what.
    pub key: Key,
    /// For whom.
    pub holder: Holder,
    /// Whether nobody else can know this holder, and so have its lease.
    pub is_fresh: bool,
    /// For how long.
    pub extension: Extension,
    /// How long to keep trying.
    pub wait: Option<Wait>,
}

/// Claims on a thread of its own, while this one, which must be the main thread, minds signals: one that ends processes
/// ends the wait, TSTP suspends it.
///
/// Answers how it ended, and the signal that ended the wait, if one did.
///
/// # Errors
/// When no thread can be made.
pub fn acquire(
    wanted: Wanted,
    inputs: &Receiver<Input>,
    sender: Sender<Input>,
    children: &mut Children,
    mut tell: impl FnMut(Waiting),
) -> io::Result<(Result<Acquired, Failure>, Option<Signo>)> {
    let interrupt = Arc::new(Interrupt::new());
    let interrupted = Arc::clone(&interrupt);
    let key = wanted.key.as_str().to_owned();
    let claiming = thread::Builder::new()
        .name("lease-claim".to_owned())
        .spawn(move || {
            let outcome = keep_claiming(&wanted, &interrupted, &sender);
            // Nobody listens only when the process is on its way out.
            let _ = sender.send(Input::Acquired(outcome));
        })?;
    let mut ended_by = None;
    loop {
        match inputs.recv() {
            Ok(Input::Caught(caught)) => match caught {
                Caught::Child => {
                    while let Some(change) = process::reap(children) {
                        match change {
                            // The run starts another one when there is a job to watch.
                            Change::WatchdogDied => {}
                            Change::JobExited(_) | Change::JobStopped(_) | Change::JobContinued => {
                            }
                        }
                    }
                }
                Caught::Signal(signal) if caught.ends_a_wait() => {
                    ended_by.get_or_insert(signal);
                    interrupt.raise();
                }
                Caught::Signal(signal) if caught.suspends() => {
                    // Where nobody could continue it, it goes on.
                    let _ = process::stop_own_group(signal, false);
                }
                Caught::Signal(_) => {}
            },
            Ok(Input::Waiting(waiting)) => tell(waiting),
            Ok(Input::Acquired(outcome)) => return Ok((outcome, ended_by)),
            Ok(Input::Beat(_)) => {}
            Err(_) => {
                let gone = claiming.is_finished();
                let message = format!(
                    "claiming {key} ended without an answer: a bug in lease (finished: {gone})"
                );
                return Ok((Err(Failure::new(Fault::Refused, message)), ended_by));
            }
        }
    }
}

/// How long the last look of a wait may take.
const LAST_LOOK: Duration = Duration::from_secs(1);

/// Claims, again and again if it is to wait: jittered, and exactly at the holder's expiry.
fn keep_claiming(
    wanted: &Wanted,
    interrupt: &Interrupt,
    sender: &Sender<Input>,
) -> Result<Acquired, Failure> {
    let Wanted {
        store,
        key,
        holder,
        is_fresh,
        extension,
        wait,
    } = wanted;
    let until = match wait {
        None => Some(BootTime::now()),
        Some(Wait::For(limit)) => Some(BootTime::now() + *limit),
        Some(Wait::Forever) => None,
    };
    let time_left = || until.is_none_or(|u| !u.has_passed());
    // A claim that was sent has to get its answer: a second beyond the wait is left to the last one.
    let limit = || match wait {
        Some(Wait::For(wait)) if !wait.is_zero() => {
            let left = until.map_or(Duration::MAX, BootTime::remaining);
            store.limit().min(left.max(LAST_LOOK))
        }
        Some(Wait::For(_) | Wait::Forever) | None => store.limit(),
    };
    let tell = |waiting| drop(sender.send(Input::Waiting(waiting)));
    // Whether an earlier claim may have been applied without an answer. Asking again as the same holder settles it.
    let mut unknown = false;
    let mut told_holder: Option<Option<String>> = None;
    let mut told_failure = false;
    let mut looks = 0;
    loop {
        let claimed = store.claim(key, holder, *extension, limit(), Some(interrupt.flag()));
        looks += 1;
        let (outcome, pause) = match claimed {
            Ok(Sent {
                answer: Claim::Granted(grant),
                at,
            }) => {
                if interrupt.is_raised() {
                    // COMMIT was sent: the lease is ours, and nobody wants it any more.
                    if is_nobody_elses(*is_fresh, &grant) {
                        store.release(&grant.lease, Duration::ZERO, store.limit())?;
                    }
                    return Ok(Acquired::Interrupted);
                }
                return Ok(Acquired::Granted(Sent { answer: grant, at }));
            }
            Ok(Sent {
                answer: Claim::Held(row),
                at,
            }) => {
                unknown = false;
                told_failure = false;
                if told_holder.as_ref() != Some(&row.holder) && time_left() {
                    tell(Waiting::For(row.clone()));
                    told_holder = Some(row.holder.clone());
                    looks = 1;
                }
                let left = row.expires_in().saturating_sub(BootTime::now().since(at));
                (Ok(Acquired::Held(row)), poll_pause(looks, Some(left)))
            }
            Err(failure) => {
                unknown |= failure.applied == Applied::Unknown;
                let failure = if unknown { failure.unknown() } else { failure };
                if !failure.fault.is_transient() {
                    return Err(failure);
                }
                if !told_failure && time_left() && !interrupt.is_raised() {
                    tell(Waiting::Failed(failure.clone()));
                    told_failure = true;
                }
                (Err(failure), poll_pause(looks, None))
            }
        };
        if !interrupt.is_raised() && time_left() {
            // The last look comes at the end of the wait.
            interrupt.sleep(until.map_or(pause, |u| pause.min(u.remaining())));
            if !interrupt.is_raised() {
                continue;
            }
        }
        return if interrupt.is_raised() && !unknown {
            Ok(Acquired::Interrupted)
        } else {
            outcome
        };
    }
}

/// Whether a grant that can't be used may be given back unasked. A holder that was named may have had the lease before, and
/// a job may be running under it.
#[must_use]
pub const fn is_nobody_elses(holder_is_fresh: bool, grant: &Grant) -> bool {
    holder_is_fresh || grant.is_new
}
