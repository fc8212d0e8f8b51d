//! The watchdog's process: its fork, its exit, and the calls of its parent.
//!
//! The parent may have had threads, so the child makes only async-signal-safe calls: no heap, no lock, no formatting,
//! no panic. It cannot report an error. So wherever something can fail, a failure makes it act early.
//!
//! `detach.rs` has what the child gives up, and `watch.rs` its loop.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::time::Duration;

use libc::pid_t;
use nix::errno::Errno;
use nix::sys::signal::{SIGKILL, kill};
use nix::sys::wait::waitpid;
use nix::unistd::Pid;

use super::detach::{detach, keep_descriptors};
use super::watch::Watch;
use super::wire::{Message, SIZE};
use crate::process::{Group, block_all, set_mask};
use crate::text::PreparedLine;

/// Forks. The child becomes the watchdog and never returns; the parent gets the child's pid.
pub(super) fn fork_into(
    read: &OwnedFd,
    grace: Duration,
    job: Option<(&Group, Message)>,
    line: &PreparedLine,
) -> io::Result<pid_t> {
    // No handler may run in the child: the handlers write to the parent's pipe for signals.
    let before = block_all()?;
    // SAFETY: the child only runs `watch`, which is async-signal-safe and does not return.
    let pid = unsafe { libc::fork() };
    if pid == 0 {
        watch(&Inherited {
            read: read.as_raw_fd(),
            grace,
            job,
            line,
        });
    }
    let error = io::Error::last_os_error();
    set_mask(before)?;
    if pid < 0 { Err(error) } else { Ok(pid) }
}

/// Writes one message in one piece. Async-signal-safe.
pub(super) fn write_message(pipe: RawFd, message: Message) -> io::Result<()> {
    let bytes = message.encode();
    loop {
        // SAFETY: the buffer is as long as it says.
        let written = unsafe { libc::write(pipe, bytes.as_ptr().cast(), SIZE) };
        if written == SIZE as isize {
            return Ok(());
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
}

/// Kills and reaps a child that was not reaped yet.
pub(super) fn kill_and_reap(pid: pid_t) {
    // No other process can have this pid until the child is reaped.
    let child = Pid::from_raw(pid);
    let _: nix::Result<()> = kill(child, SIGKILL);
    while waitpid(child, None) == Err(Errno::EINTR) {}
}

/// What the child gets from its parent.
struct Inherited<'a> {
    read: RawFd,
    grace: Duration,
    /// A job that runs already, and the order for it.
    job: Option<(&'a Group, Message)>,
    line: &'a PreparedLine,
}

/// The watchdog, from its fork to its exit. `extern "C"`, because a panic must abort and not unwind into a copy of `lease`.
extern "C" fn watch(inherited: &Inherited<'_>) -> ! {
    detach();
    let group = keep_descriptors(inherited.read, inherited.job.map(|(job, _)| job));
    let order = inherited.job.map(|(_, order)| order);
    Watch::new(group, order, inherited.grace, inherited.line).run();
    // SAFETY: _exit(2) is always allowed, and runs nothing of the parent's.
    unsafe { libc::_exit(0) }
}
