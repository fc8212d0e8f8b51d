//! What the watchdog's process gives up after the fork: the terminal, the working directory, signals and descriptors.
//!
//! Everything here is async-signal-safe; see `system.rs`.

use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

use libc::{c_int, c_uint};

use crate::process::{Group, rename_forked};

/// The descriptor of the read end of the pipe in the watchdog.
pub(super) const PIPE: RawFd = 3;
/// The descriptor of the pidfd, if the job runs already.
const PIDFD: RawFd = 4;
/// Descriptors from here on are used while the two above are put in place.
const AWAY: c_int = 10;

/// Detaches the process from the terminal, the working directory and signals.
pub(super) fn detach() {
    // SAFETY: none of the calls reads memory but the strings, which end with a NUL. The process has one thread.
    unsafe {
        libc::setsid();
        libc::prctl(libc::PR_SET_NAME, c"job-watchdog".as_ptr());
        rename_forked(c"job-watchdog");
        // A file system cannot be unmounted while it holds the working directory of a process.
        libc::chdir(c"/".as_ptr());
        for signal in 1..=64 {
            // The signals of a fault keep their default: ignoring them would not help.
            if !matches!(
                signal,
                libc::SIGSEGV | libc::SIGBUS | libc::SIGILL | libc::SIGFPE
            ) {
                libc::signal(signal, libc::SIG_IGN);
            }
        }
    }
}

/// Keeps the pipe, the job's pidfd if there is one, and stderr. Closes all other descriptors.
pub(super) fn keep_descriptors(read: RawFd, job: Option<&Group>) -> Option<Group> {
    // SAFETY: no memory is read but the string, which ends with a NUL. Nothing of the parent's is used any more but what
    // is moved here, out of the way of the numbers that it is moved to.
    unsafe {
        let pidfd = job.and_then(Group::pidfd);
        let pidfd = pidfd.map(|fd| libc::fcntl(fd.as_raw_fd(), libc::F_DUPFD, AWAY));
        let read = libc::fcntl(read, libc::F_DUPFD, AWAY);
        if libc::dup2(read, PIPE) != PIPE {
            // Another file may have this number. Closed, it counts as a closed pipe.
            libc::close(PIPE);
        }
        let pidfd = pidfd
            .filter(|fd| libc::dup2(*fd, PIDFD) == PIDFD)
            .map(|_| PIDFD);
        close_from(if pidfd.is_some() { PIDFD } else { PIPE } + 1);
        // A pipeline behind `lease run` must end with the job, so the watchdog gives up stdin and stdout. /dev/null takes
        // their numbers, so that a later open(2) does not get them.
        let null = libc::open(c"/dev/null".as_ptr(), libc::O_RDWR);
        for fd in [0, 1] {
            if null < 0 || libc::dup2(null, fd) < 0 {
                libc::close(fd);
            }
        }
        libc::close(null);
        job.map(|job| job.adopted(pidfd.map(|fd| OwnedFd::from_raw_fd(fd))))
    }
}

fn close_from(first: RawFd) {
    // SAFETY: closing is sound here, since nothing of the parent's is used any more; no memory is read but `limit`.
    unsafe {
        if libc::syscall(libc::SYS_close_range, first as c_uint, c_uint::MAX, 0) == 0 {
            return;
        }
        // Linux before 5.9.
        let mut limit = libc::rlimit {
            rlim_cur: 0,
            rlim_max: 0,
        };
        let most = if libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) == 0 {
            c_int::try_from(limit.rlim_cur)
                .unwrap_or(c_int::MAX)
                .min(1 << 20)
        } else {
            1 << 16
        };
        let mut fd = first;
        while fd < most {
            libc::close(fd);
            fd += 1;
        }
    }
}
