//! The thread that renews and reports. It decides nothing. What a heartbeat means for the job is decided in
//! `supervise`.
//!
//! It connects for each renewal and keeps no connection in between. It may hang in the database for as long as one
//! operation may take. The deadline does not depend on it: the main thread and the watchdog keep that.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use crate::clock::BootTime;
use crate::interrupt::Interrupt;
use crate::lease::{Loss, Renewal, Term};
use crate::store::{Failure, Store};
use crate::supervise::Granted;
use crate::timing::{Extension, Renewals, Timing};

/// What the thread reports.
#[derive(Debug)]
pub enum Beat {
    /// Renewed.
    Renewed(Granted),
    /// The renewal failed. The thread retries.
    Failed(Failure),
    /// The term is over. The thread has ended.
    Lost(Loss),
}

/// The running thread.
#[derive(Debug)]
pub struct Heartbeat {
    stop: Arc<Interrupt>,
    /// Whether a renewal is under way whose result is not reported yet.
    renewing: Arc<AtomicBool>,
}

impl Heartbeat {
    /// Starts it. The term was claimed or renewed by a request that was sent at `sent` and took `took`.
    ///
    /// # Errors
    /// The thread cannot be created.
    pub fn start(
        store: Store,
        term: Term,
        timing: Timing,
        (sent, took): (BootTime, Duration),
        tell: impl Fn(Beat) + Send + 'static,
    ) -> std::io::Result<Self> {
        let stop = Arc::new(Interrupt::new());
        let stopped = Arc::clone(&stop);
        let renewing = Arc::new(AtomicBool::new(false));
        let is_renewing = Arc::clone(&renewing);
        thread::Builder::new()
            .name("lease-heartbeat".to_owned())
            .spawn(move || {
                beat(
                    &store,
                    &term,
                    timing,
                    (sent, took),
                    &stopped,
                    &is_renewing,
                    &tell,
                );
            })?;
        Ok(Self { stop, renewing })
    }

    /// Stops the thread: no further renewal is sent. A renewal that is already on its way either finds the term
    /// released, or extends it before the release. Returns whether there is one.
    #[must_use]
    pub fn stop(&self) -> bool {
        self.stop.raise();
        self.renewing.load(Ordering::SeqCst)
    }
}

fn beat(
    store: &Store,
    term: &Term,
    timing: Timing,
    (sent, took): (BootTime, Duration),
    stop: &Interrupt,
    renewing: &AtomicBool,
    tell: &impl Fn(Beat),
) {
    let mut renewals = Renewals::new(timing, took);
    let mut next = renewals.next_beat(sent);
    let mut stop_at = timing.stop_at(timing.deadline(sent));
    loop {
        renewing.store(false, Ordering::SeqCst);
        stop.sleep(next.remaining());
        // Set before the other flag is read: the thread that raises the other flag reads this one afterwards.
        renewing.store(true, Ordering::SeqCst);
        if stop.is_raised() {
            renewing.store(false, Ordering::SeqCst);
            return;
        }
        let began = BootTime::now();
        let limit = renewals.limit(began, stop_at);
        let answer = store.renew(term, Extension::To(timing.ttl()), limit);
        match answer {
            Ok(renewed) => match renewed.answer {
                Renewal::Renewed(grant) => {
                    let (sent, took) = (renewed.at, renewed.took);
                    let deadline = timing.deadline(sent);
                    renewals.succeeded(took);
                    next = renewals.next_beat(sent);
                    stop_at = timing.stop_at(deadline);
                    tell(Beat::Renewed(Granted {
                        grant,
                        sent,
                        took,
                        deadline,
                    }));
                }
                Renewal::Lost(loss) => {
                    tell(Beat::Lost(loss));
                    return;
                }
            },
            Err(failure) => {
                next = BootTime::now() + renewals.failed(BootTime::now().since(began), limit);
                tell(Beat::Failed(failure));
            }
        }
    }
}
