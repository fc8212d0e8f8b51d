//! What the loop works with.

use std::io;
use std::sync::mpsc::{Receiver, Sender};

use super::database::{Claimant, Database};
use super::input::Input;
use super::job_control::JobControl;
use crate::clock::BootTime;
use crate::lease::Term;
use crate::output::StderrWriter;
use crate::process::Children;
use crate::supervise::{Plan, Report, Supervisor};

/// One run, or one claim, from its first claim to its end.
pub struct EventLoop {
    pub(super) plan: Plan,
    pub(super) supervisor: Supervisor,
    pub(super) claimant: Claimant,
    pub(super) database: Database,
    pub(super) stderr: StderrWriter,
    pub(super) sender: Sender<Input>,
    pub(super) inputs: Receiver<Input>,
    pub(super) children: Children,
    pub(super) job: Option<JobControl>,
    /// The term that was last held.
    pub(super) term: Option<Term>,
    pub(super) held_back: Option<HeldBack>,
}

/// Reports that wait for who has evicted the holder: the first of them tells.
///
/// By then the job is being stopped, or it has ended. Nothing but these reports waits.
pub(super) struct HeldBack {
    pub(super) until: BootTime,
    pub(super) reports: Vec<Report>,
}

impl EventLoop {
    /// Prepares it; nothing is asked yet. `job` is what a run needs besides, and `inputs` is where the signals go.
    ///
    /// # Errors
    /// When no thread can be made.
    pub fn new(
        plan: Plan,
        claimant: Claimant,
        job: Option<JobControl>,
        stderr: StderrWriter,
        (sender, inputs): (Sender<Input>, Receiver<Input>),
    ) -> io::Result<Self> {
        Ok(Self {
            supervisor: Supervisor::new(plan.clone(), BootTime::now()),
            database: Database::start(claimant.clone(), sender.clone())?,
            children: Children {
                job: None,
                watchdog: job.as_ref().and_then(JobControl::watchdog_pid),
            },
            plan,
            claimant,
            stderr,
            sender,
            inputs,
            job,
            term: None,
            held_back: None,
        })
    }
}
