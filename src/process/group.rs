//! The job's process group: signalling it without ever hitting a stranger, and telling who is left in it.
//!
//! # When nothing of a group acts any more
//!
//! **A signal proves, a look does not.** The kernel signals a group in one piece against fork(2), exit(2) and setpgid(2): it
//! holds the lock that each of those takes to add or remove a member. `ESRCH` therefore proves that the group is empty. /proc
//! is read process by process. Between two of these reads a process can start another and end, so a look that finds nobody
//! alive proves nothing. The group may then consist of zombies, which can stay for long, since a parent that has left the
//! group need not ask for them; or it may keep forking.
//!
//! **KILL to the group makes an end of forking.** Every member of that moment gets it, whether it runs, sleeps, is stopped
//! or traced, waits for the child of its vfork(2), or is in the middle of a fork(2): fork looks for a fatal signal as its last
//! step, under that same lock, and fails. Either the child was there already and got KILL too, or it never comes to be. KILL
//! can't be ignored, blocked or taken back. So from that moment on the group gets no member by fork, and each member goes on
//! at most to the end of the system call that it is in. (That can last: uninterruptible sleep. It may also be a write. So KILL
//! alone is not enough.)
//!
//! **A look after it finds all who are left.** Nobody comes to be any more who could be missed, so whoever is alive in the
//! group is in the list and is seen to be alive, also in uninterruptible sleep or stopped by a tracer on its way out. If all
//! that the look finds are zombies, nothing of the group acts any more, and nothing will. The look has to begin after the
//! KILL was sent; the answer to an earlier one says nothing.
//!
//! **What this does not cover.** KILL does not reach a process of another user, if `lease` may not signal it: kill(2) answers
//! `EPERM` only if it reaches none at all, and without a word leaves out some. [`Leftovers`] says `reached: false` if it can
//! be seen. While such a process lives, `lease` can only wait. If all that is found are zombies, and one of them is out of
//! reach, looks for a while (a second, in `supervise`) have to do. A process that has left the group can come back to it with
//! setpgid(2); leaving it is outside the promise anyway. And without /proc zombies can't be told from processes that are about
//! to end. After KILL they get that while too.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use libc::pid_t;
use nix::errno::Errno;
use nix::sys::signal::kill;
use nix::sys::stat::fstat;
use nix::unistd::Pid;

use super::procfs;
use crate::job::{Leftovers, Signal};

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
        let pid = Pid::this().as_raw();
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

    /// The group of `id`, for a caller who may hear of it late: by its number alone if the first process is reaped already.
    /// Others may be left, and the number is theirs for as long as they are. `None` if somebody else has the number, which
    /// proves that the group is empty. Async-signal-safe.
    pub(crate) fn open_late(id: GroupId) -> Option<Self> {
        let errno = |error: io::Error| error.raw_os_error();
        match Self::open(id).map_err(errno) {
            Ok(group) => Some(group),
            Err(Some(libc::ESRCH)) => {
                let gone = kill(Pid::from_raw(id.pid), None) == Err(Errno::ESRCH);
                gone.then(|| Self::by_number(id))
            }
            // No descriptor to be had, for example.
            Err(_) => Some(Self::by_number(id)),
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

    /// Sends `signal` to every process of the group; [`Signal::NONE`] only asks whether there is one. A zombie counts as one.
    /// Async-signal-safe.
    ///
    /// Before Linux 6.9 the group can only be named by its number. The caller then has to know that the number is not
    /// in use elsewhere: because the leader is not yet reaped, or because a moment ago, and again and again since the
    /// leader was reaped, the group had members, for a number is not given out while a group has it (credentials(7)).
    ///
    /// # Errors
    /// `ESRCH` if the group is empty; `EPERM` if none of its processes may be signalled, because all have another user.
    pub fn signal(&self, signal: Signal) -> io::Result<()> {
        if let Some(fd) = &self.pidfd {
            match send(fd, signal, PIDFD_SIGNAL_PROCESS_GROUP) {
                Err(e) if means_unknown(&e) => {}
                answer => return answer,
            }
        }
        // SAFETY: kill(2) reads no memory.
        if unsafe { libc::kill(-self.id.pid, signal.number()) } == 0 {
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
        match send(fd, Signal::NONE, PIDFD_SIGNAL_PROCESS_GROUP) {
            Ok(()) => false,
            Err(e) => means_unknown(&e),
        }
    }

    /// Whether the group's first process is not reaped yet, which keeps its number from being used again.
    /// Async-signal-safe.
    #[must_use]
    pub fn has_leader(&self) -> bool {
        self.pidfd.as_ref().is_some_and(
            |fd| !matches!(send(fd, Signal::NONE, 0), Err(e) if e.raw_os_error() == Some(libc::ESRCH)),
        )
    }

    /// One look at who is in the group. What it is worth is told at the top of this file.
    #[must_use]
    pub fn look(&self) -> Leftovers {
        // The common case, an empty group, takes one system call and does not read /proc.
        let reached = match self.signal(Signal::NONE) {
            Ok(()) => true,
            Err(e) if e.raw_os_error() == Some(libc::ESRCH) => return Leftovers::Empty,
            Err(_) => false,
        };
        let Some(members) = procfs::members(self.id.pid) else {
            return Leftovers::Unknown { reached };
        };
        if members.alive > 0 {
            return Leftovers::Alive {
                count: members.alive,
                newest: members.newest,
            };
        }
        match (reached, members.zombies.into_iter().any(is_out_of_reach)) {
            (true, false) => Leftovers::OnlyZombies { reached: true },
            (true | false, true) => Leftovers::OnlyZombies { reached: false },
            // Who has refused the signal is not to be seen.
            (false, false) => Leftovers::Unknown { reached: false },
        }
    }
}

/// Whether this process, or another one that has its number by now, may not be signalled.
fn is_out_of_reach(pid: pid_t) -> bool {
    kill(Pid::from_raw(pid), None) == Err(Errno::EPERM)
}

/// pidfd_send_signal(2), with the siginfo that kill(2) sends.
fn send(pidfd: &OwnedFd, signal: Signal, flags: libc::c_uint) -> io::Result<()> {
    // SAFETY: the descriptor is open, and a null siginfo is allowed.
    let sent = unsafe {
        libc::syscall(
            libc::SYS_pidfd_send_signal,
            pidfd.as_raw_fd(),
            signal.number(),
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
    fstat(fd).map_or(0, |stat| stat.st_ino)
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
