//! The term that a run holds.

use crate::clock::BootTime;
use crate::lease::Loss;
use crate::supervise::Granted;
use crate::timing::Ttl;

/// The term that is held, as it was last granted or renewed.
#[derive(Clone, Debug)]
pub(super) struct HeldTerm {
    pub(super) granted: Granted,
    /// When the lease expires by this machine's clock, at the latest: counted from when the answer was seen.
    pub(super) stays_until: BootTime,
    /// Whether a later renewal got no answer and may have been applied.
    pub(super) may_last_longer: bool,
}

impl HeldTerm {
    pub(super) fn new(granted: Granted, seen: BootTime, ttl: Ttl) -> Self {
        Self {
            granted,
            stays_until: seen + ttl.get(),
            may_last_longer: false,
        }
    }

    /// Records that a renewal has got no answer until `now`. It certainly reaches the server within a ttl, if at all.
    pub(super) fn doubt(&mut self, now: BootTime, ttl: Ttl) {
        self.may_last_longer = true;
        self.stays_until = now + ttl.get() * 2;
    }

    /// Whether another holder has claimed the key, and only after this term had expired. Both times are the server's,
    /// in the same format.
    pub(super) fn may_be_followed_by(&self, loss: &Loss) -> bool {
        match loss {
            Loss::Taken(row) => row.acquired_at >= self.granted.grant.expires_at,
            Loss::Mismatch { .. }
            | Loss::Expired
            | Loss::Released
            | Loss::NoRow
            | Loss::NoTable(_) => false,
        }
    }
}
