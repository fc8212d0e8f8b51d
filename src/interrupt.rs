//! Ending a wait from another thread.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

use crate::clock::BootTime;

/// Ends a wait from another thread, at once.
#[derive(Debug, Default)]
pub struct Interrupt {
    raised: AtomicBool,
    lock: Mutex<()>,
    woken: Condvar,
}

impl Interrupt {
    /// A new one, not raised.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            raised: AtomicBool::new(false),
            lock: Mutex::new(()),
            woken: Condvar::new(),
        }
    }

    /// Ends the wait.
    pub fn raise(&self) {
        self.raised.store(true, Ordering::SeqCst);
        // Under the lock, so that a waiter cannot miss this between reading the flag and going to sleep.
        drop(self.lock.lock().unwrap_or_else(PoisonError::into_inner));
        self.woken.notify_all();
    }

    /// Whether it has been raised.
    #[must_use]
    pub fn is_raised(&self) -> bool {
        self.raised.load(Ordering::SeqCst)
    }

    /// The flag, for code that can only read a flag.
    #[must_use]
    pub const fn flag(&self) -> &AtomicBool {
        &self.raised
    }

    /// Sleeps for `pause`, or until it is raised. It sleeps in slices of a second, because the timeout of a condition
    /// variable does not advance while the machine is suspended.
    pub fn sleep(&self, pause: Duration) {
        let until = BootTime::now() + pause;
        let mut guard = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
        while !self.is_raised() && !until.has_passed() {
            let slice = until.remaining().min(Duration::from_secs(1));
            guard = self
                .woken
                .wait_timeout(guard, slice)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
    }
}
