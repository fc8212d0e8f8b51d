//! The input of a run or a claim.

use std::time::Duration;

use crate::job::OnLoss;
use crate::lease::Holder;
use crate::timing::{Extension, Wait};

/// The purpose of the claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// `lease claim`: the caller gets the term.
    Claim,
    /// `lease run`: for a job.
    Job(JobPlan),
}

/// How a job is guarded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JobPlan {
    /// The time between two renewals. A grant that is older than this when it arrives is renewed before the job starts.
    pub heartbeat: Duration,
    /// The time between TERM and KILL.
    pub grace: Duration,
    /// What happens to the job when its lease is lost.
    pub on_loss: OnLoss,
    /// How long after the claim the key stays closed, even if the job ends earlier.
    pub hold: Duration,
}

/// Everything that is known before the first claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// The purpose of the claim.
    pub purpose: Purpose,
    /// The holder that claims.
    pub holder: Holder,
    /// Whether the holder was generated here, so that no other process can have a lease under its name.
    pub holder_is_fresh: bool,
    /// How the claim sets the expiry.
    pub extension: Extension,
    /// How long to keep trying while another holder has the lease.
    pub wait: Option<Wait>,
    /// Whether it keeps a connection meanwhile, and looks many times a second.
    pub eager: bool,
    /// The time limit of one database operation, and how long a failing one is retried.
    pub db_timeout: Duration,
    /// The holder of the run that this process is part of, if that run has the same key (LEASE_KEY and LEASE_HOLDER).
    pub outer_holder: Option<String>,
}

impl Plan {
    /// Whether the claim waits while another holder has the lease.
    #[must_use]
    pub fn waits(&self) -> bool {
        match self.wait {
            Some(Wait::For(limit)) => !limit.is_zero(),
            Some(Wait::Forever) => true,
            None => false,
        }
    }
}
