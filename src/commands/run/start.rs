//! From the grant to the running job.

use std::ffi::OsStr;
use std::io;

use super::{Ending, Guard};
use crate::cli::Run;
use crate::clock::BootTime;
use crate::exit::Exit;
use crate::job::OnLoss;
use crate::lease::{Grant, Lease, Renewal};
use crate::output;
use crate::process::{self, Job, Launch, NoProgram, SpawnError, Terminal};
use crate::store::Sent;
use crate::supervise::Word;
use crate::timing::{self, Extension};
use crate::watchdog::Watchdog;

impl Guard {
    /// A claim can take long, behind a locked row for example. The job gets a lease that still has its time; where it can't,
    /// the answer is how to end, after giving the lease back unless it is lost.
    pub(super) fn enough_time(
        &self,
        grant: &Grant,
        at: BootTime,
    ) -> Result<(Grant, BootTime), Ending> {
        if !self.timing.next_beat(at).has_passed() {
            return Ok((grant.clone(), at));
        }
        let key = grant.lease.key.as_str();
        match self.store.renew(
            &grant.lease,
            Extension::To(self.timing.ttl()),
            self.timing.db_timeout(),
        ) {
            Ok(Sent {
                answer: Renewal::Renewed(renewed),
                at,
            }) if !self.timing.stop_at(self.timing.deadline(at)).has_passed() => Ok((renewed, at)),
            Ok(Sent {
                answer: Renewal::Lost(loss),
                ..
            }) => {
                self.speaker.error(format!(
                    "{key} is lost before the job was started: {}",
                    output::loss(&loss)
                ));
                Err(Ending::Exit(Exit::Lost))
            }
            Ok(Sent {
                answer: Renewal::Renewed(_),
                ..
            }) => {
                self.speaker.error(format!(
                    "the database is too slow for --ttl {}: {key} is nearly over when it is granted, so the job is not started",
                    timing::human(self.timing.ttl().get())
                ));
                Err(Ending::Exit(Exit::Unavailable))
            }
            Err(failure) => {
                self.speaker.error(format!(
                    "cannot renew {key}, so the job is not started: {failure}"
                ));
                Err(Ending::Exit(Exit::Unavailable))
            }
        }
    }

    /// Starts the job under the watchdog's eyes. One that was killed while the claim waited is replaced.
    pub(super) fn start(
        &mut self,
        args: &Run,
        lease: &Lease,
        deadline: BootTime,
        terminal: Option<&mut Terminal>,
    ) -> Result<Job, SpawnError> {
        if self.on_loss == OnLoss::Stop {
            let told = self
                .watchdog
                .as_mut()
                .map(|w| w.tell(Word::Deadline(deadline)));
            if self.children.watchdog.is_none() || !matches!(told, Some(Ok(()))) {
                self.replace_watchdog(None, Word::Deadline(deadline))
                    .map_err(SpawnError::NotAnnounced)?;
            }
        }
        let fence = lease.fence.to_string();
        let environment = [
            ("FENCE", OsStr::new(&fence)),
            ("LEASE_KEY", OsStr::new(lease.key.as_str())),
            ("LEASE_HOLDER", OsStr::new(lease.holder.as_str())),
        ];
        process::spawn(Launch {
            command: &args.command,
            environment: &environment,
            announce: self.watchdog.as_ref().map(Watchdog::announcer),
            // With --on-loss continue too: that is about a job that runs.
            not_after: self.timing.stop_at(deadline),
            terminal,
        })
    }

    pub(super) fn replace_watchdog(&mut self, job: Option<&Job>, word: Word) -> io::Result<()> {
        if let Some(mut old) = self.watchdog.take()
            && self.children.watchdog.is_none()
        {
            old.was_reaped();
        }
        // One that could not be told everything ends with this function, and with it its number.
        self.children.watchdog = None;
        let grace = self.timing.grace();
        let mut watchdog = match job {
            Some(job) => Watchdog::start_over(grace, job.group(), &self.last_line)?,
            None => Watchdog::start(grace, &self.last_line)?,
        };
        watchdog.tell(word)?;
        self.children.watchdog = Some(watchdog.pid());
        self.watchdog = Some(watchdog);
        Ok(())
    }
}

/// How a shell reports it, and a message.
pub(super) fn cannot_start(command: &OsStr, key: &str, error: SpawnError) -> (Ending, String) {
    let command = command.to_string_lossy();
    match error {
        SpawnError::NoProgram(NoProgram::NotFound) => (
            Ending::Exit(Exit::NotFound),
            if command.is_empty() {
                "cannot run the command: it is empty".to_owned()
            } else if command.contains(' ') {
                format!(
                    "cannot run {command}: command not found (the command and each argument are words of their own; for a shell's syntax use sh -c '...')"
                )
            } else if command.contains('=') {
                format!(
                    "cannot run {command}: command not found (for a variable write env {command} and the command)"
                )
            } else {
                format!("cannot run {command}: command not found")
            },
        ),
        SpawnError::NoProgram(NoProgram::NoInterpreter) => (
            Ending::Exit(Exit::NotFound),
            format!(
                "cannot run {command}: the interpreter that its first line names does not exist (has it Windows line ends?)"
            ),
        ),
        SpawnError::NoProgram(NoProgram::CannotExecute(error)) => (
            Ending::Exit(Exit::CannotExecute),
            format!("cannot run {command}: {}", output::io_error(&error)),
        ),
        SpawnError::NotAnnounced(error) => (
            Ending::Exit(Exit::Failed),
            format!(
                "cannot run {command}: there is no watchdog to guard it: {}",
                output::io_error(&error)
            ),
        ),
        SpawnError::TooLate => (
            Ending::Exit(Exit::Lost),
            format!(
                "{key} had expired or almost expired when the job was about to start; the job was not started (was lease stopped, or is the machine overloaded?)"
            ),
        ),
        SpawnError::Failed(error) => (
            Ending::Exit(Exit::Failed),
            format!("cannot run {command}: {}", output::io_error(&error)),
        ),
    }
}
