//! Waiting for children without blocking.

use std::mem::MaybeUninit;

use libc::{c_int, pid_t};
use nix::sys::signal::{SIGKILL, kill};
use nix::unistd::Pid;

use super::procfs;
use crate::job::{Ended, Signal};

/// The children whose end is awaited.
#[derive(Clone, Copy, Debug, Default)]
pub struct Children {
    /// The job's first process, until it is reaped.
    pub job: Option<pid_t>,
    /// The watchdog, until it is reaped.
    pub watchdog: Option<pid_t>,
}

/// A change of a child's state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// The job's first process ended, and is reaped.
    JobExited(Ended),
    /// The job's first process was stopped by this signal.
    JobStopped(Signal),
    /// The job's first process was continued.
    JobContinued,
    /// The watchdog ended and is reaped, or it was stopped. A stopped watchdog is useless, so it got KILL and is about
    /// to end.
    WatchdogDied,
}

/// The next change of a child; `None` if there are no more for now. Call it at each CHLD until it returns `None`,
/// because one signal may stand for several changes.
///
/// Unknown children are reaped too. As process 1 of a container, `lease` inherits every orphan. A process that became
/// `lease` by exec may have left children to it.
pub fn reap(children: &mut Children) -> Option<Change> {
    loop {
        let (pid, what) = wait_any()?;
        if children.job == Some(pid) {
            return Some(match what {
                What::Ended(ended) => {
                    children.job = None;
                    Change::JobExited(ended)
                }
                // It was continued meanwhile, which will be the next change.
                What::Stopped(_) if procfs::is_running(pid) => continue,
                What::Stopped(signal) => Change::JobStopped(signal),
                What::Continued => Change::JobContinued,
            });
        }
        if children.watchdog == Some(pid) {
            match what {
                What::Ended(_) => {
                    children.watchdog = None;
                    return Some(Change::WatchdogDied);
                }
                What::Stopped(_) => {
                    // The child is not reaped yet, so the number is still its own.
                    let _: nix::Result<()> = kill(Pid::from_raw(pid), SIGKILL);
                }
                What::Continued => {}
            }
        }
    }
}

enum What {
    Ended(Ended),
    Stopped(Signal),
    Continued,
}

/// One change of any child, taken from the kernel's queue: waitid(2).
fn wait_any() -> Option<(pid_t, What)> {
    let options = libc::WEXITED | libc::WSTOPPED | libc::WCONTINUED | libc::WNOHANG;
    loop {
        let mut info = MaybeUninit::<libc::siginfo_t>::zeroed();
        // SAFETY: `info` is valid for writing; it was zeroed, as waitid(2) advises, to tell "nothing" by its pid of 0.
        let (failed, info) = unsafe {
            let failed = libc::waitid(libc::P_ALL, 0, info.as_mut_ptr(), options) != 0;
            (failed, info.assume_init())
        };
        if failed {
            if std::io::Error::last_os_error().kind() == std::io::ErrorKind::Interrupted {
                continue;
            }
            return None;
        }
        // SAFETY: after waitid(2) the fields of a SIGCHLD are filled in, or still zero.
        let (pid, status) = unsafe { (info.si_pid(), info.si_status()) };
        if pid == 0 {
            return None;
        }
        let Some(what) = decode(info.si_code, status) else {
            continue;
        };
        return Some((pid, what));
    }
}

fn decode(code: c_int, status: c_int) -> Option<What> {
    match code {
        libc::CLD_EXITED => Some(What::Ended(Ended::Code(status.to_le_bytes()[0]))),
        libc::CLD_KILLED | libc::CLD_DUMPED => {
            Some(What::Ended(Ended::Signal(Signal::new(status))))
        }
        libc::CLD_STOPPED => Some(What::Stopped(Signal::new(status))),
        libc::CLD_CONTINUED => Some(What::Continued),
        // CLD_TRAPPED is sent to a tracer only.
        _ => None,
    }
}
