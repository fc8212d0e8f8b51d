//! A process that the tracer holds, and how it goes on.

use nix::errno::Errno;
use nix::sys::ptrace;
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid};
use nix::unistd::Pid;

use super::proc;

/// All news of tracees, and of no other thread's children.
pub(super) const ANY: WaitPidFlag = WaitPidFlag::WEXITED
    .union(WaitPidFlag::WSTOPPED)
    .union(WaitPidFlag::__WALL)
    .union(WaitPidFlag::__WNOTHREAD);

/// A process that stands still.
#[derive(Debug)]
pub struct Frozen {
    pub(super) leader: Pid,
    pub(super) held: Pid,
    pub(super) tracees: Vec<Pid>,
    /// The system call that the point is at.
    pub call: String,
}

impl Frozen {
    /// Call it again and again while it is frozen: it may be killed, and its parent must see that.
    pub fn was_killed(&self) -> bool {
        let flags = WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG | WaitPidFlag::__WALL;
        !matches!(
            waitid(Id::Pid(self.held), flags),
            Ok(WaitStatus::StillAlive)
        )
    }

    /// Stops it by STOP instead, as a person might, which its parent is told. It is traced no more.
    pub fn stop(&self) {
        let _ = kill(self.held, Signal::SIGSTOP);
        let _ = ptrace::detach(self.held, None);
    }

    /// Whether it has ended and was reaped, after [`stop`](Self::stop).
    pub fn is_gone(&self) -> bool {
        proc::Process::find(self.held.as_raw()).is_none_or(|process| process.is_zombie())
    }

    /// Continues one that was stopped by [`stop`](Self::stop).
    pub fn cont(&self) {
        let _ = kill(self.held, Signal::SIGCONT);
    }

    /// Lets it go on, traced no more.
    pub fn thaw(mut self) {
        self.let_go(self.held, None);
        while let Some(pid) = self.tracees.pop() {
            // It stops at once, if it has not stopped yet.
            if pid == self.held || ptrace::interrupt(pid) == Err(Errno::ESRCH) {
                continue;
            }
            if pid == self.leader && self.leader_has_ended() {
                continue;
            }
            match waitid(Id::Pid(pid), ANY) {
                Ok(WaitStatus::PtraceEvent(_, _, libc::PTRACE_EVENT_CLONE)) => {
                    self.tracees.push(made_by(pid));
                    self.let_go(pid, None);
                }
                Ok(WaitStatus::PtraceEvent(_, signal, 0) | WaitStatus::Stopped(_, signal)) => {
                    self.let_go(pid, Some(signal));
                }
                Ok(WaitStatus::Exited(..) | WaitStatus::Signaled(..)) | Err(_) => {}
                Ok(_) => self.let_go(pid, None),
            }
        }
    }

    fn leader_has_ended(&self) -> bool {
        let look = ANY | WaitPidFlag::WNOWAIT;
        let news = waitid(Id::Pid(self.leader), look);
        matches!(news, Ok(WaitStatus::Exited(..) | WaitStatus::Signaled(..)))
    }

    fn let_go(&self, pid: Pid, signal: Option<Signal>) {
        // Those that were let go before may have ended the process meanwhile. The rest of it ends when the tracer has
        // seen the end of each thread; that of the first one is for whoever has started the process.
        if ptrace::detach(pid, signal).is_err() && pid != self.leader {
            let _ = waitid(Id::Pid(pid), WaitPidFlag::WEXITED | WaitPidFlag::__WALL);
        }
    }
}

/// The thread or process that a tracee has made, at its news of that.
pub(super) fn made_by(pid: Pid) -> Pid {
    Pid::from_raw(ptrace::getevent(pid).expect("the number of the new one") as i32)
}
