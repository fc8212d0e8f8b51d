//! The watchdog: a small process that stops the job when `lease` no longer can.
//!
//! `lease` forks it before there is a thread or a connection. From then on the watchdog only reads from a pipe.
//!
//! - If the pipe closes without a goodbye, `lease` was killed or has crashed. The watchdog then stops the job at once.
//! - If a deadline comes and was not moved, `lease` hangs or was stopped. The watchdog stops the job early enough for it
//!   to be dead by the deadline.
//!
//! To stop the job, it sends TERM and CONT to the job's process group, and KILL after the grace period.
//!
//! The watchdog has a session of its own, so that it gets no signals from a terminal or for the process group of `lease`.
//! It ignores every signal that can be ignored. Its only descriptors are its end of the pipe, a timer, a pidfd and stderr,
//! so that no pipeline waits for it. Its name does not begin with "lease", so that `pkill -9 lease` does not kill both.
//!
//! `wire.rs` has the messages from `lease`, `switch.rs` the decisions, `system.rs` the fork and its end, `detach.rs` what
//! the process gives up, and `watch.rs` its loop.
#![allow(unsafe_code)] // fork(2), and system calls between a fork and an exit; each use says why it is sound.

mod detach;
mod switch;
mod system;
mod watch;
mod wire;

use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::time::Duration;

use libc::pid_t;
use nix::fcntl::OFlag;
use nix::unistd::pipe2;

use crate::process::{Announce, Group};
use crate::supervise::WatchdogOrder;
use crate::text::PreparedLine;
use wire::Message;

/// A running watchdog. Dropping it ends the process, and leaves the job alone.
#[derive(Debug)]
pub struct Watchdog {
    pid: pid_t,
    /// The write end of the pipe. It is close-on-exec, so that the job can't keep it open. It never blocks, so that `lease`
    /// does not wait for a watchdog that was stopped.
    pipe: std::fs::File,
    /// Whether it was reaped. Another process may have its pid then.
    reaped: bool,
}

impl Watchdog {
    /// Forks a watchdog without a job. `grace` is the time between its TERM and its KILL. `line` is what it writes to
    /// stderr after it has stopped the job.
    ///
    /// # Errors
    /// When no pipe or process can be created.
    pub fn start(grace: Duration, line: &PreparedLine) -> io::Result<Self> {
        Self::fork(grace, None, line)
    }

    /// Forks another watchdog for a job that runs already, after the first one was killed. It inherits the pidfd of the
    /// job's first process. So it can signal the group even if that process is reaped and only others are left.
    ///
    /// It inherits `order` as well. If `lease` sent it afterwards and were stopped before that, the watchdog would not know
    /// the deadline of a running job.
    ///
    /// This is safe in a process with threads, because the child uses no lock and no heap.
    ///
    /// # Errors
    /// When no pipe or process can be created.
    pub fn start_over(
        grace: Duration,
        job: &Group,
        order: WatchdogOrder,
        line: &PreparedLine,
    ) -> io::Result<Self> {
        Self::fork(grace, Some((job, order.into())), line)
    }

    fn fork(
        grace: Duration,
        job: Option<(&Group, Message)>,
        line: &PreparedLine,
    ) -> io::Result<Self> {
        let (read, write) = pipe2(OFlag::O_CLOEXEC | OFlag::O_NONBLOCK)?;
        let pid = system::fork_into(&read, grace, job, line)?;
        Ok(Self {
            pid,
            pipe: write.into(),
            reaped: false,
        })
    }

    /// Its process id, by which the caller recognizes it among its children.
    #[must_use]
    pub const fn pid(&self) -> pid_t {
        self.pid
    }

    /// For [`crate::process::Launch`]: lets the forked child of the job send its group to the watchdog before it runs the
    /// command. So the watchdog knows the group of every job that runs, even if `lease` is killed in between: the child
    /// keeps the pipe open until it has written the message.
    #[must_use]
    pub fn announcer(&self) -> Announce {
        let pipe = self.pipe.as_raw_fd();
        Box::new(move |group| system::write_message(pipe, Message::Group(group)))
    }

    /// Sends it an order. Never blocks.
    ///
    /// # Errors
    /// `EPIPE` if it is dead. `EAGAIN` if the pipe is full because it has not read for a long time. Both mean that it must
    /// be replaced.
    pub fn tell(&mut self, order: WatchdogOrder) -> io::Result<()> {
        self.send(order.into())
    }

    fn send(&mut self, message: Message) -> io::Result<()> {
        // One write of less than PIPE_BUF bytes is all or nothing (pipe(7)).
        self.pipe.write_all(&message.encode())
    }

    /// Notes that the caller has reaped it.
    pub const fn was_reaped(&mut self) {
        self.reaped = true;
    }

    /// Ends it and reaps it. To be called once nothing of the job is left.
    pub fn dismiss(self) {
        drop(self);
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        if self.reaped {
            return;
        }
        // A watchdog that was stopped does not read the goodbye. KILL ends it all the same, so that it neither outlives nor
        // delays the end of the run.
        let _: io::Result<()> = self.send(Message::Goodbye);
        system::kill_and_reap(self.pid);
    }
}
