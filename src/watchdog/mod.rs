//! The dead man's switch: a small process that stops the job when `lease` no longer can.
//!
//! It is forked before there is a thread or a connection, and then only reads from a pipe. When the pipe closes without
//! a goodbye (`lease` was killed, crashed) it stops the job at once; when a deadline passes without a later one (`lease`
//! hangs or is stopped, or can't reach the database) it stops the job in time to be dead by then. TERM, CONT, grace,
//! KILL, to the job's process group.
//!
//! Its own session keeps terminals and whoever signals `lease`'s group away from it; it ignores every signal that can be
//! ignored. It holds no descriptor but its end of the pipe, a timer, a pidfd and stderr, so that no pipeline waits for it.
//! Its name is not "lease...", because `pkill -9 lease` is to kill one of the two only.
//!
//! What `lease` tells it is in `wire.rs`; what it does is in `switch.rs`.
#![allow(unsafe_code)] // fork(2), and system calls between a fork and an exit; each use says why it is sound.

mod switch;
mod system;
mod wire;

use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::time::Duration;

use libc::pid_t;
use nix::fcntl::OFlag;
use nix::unistd::pipe2;

use crate::process::{Announce, Group};
use crate::supervise::Word;
use wire::Message;

/// A watchdog at work. Dropping it ends it without harm to the job.
#[derive(Debug)]
pub struct Watchdog {
    pid: pid_t,
    /// The write end of the pipe. Close-on-exec, so that the job can't keep it open, and never blocking: a watchdog that
    /// was stopped must not stop `lease` as well.
    pipe: std::fs::File,
    /// Whether its end was seen, and so its number may be somebody else's.
    reaped: bool,
}

impl Watchdog {
    /// Forks a watchdog that knows no job yet. `grace` is the time between its TERM and its KILL, `line` what it
    /// writes to stderr when it had to stop the job.
    ///
    /// # Errors
    /// When there are no descriptors or processes to be had.
    pub fn start(grace: Duration, line: &str) -> io::Result<Self> {
        Self::fork(grace, None, line)
    }

    /// Forks a watchdog for a job that runs already: a second one, after the first one was killed. It inherits the pidfd of
    /// the job's first process, and so knows the group also if that one is reaped by now and others are left.
    ///
    /// It inherits `word` too. Told it afterwards, it would not know the deadline of a job that runs if `lease` were stopped
    /// between the two.
    ///
    /// Safe in a process with threads: the child touches no lock and no heap.
    ///
    /// # Errors
    /// When there are no descriptors or processes to be had.
    pub fn start_over(grace: Duration, job: &Group, word: Word, line: &str) -> io::Result<Self> {
        Self::fork(grace, Some((job, word.into())), line)
    }

    fn fork(grace: Duration, job: Option<(&Group, Message)>, line: &str) -> io::Result<Self> {
        let (read, write) = pipe2(OFlag::O_CLOEXEC | OFlag::O_NONBLOCK)?;
        let pid = system::fork_into(&read, grace, job, line)?;
        Ok(Self {
            pid,
            pipe: write.into(),
            reaped: false,
        })
    }

    /// Its process id, for whoever waits for children.
    #[must_use]
    pub const fn pid(&self) -> pid_t {
        self.pid
    }

    /// For [`crate::process::Launch`]: has the job's own child tell its group, so that there is no moment in which the job
    /// runs and the watchdog does not know it. Not even if `lease` dies in between: the child holds the pipe open until
    /// its message is in it.
    #[must_use]
    pub fn announcer(&self) -> Announce {
        let pipe = self.pipe.as_raw_fd();
        Box::new(move |group| system::write_message(pipe, Message::Group(group)))
    }

    /// Tells it about time. Never blocks.
    ///
    /// # Errors
    /// `EPIPE` if it is dead, `EAGAIN` if it has not read for so long that the pipe is full: it is of no use then.
    pub fn tell(&mut self, word: Word) -> io::Result<()> {
        self.send(word.into())
    }

    fn send(&mut self, message: Message) -> io::Result<()> {
        // One write of less than PIPE_BUF bytes is all or nothing (pipe(7)).
        self.pipe.write_all(&message.encode())
    }

    /// Its end was seen by whoever waits for children.
    pub const fn was_reaped(&mut self) {
        self.reaped = true;
    }

    /// Ends it, once nothing of the job is left, and reaps it.
    pub fn dismiss(self) {
        drop(self);
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        if self.reaped {
            return;
        }
        // The goodbye alone would do; the KILL is for one that somebody has stopped. Nothing may outlive the run, and
        // nothing may delay its end.
        let _: io::Result<()> = self.send(Message::Goodbye);
        system::kill_and_reap(self.pid);
    }
}
