//! The job's process group: signalling it without ever hitting a stranger, and counting who is left in it.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use libc::pid_t;

use super::procfs;
use crate::job::Signo;

/// `PIDFD_SIGNAL_PROCESS_GROUP` of `<linux/pidfd.h>`, Linux 6.9.
const PIDFD_SIGNAL_PROCESS_GROUP: libc::c_uint = 1 << 2;

/// What tells a process from every other one: its id, and the number that its pidfd has in the kernel.
///
/// Since Linux 6.9 a pidfd has an inode of its own, unique until reboot, so two ids are equal only if they mean the same
/// process and not one that got the number later. Before that all pidfds share one inode, and only the number is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupId {
    /// The id of the group, which is that of its first process.
    pub pid: pid_t,
    /// The inode of a pidfd of that process; 0 where there are no pidfds (before Linux 5.3).
    pub inode: u64,
}

impl GroupId {
    /// The id of the calling process, as the leader of its group. Async-signal-safe.
    #[must_use]
    pub fn of_caller() -> Self {
        // SAFETY: getpid(2) can't fail.
        let pid = unsafe { libc::getpid() };
        let inode = open_pidfd(pid).map_or(0, |fd| inode_of(&fd));
        Self { pid, inode }
    }
}

/// A process group that was led by a known process.
///
/// It is signalled by the pidfd of its leader. That names the group as it was, whoever has the number now, and works for
/// as long as the group has a member, also after its leader is reaped. Where the kernel can't do that, the group is
/// signalled by number, and only while that is certain to be the same group: see [`Group::signal`].
#[derive(Debug)]
pub struct Group {
    id: GroupId,
    pidfd: Option<OwnedFd>,
}

impl Group {
    /// The group of `id`, if its leader has not been reaped. Async-signal-safe.
    ///
    /// # Errors
    /// `ESRCH` if there is no such process any more, or another one has its number.
    pub fn open(id: GroupId) -> io::Result<Self> {
        match open_pidfd(id.pid) {
            Ok(fd) if id.inode == 0 || inode_of(&fd) == id.inode => Ok(Self {
                id,
                pidfd: Some(fd),
            }),
            Ok(_) => Err(io::Error::from_raw_os_error(libc::ESRCH)),
            // Linux before 5.3, or a sandbox that does not know the call.
            Err(e) if matches!(e.raw_os_error(), Some(libc::ENOSYS | libc::EPERM)) => {
                Ok(Self { id, pidfd: None })
            }
            Err(e) => Err(e),
        }
    }

    /// The group of `id`, by its number alone.
    pub(super) const fn by_number(id: GroupId) -> Self {
        Self { id, pidfd: None }
    }

    /// The same group by another descriptor of its leader's pidfd, for a process that was forked from this one. The
    /// descriptor is owned by the answer. Async-signal-safe.
    pub(crate) fn adopted(&self, pidfd: Option<OwnedFd>) -> Self {
        Self { id: self.id, pidfd }
    }

