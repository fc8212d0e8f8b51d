//! What all who take part know together, and what must hold of it at every moment.

use std::collections::{BTreeMap, HashMap};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, Ordering};

use crate::support::{LIMIT, lock, until_within};

/// A moment, as far as fences tell it: whoever asks from now on must be handed a larger fence than `granted`, and whoever
/// offers a smaller one than `accepted` must be refused.
///
/// Two requests that overlap in time have no order. So a moment is taken before a request is sent, and what was
/// answered by then has come first.
#[derive(Clone, Copy)]
pub(super) struct Moment {
    granted: i64,
    accepted: i64,
}

#[derive(Default)]
pub(super) struct History {
    granted: AtomicI64,
    accepted: AtomicI64,
    /// Who was handed each fence.
    holders: Mutex<HashMap<i64, String>>,
    counts: Mutex<BTreeMap<&'static str, u32>>,
    rounds: AtomicU32,
    over: AtomicBool,
}

impl History {
    pub(super) fn now(&self) -> Moment {
        Moment {
            granted: self.granted.load(Ordering::SeqCst),
            accepted: self.accepted.load(Ordering::SeqCst),
        }
    }

    /// A lease was granted to a holder who asked after `asked`.
    pub(super) fn granted(&self, asked: Moment, holder: &str, fence: i64) {
        assert!(
            fence > asked.granted,
            "{holder} was handed {fence}, and {} had been handed out before it asked",
            asked.granted
        );
        let other = lock(&self.holders).insert(fence, holder.to_owned());
        assert_eq!(other, None, "{holder} was handed the same fence: {fence}");
        self.granted.fetch_max(fence, Ordering::SeqCst);
        self.note("terms");
    }

    /// The resource has accepted a write that was sent after `sent`.
    pub(super) fn accepted(&self, sent: Moment, fence: i64) {
        assert!(
            fence >= sent.accepted,
            "{fence} was accepted, and {} had been before it was sent",
            sent.accepted
        );
        self.accepted.fetch_max(fence, Ordering::SeqCst);
        self.note("writes");
    }

    /// The largest fence that was handed out.
    pub(super) fn newest_term(&self) -> i64 {
        self.now().granted
    }

    /// The largest fence that the resource is known to have accepted.
    pub(super) fn newest_write(&self) -> i64 {
        self.now().accepted
    }

    pub(super) fn note(&self, what: &'static str) {
        *lock(&self.counts).entry(what).or_default() += 1;
    }

    pub(super) fn count(&self, what: &str) -> u32 {
        lock(&self.counts).get(what).copied().unwrap_or(0)
    }

    pub(super) fn counts(&self) -> String {
        format!("{:?}", lock(&self.counts))
    }

    pub(super) fn rounds(&self) -> u32 {
        self.rounds.load(Ordering::SeqCst)
    }

    /// Takes turns until it is ended. A panic ends it, so that the others do not wait for a client that has failed.
    pub(super) fn rounds_of(&self, mut turn: impl FnMut()) {
        let _ends = Ends(self);
        while !self.is_over() {
            turn();
            self.rounds.fetch_add(1, Ordering::SeqCst);
        }
    }

    pub(super) fn is_over(&self) -> bool {
        self.over.load(Ordering::SeqCst)
    }

    /// Waits for a fact that the turns bring about. The wait ends if a turn has failed.
    pub(super) fn await_or_fail(&self, what: &str, mut fact: impl FnMut() -> bool) {
        until_within(what, LIMIT * 4, || {
            assert!(!self.is_over(), "somebody has failed, see above");
            fact()
        });
    }

    /// Ends everybody's turns when it is dropped.
    pub(super) fn until_dropped(&self) -> Ends<'_> {
        Ends(self)
    }
}

pub(super) struct Ends<'a>(&'a History);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.over.store(true, Ordering::SeqCst);
    }
}
