//! A connection that stays open after an attempt: for a moment after a claim, for the release of a job that ends at once;
//! and, if a waiter asks for it (`--eager`), between its looks.
//!
//! A job of a few milliseconds would otherwise pay for a second connection, and that costs more than everything else in
//! such a run. How long the job takes is unknown beforehand. So the connection is kept for as long as it took to make it:
//! it then holds a place at the server for at most twice the time that it would have held it otherwise, and whoever waits
//! for that place waits no longer than that. This is the rule for renting or buying skis (Karlin, Manasse, Rudolph and
//! Sleator, "Competitive snoopy caching", 1988).

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use postgres::Client;

use crate::clock::BootTime;
use crate::timing;

/// An open connection.
pub(super) struct Open {
    pub(super) client: Client,
    /// How long it took to make it.
    pub(super) took: Duration,
    /// When it ends by itself, or a little later.
    pub(super) ends: BootTime,
}

/// What connection an attempt uses, and what becomes of it.
#[derive(Clone)]
pub(super) enum Connection {
    /// One of its own, which is closed at the end.
    Own,
    /// One of its own, which is kept for a moment if the attempt has written.
    Keep(Kept),
    /// The one that was kept, if there is one; otherwise one of its own. It is closed at the end.
    Kept(Kept),
    /// The one that was kept, if there is one; otherwise one of its own. It is kept for the next look, and only for a
    /// moment if the attempt has written.
    Waiting(Kept),
}

impl Connection {
    /// Where the connection of an earlier attempt is found.
    pub(super) const fn kept(&self) -> Option<&Kept> {
        match self {
            Self::Own | Self::Keep(_) => None,
            Self::Kept(kept) | Self::Waiting(kept) => Some(kept),
        }
    }

    /// Where the connection is left that took `took` to make, and for how long.
    pub(super) fn keeps(&self, has_written: bool, took: Duration) -> Option<(&Kept, Duration)> {
        match (self, has_written) {
            (Self::Own | Self::Kept(_), _) | (Self::Keep(_), false) => None,
            (Self::Keep(kept) | Self::Waiting(kept), true) => Some((kept, timing::keep_for(took))),
            (Self::Waiting(kept), false) => Some((kept, timing::KEEP_BETWEEN_LOOKS)),
        }
    }

    /// How long the connection lasts beyond the time limit of the attempt that makes it.
    pub(super) const fn lasts_longer_by(&self) -> Duration {
        match self {
            Self::Own | Self::Keep(_) | Self::Kept(_) => Duration::ZERO,
            Self::Waiting(_) => timing::LIFE_OF_A_LOOKOUT,
        }
    }
}

/// An attempt that waits for a connection. Given none, it makes one. It returns the attempt that has taken the connection
/// after it, if there is one.
pub(super) struct Talk(pub(super) Box<dyn FnOnce(Option<Open>) -> Option<Next> + Send>);

/// An attempt, and the connection that it has taken.
pub(super) struct Next {
    pub(super) talk: Talk,
    pub(super) open: Open,
}

impl Talk {
    /// Carries it out, and all that take its connection. This is a loop, because a waiter looks thousands of times.
    pub(super) fn carry_out(self) {
        let mut next = (self.0)(None);
        while let Some(Next { talk, open }) = next {
            next = (talk.0)(Some(open));
        }
    }
}

/// Where a thread offers its connection to the next operation.
#[derive(Clone, Default)]
pub(super) struct Kept(Arc<Mutex<Option<Offer>>>);

struct Offer {
    talks: Sender<Talk>,
    is_settled: Arc<AtomicBool>,
}

/// The side of the thread that has the connection.
pub(super) struct Offered {
    talks: Receiver<Talk>,
    is_settled: Arc<AtomicBool>,
}

impl Kept {
    /// Offers a connection from now on.
    pub(super) fn offer(&self) -> Offered {
        let (sender, talks) = mpsc::channel();
        let is_settled = Arc::new(AtomicBool::new(false));
        let offer = Offer {
            talks: sender,
            is_settled: Arc::clone(&is_settled),
        };
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(offer);
        Offered { talks, is_settled }
    }

    /// Gives `talk` to the thread that offers a connection. Returns it if there is none.
    pub(super) fn hand_over(&self, talk: Talk) -> Result<(), Talk> {
        let offer = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        match offer {
            Some(offer) if !offer.is_settled.swap(true, Ordering::SeqCst) => {
                offer.talks.send(talk).map_err(|unsent| unsent.0)
            }
            Some(_) | None => Err(talk),
        }
    }
}

impl Offered {
    /// Waits for an attempt that takes the connection. Returns `None` if none came within `limit`, and then none will.
    pub(super) fn wait(self, limit: Duration) -> Option<Talk> {
        if let Ok(talk) = self.talks.recv_timeout(limit) {
            return Some(talk);
        }
        if self.is_settled.swap(true, Ordering::SeqCst) {
            // Somebody has taken the offer at this moment, and sends the attempt.
            return self.talks.recv().ok();
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An attempt that notes whether it was carried out.
    fn talk(carried_out: &Arc<AtomicBool>) -> Talk {
        let carried_out = Arc::clone(carried_out);
        Talk(Box::new(move |_| {
            carried_out.store(true, Ordering::SeqCst);
            None
        }))
    }

    #[test]
    fn an_offer_is_taken_once() {
        let (kept, done) = (Kept::default(), Arc::new(AtomicBool::new(false)));
        let offered = kept.offer();
        assert!(kept.hand_over(talk(&done)).is_ok());
        assert!(kept.hand_over(talk(&done)).is_err());
        offered
            .wait(Duration::ZERO)
            .expect("the attempt")
            .carry_out();
        assert!(done.load(Ordering::SeqCst));
    }

    #[test]
    fn an_offer_that_has_ended_is_not_taken_and_does_not_end_a_newer_one() {
        let (kept, done) = (Kept::default(), Arc::new(AtomicBool::new(false)));
        assert!(kept.hand_over(talk(&done)).is_err());
        let ended = kept.offer();
        assert!(ended.wait(Duration::ZERO).is_none());
        assert!(kept.hand_over(talk(&done)).is_err());
        let (older, newer) = (kept.offer(), kept.offer());
        assert!(older.wait(Duration::ZERO).is_none());
        assert!(kept.hand_over(talk(&done)).is_ok());
        assert!(newer.wait(Duration::ZERO).is_some());
    }

    #[test]
    fn an_attempt_is_carried_out_by_exactly_one_side_however_the_two_meet() {
        for _ in 0..2000 {
            let (kept, done) = (Kept::default(), Arc::new(AtomicBool::new(false)));
            let offered = kept.offer();
            let (took, given_back) = std::thread::scope(|scope| {
                let waits = scope.spawn(|| offered.wait(Duration::from_micros(20)).is_some());
                let given_back = kept.hand_over(talk(&done)).is_err();
                (waits.join().expect("no panic"), given_back)
            });
            assert_ne!(took, given_back);
        }
    }
}
