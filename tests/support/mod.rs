//! What the tests stand on: throwaway servers, the built binary under observation, and ways to wait for facts.
//!
//! A test binary includes it with `#[path = "../support/mod.rs"] mod support;`.
//!
//! Everything that a test process starts or writes lies below one directory ([`keeper::root`]) and is
//! removed when that process ends, in whatever way it ends.

// Each test binary includes the whole module and uses a part of it.
#![allow(dead_code, unused_imports)]
// `pub` says what a test may use; that a test binary exports nothing is beside the point.
#![allow(unreachable_pub)]

pub mod builder;
pub mod clock;
pub mod family;
pub mod forward;
pub mod frozen;
pub mod job;
pub mod keeper;
pub mod mounts;
pub mod netns;
pub mod pooler;
pub mod ports;
pub mod postmaster;
pub mod proc;
pub mod process;
pub mod programs;
pub mod protocol;
pub mod proxy;
pub mod pty;
pub mod rows;
pub mod running;
pub mod server;
pub mod standby;
pub mod stream;
pub mod table;
pub mod tls;
pub mod tracer;
pub mod wait;

pub use clock::Clock;
pub use mounts::Disk;
pub use netns::Network;
pub use pooler::{Mode, Pooler};
pub use process::Lease;
pub use proxy::{AtCommit, Proxy};
pub use pty::Terminal;
pub use rows::rows;
pub use running::{Output, Running};
pub use server::{Server, shared};
pub use wait::{LIMIT, stays, until, until_within};

use std::io::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard};

/// A number that this process hands out once.
pub fn serial() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// A key that no other test uses. It begins with the test's name, so that a row or a process tells whose it is.
pub fn key() -> String {
    let thread = std::thread::current();
    let test = thread.name().unwrap_or("test");
    let test: String = test
        .rsplit("::")
        .next()
        .unwrap_or(test)
        .chars()
        .take(60)
        .collect();
    format!("{test}-{}-{}", std::process::id(), serial())
}

/// Says by name that the running test was skipped and what it would have needed.
///
/// It writes to the real standard error: what `eprintln!` prints is shown for failing tests only, and a test
/// that did not run must not look like one that passed.
pub fn skip(needs: &str) {
    let thread = std::thread::current();
    let test = thread.name().unwrap_or("a test");
    let _ = writeln!(std::io::stderr(), "skipped: {test} (needs {needs})");
}

/// Locks also after another test has panicked with the lock in its hand.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex
        .lock()
        .unwrap_or_else(|poisoned| poisoned.into_inner())
}