    /// The pidfd of its leader, where there are pidfds.
    pub(crate) fn pidfd(&self) -> Option<BorrowedFd<'_>> {
        self.pidfd.as_ref().map(AsFd::as_fd)
    }

    /// Which group this is.
    #[must_use]
    pub const fn id(&self) -> GroupId {
        self.id
    }

    /// Sends `signal` to every process of the group; 0 only asks whether there is one. A zombie counts as one.
    /// Async-signal-safe.
    ///
    /// Before Linux 6.9 the group can only be named by its number. The caller then has to know that the number is not
    /// in use elsewhere: because the leader is not yet reaped, or because a moment ago, and again and again since the
    /// leader was reaped, the group had members, for a number is not given out while a group has it (credentials(7)).
    ///
    /// # Errors
    /// `ESRCH` if the group is empty; `EPERM` if none of its processes may be signalled, because all have another user.
    pub fn signal(&self, signal: Signo) -> io::Result<()> {
        if let Some(fd) = &self.pidfd {
            match send(fd, signal, PIDFD_SIGNAL_PROCESS_GROUP) {
                Err(e) if means_unknown(&e) => {}
                answer => return answer,
            }
        }
        // SAFETY: kill(2) reads no memory.
        if unsafe { libc::kill(-self.id.pid, signal) } == 0 {
            Ok(())
        } else {
            Err(io::Error::last_os_error())
        }
    }

    /// Whether the group can only be signalled by its number, so that the caller has to know that it is still the same.
    /// Async-signal-safe.
    #[must_use]
    pub fn goes_by_number(&self) -> bool {
        let Some(fd) = &self.pidfd else { return true };
        match send(fd, 0, PIDFD_SIGNAL_PROCESS_GROUP) {
            Ok(()) => false,
            Err(e) => means_unknown(&e),
        }
    }

    /// Whether the group's first process is not reaped yet, which keeps its number from being used again.
    /// Async-signal-safe.
    #[must_use]
    pub fn has_leader(&self) -> bool {
        self.pidfd.as_ref().is_some_and(
            |fd| !matches!(send(fd, 0, 0), Err(e) if e.raw_os_error() == Some(libc::ESRCH)),
        )
    }

    /// How many live processes the group has, zombies left out.
    ///
    /// A zombie can stay for long: its parent may have left the group and never ask for it. It does nothing any more, so
    /// the run does not wait for it. Where /proc can't be read, a group that is not empty counts as one.
    #[must_use]
    pub fn count(&self) -> usize {
        // The common case, an empty group, takes one system call and does not read /proc.
        if let Err(e) = self.signal(0)
            && e.raw_os_error() == Some(libc::ESRCH)
        {
            return 0;
        }
        procfs::live_members(self.id.pid).unwrap_or(1)
    }
}

/// pidfd_send_signal(2), with the siginfo that kill(2) sends.
fn send(pidfd: &OwnedFd, signal: Signo, flags: libc::c_uint) -> io::Result<()> {
    // SAFETY: the descriptor is open, and a null siginfo is allowed.
    let sent = unsafe {
        libc::syscall(
            libc::SYS_pidfd_send_signal,
            pidfd.as_raw_fd(),
            signal,
            std::ptr::null::<libc::siginfo_t>(),
            flags,
        )
    };
    if sent == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// Whether the kernel did not know the call or its flag.
fn means_unknown(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EINVAL | libc::ENOSYS))
}

/// pidfd_open(2). The descriptor is close-on-exec.
fn open_pidfd(pid: pid_t) -> io::Result<OwnedFd> {
    // SAFETY: the call reads no memory; a non-negative answer is a new descriptor that nobody else owns.
    unsafe {
        let fd = libc::syscall(libc::SYS_pidfd_open, pid, 0);
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(OwnedFd::from_raw_fd(fd as libc::c_int))
    }
}

fn inode_of(fd: &OwnedFd) -> u64 {
    let mut stat = MaybeUninit::<libc::stat>::uninit();
    // SAFETY: fstat(2) fills the structure if it succeeds, and only then is it read.
    unsafe {
        if libc::fstat(fd.as_fd().as_raw_fd(), stat.as_mut_ptr()) != 0 {
            return 0;
        }
        stat.assume_init().st_ino
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_has_one_identity_and_another_process_has_another() {
        let me = GroupId::of_caller();
        assert_eq!(me, GroupId::of_caller());
        let parent = open_pidfd(nix::unistd::getppid().as_raw()).expect("a parent");
        let since_6_9 = me.inode != 0 && inode_of(&parent) != me.inode;
        if since_6_9 {
            let stranger = GroupId {
                inode: inode_of(&parent),
                ..me
            };
            let refused = Group::open(stranger).expect_err("the number alone is not enough");
            assert_eq!(refused.raw_os_error(), Some(libc::ESRCH));
        }
        assert!(Group::open(me).is_ok());
    }
}
