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
    /// One that has not been raised.
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
        // The lock lets nobody slip between looking at the flag and falling asleep.
        drop(self.lock.lock().unwrap_or_else(PoisonError::into_inner));
        self.woken.notify_all();
    }

    /// Whether it was raised.
    #[must_use]
    pub fn is_raised(&self) -> bool {
        self.raised.load(Ordering::SeqCst)
    }

    /// The flag, for what can only look at one.
    #[must_use]
    pub const fn flag(&self) -> &AtomicBool {
        &self.raised
    }

    /// Sleeps for `pause`, or until it is raised. In slices of a second: the timeout of a condition variable stands still
    /// while the machine is suspended.
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
