//! The job's process group: signalling it without ever signalling another group, and finding which processes are left
//! in it.
//!
//! # When nothing of a group acts any more
//!
//! **Only a signal proves that a group is empty.** The kernel signals a group in one piece against fork(2), exit(2) and
//! setpgid(2): it holds the lock that each of those takes to add or remove a member. So `ESRCH` proves that the group
//! is empty. /proc is read process by process. Between two of these reads, a process can start another one and end. So
//! a look that finds no live process proves nothing. The group may consist of zombies, or it may keep forking. Zombies
//! can stay for long, because a parent that has left the group may never reap them.
//!
//! **KILL to the group ends all forking.** Every process that is a member at that moment gets it: running, sleeping,
//! stopped, traced, waiting for the child of its vfork(2), or in the middle of a fork(2). As its last step, fork checks
//! for a fatal signal under that same lock, and fails. So either the child existed already and got KILL too, or it is
//! never created. KILL cannot be ignored, blocked or revoked. From that moment on, the group gets no new member by
//! fork, and each member runs at most to the end of its current system call. (In uninterruptible sleep that can take
//! long, and the call may be a write. So KILL alone is not enough.)
//!
//! **A look after the KILL finds every process that is left.** No new process appears that the look could miss. So
//! every live process of the group is in the list and is seen to be alive, even in uninterruptible sleep or stopped by
//! a tracer while it ends. If the look finds only zombies, nothing of the group acts any more, and nothing will. The
//! look must begin after the KILL was sent. An earlier look proves nothing.
//!
//! **What this does not cover.** KILL does not reach a process of another user if `lease` may not signal it. kill(2)
//! returns `EPERM` only if it reaches no process at all, and skips single processes silently. [`Leftovers`] says
//! `reached: false` if this is visible. While that process lives, `lease` can only wait. If a look finds only zombies
//! and one of them is out of reach, there is no proof. `supervise` then repeats the look for a second. A process that
//! has left the group can return to it with setpgid(2), but a process that leaves is outside the promise anyway.
//! Without /proc, zombies look like processes that are about to end. After the KILL, `supervise` waits for the same
//! second then.

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

/// The identity of a process: its id, and the number that its pidfd has in the kernel.
///
/// Since Linux 6.9 a pidfd has an inode of its own, unique until reboot. So two identities are equal only if they mean
/// the same process, even if the process id was reused. Before that, all pidfds share one inode, and only the process
/// id is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupId {
    /// The id of the group, which is that of its first process.
    pub pid: pid_t,
    /// The inode of a pidfd of that process; 0 if the kernel has no pidfds (before Linux 5.3).
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
/// It is signalled by the pidfd of its leader. This always means the original group, even if its number was reused. It
/// works for as long as the group has a member, even after its leader is reaped. If the kernel does not support this,
/// the group is signalled by number, and only while the number certainly belongs to the same group: see
/// [`Group::signal`].
#[derive(Debug)]
pub struct Group {
    id: GroupId,
    pidfd: Option<OwnedFd>,
}

impl Group {
    /// The group of `id`, if its leader has not been reaped. Async-signal-safe.
    ///
    /// # Errors
    /// `ESRCH` if the process no longer exists, or its number was reused.
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

    /// The group of `id`, for a caller that may learn of it late. If the first process is reaped already, the group is
    /// named by its number alone: other members may be left, and they keep the number in use. `None` if another process
    /// has the number, which proves that the group is empty. Async-signal-safe.
    pub(crate) fn open_late(id: GroupId) -> Option<Self> {
        let errno = |error: io::Error| error.raw_os_error();
        match Self::open(id).map_err(errno) {
            Ok(group) => Some(group),
            Err(Some(libc::ESRCH)) => {
                let gone = kill(Pid::from_raw(id.pid), None) == Err(Errno::ESRCH);
                gone.then(|| Self::by_number(id))
            }
            // For example, there is no free descriptor.
            Err(_) => Some(Self::by_number(id)),
        }
    }

    /// The group of `id`, by its number alone.
    pub(super) const fn by_number(id: GroupId) -> Self {
        Self { id, pidfd: None }
    }

    /// The same group, by another descriptor of its leader's pidfd, for a process that was forked from this one. The
    /// returned value owns the descriptor. Async-signal-safe.
    pub(crate) fn adopted(&self, pidfd: Option<OwnedFd>) -> Self {
        Self { id: self.id, pidfd }
    }

    /// The pidfd of its leader, if the kernel has pidfds.
    pub(crate) fn pidfd(&self) -> Option<BorrowedFd<'_>> {
        self.pidfd.as_ref().map(AsFd::as_fd)
    }

    /// The identity of the group.
    #[must_use]
    pub const fn id(&self) -> GroupId {
        self.id
    }

    /// Sends `signal` to every process of the group; [`Signal::NONE`] only checks whether there is one. A zombie counts
    /// as one. Async-signal-safe.
    ///
    /// Before Linux 6.9, the group can only be named by its number. The caller must then know that the number was not
    /// reused. The kernel does not reuse a number while a process or a group has it (credentials(7)). So either the
    /// leader is not reaped yet, or the caller has found members in the group again and again since the leader was
    /// reaped, the last time a moment ago.
    ///
    /// # Errors
    /// `ESRCH` if the group is empty; `EPERM` if none of its processes may be signalled, because all belong to another
    /// user.
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

    /// Whether the group can only be signalled by its number. The caller must then know that the number still belongs
    /// to it. Async-signal-safe.
    #[must_use]
    pub fn goes_by_number(&self) -> bool {
        let Some(fd) = &self.pidfd else { return true };
        match send(fd, Signal::NONE, PIDFD_SIGNAL_PROCESS_GROUP) {
            Ok(()) => false,
            Err(e) => means_unknown(&e),
        }
    }

    /// Whether the group's first process is not reaped yet. Until then its number is not reused. Async-signal-safe.
    #[must_use]
    pub fn has_leader(&self) -> bool {
        self.pidfd.as_ref().is_some_and(
            |fd| !matches!(send(fd, Signal::NONE, 0), Err(e) if e.raw_os_error() == Some(libc::ESRCH)),
        )
    }

    /// Looks once at which processes are in the group. The documentation of this module says what a look proves.
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
            // The kernel does not say which process refused the signal.
            (false, false) => Leftovers::Unknown { reached: false },
        }
    }
}

/// Whether the process with this number, possibly reused, may not be signalled.
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
    // SAFETY: the call reads no memory; a non-negative result is a new descriptor that has no other owner.
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
