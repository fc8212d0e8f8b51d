//! How a renewal moves the expiry.

use super::limits::Ttl;

/// How a renewal moves the expiry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extension {
    /// To this long from now, even if that shortens the lease. Heartbeats do this: if the server's clock was set back,
    /// the expiry is far ahead, and the lease must not outlive its holder by more than the ttl.
    To(Ttl),
    /// To this long from now, but never to an earlier time. Without an explicit ttl, a caller must not shorten a lease
    /// that others rely on. For example, a job may call `lease renew` between two heartbeats.
    AtLeast(Ttl),
}

impl Extension {
    /// For a ttl that was given explicitly for this call, or that is a default.
    #[must_use]
    pub const fn of(ttl: Ttl, was_typed: bool) -> Self {
        if was_typed {
            Self::To(ttl)
        } else {
            Self::AtLeast(ttl)
        }
    }

    /// The new expiry, counted from now.
    #[must_use]
    pub const fn ttl(self) -> Ttl {
        match self {
            Self::To(ttl) | Self::AtLeast(ttl) => ttl,
        }
    }

    /// Whether a later expiry stays.
    #[must_use]
    pub const fn keeps_more(self) -> bool {
        match self {
            Self::To(_) => false,
            Self::AtLeast(_) => true,
        }
    }
}
