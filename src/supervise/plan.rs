//! What a run, or a claim, begins with.

use std::time::Duration;

use crate::job::OnLoss;
use crate::lease::Holder;
use crate::timing::{Extension, Wait};

/// What the lease is claimed for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// For a caller who gets the term: `lease claim`.
    Claim,
    /// For a job: `lease run`.
    Job(JobPlan),
}

/// How a job is kept within its lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JobPlan {
    /// The time between two renewals. A grant that is older when it is seen is renewed before the job starts.
    pub heartbeat: Duration,
    /// The time between TERM and KILL.
    pub grace: Duration,
    /// What a lost lease means for the job.
    pub on_loss: OnLoss,
    /// For how long after the claim the key stays closed, however short the job was.
    pub hold: Duration,
}

/// Everything that is known before the first claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// What the lease is claimed for.
    pub purpose: Purpose,
    /// Who claims.
    pub holder: Holder,
    /// Whether nobody else can know this holder, and so have its lease.
    pub holder_is_fresh: bool,
    /// How far the claim moves the expiry.
    pub extension: Extension,
    /// How long to keep trying while somebody else holds the lease.
    pub wait: Option<Wait>,
    /// The most that one database operation may take, and how long one that fails is tried again.
    pub db_timeout: Duration,
    /// The holder of the run that this process is inside, if that run has the same key: by LEASE_KEY and LEASE_HOLDER.
    pub outer_holder: Option<String>,
}

impl Plan {
    /// Whether the claim waits while somebody else holds the lease.
    #[must_use]
    pub fn waits(&self) -> bool {
        match self.wait {
            Some(Wait::For(limit)) => !limit.is_zero(),
            Some(Wait::Forever) => true,
            None => false,
        }
    }
}
