//! Freezing one process of a run at any point of its life, by ptrace(2).
//!
//! A point is a stop at a system call: at its entry, when the process has decided and not yet acted, or at its exit.
//! The whole process stands still there. The thread that has reached the point is held, and every other one is held at
//! its next system call. Neither its parent nor the process itself is notified: a machine that swaps or a suspended
//! guest looks like that.
//!
//! All calls for one run must come from one thread, which must have started the run and nothing else that is still there.

use nix::sys::ptrace::{self, Options};
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid};
use nix::unistd::Pid;

use super::frozen::{ANY, Frozen, made_by};
use super::running::Running;
use super::wait::until;
use super::{Lease, proc};

/// Which process of a run is traced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// `lease` itself, with all its threads.
    Lease,
    /// Its watchdog: the first process that it forks.
    Watchdog,
    /// The child that is going to be the job, until it executes the program: the second one.
    Child,
}

/// A place in the life of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Point {
    /// At a stop of a thread.
    Stop {
        /// The number of the thread, in the order in which they were made.
        thread: usize,
        /// The number of the stop, from 1: odd at an exit, since the first one is that of its exec or clone; even at an entry.
        stop: usize,
    },
    /// At the exit of a system call of the first thread.
    After {
        /// Which one, as SYS_clone.
        call: i64,
        /// The how many-th of its kind, from 1.
        time: usize,
    },
}

/// Where a run that is traced has come to.
#[derive(Debug)]
pub enum Reached {
    /// To the point.
    Point(Frozen),
    /// To the end of the process (or of the child, to its exec), with so many stops of each thread.
    End(Vec<usize>),
}

/// A call that waits, once it is started, for [`run_to`].
pub fn waiting(call: Lease) -> Lease {
    call.wrapped(["sh", "-c", "kill -STOP $$; exec \"$@\"", "waiting"])
}

/// Lets a [`waiting`] call go until `target` is at `point`; without a point, to its end. `None` if nothing can be traced.
pub fn run_to(run: &Running, target: Target, point: Option<Point>) -> Option<Reached> {
    let leader = Pid::from_raw(run.pid());
    until("the call waits", || {
        proc::Process::find(run.pid()).is_some_and(|process| process.is_stopped())
    });
    let follow = match target {
        Target::Lease => Options::PTRACE_O_TRACECLONE,
        Target::Watchdog | Target::Child => Options::PTRACE_O_TRACEFORK,
    };
    let options = follow | Options::PTRACE_O_TRACESYSGOOD | Options::PTRACE_O_TRACEEXEC;
    let traced = ptrace::seize(leader, options);
    kill(leader, Signal::SIGCONT).expect("the call is there");
    traced.ok()?;
    let mut tracer = Tracer {
        leader,
        target,
        point,
        traced: (target == Target::Lease).then_some(leader),
        tracees: Vec::new(),
        stops: Vec::new(),
        call: String::new(),
        last: -1,
        times: 0,
        executed: false,
        forks: 0,
        early: Vec::new(),
    };
    Some(tracer.run())
}

struct Tracer {
    leader: Pid,
    target: Target,
    point: Option<Point>,
    /// The traced process, once it is there.
    traced: Option<Pid>,
    /// Its threads.
    tracees: Vec<Pid>,
    stops: Vec<usize>,
    call: String,
    /// The call that the first thread made last, and how often it has made the one that is waited for.
    last: i64,
    times: usize,
    /// Whether the call has become `lease`.
    executed: bool,
    forks: usize,
    /// Children whose first stop came before their parent's news of them.
    early: Vec<Pid>,
}

impl Tracer {
    fn run(&mut self) -> Reached {
        loop {
            let news = waitid(Id::All, ANY | WaitPidFlag::WNOWAIT).expect("a tracee");
            let pid = news.pid().expect("news of somebody");
            if matches!(news, WaitStatus::Exited(..) | WaitStatus::Signaled(..)) {
                if pid != self.leader {
                    consume(pid);
                }
                if pid == self.leader || Some(pid) == self.traced {
                    return Reached::End(std::mem::take(&mut self.stops));
                }
                continue;
            }
            match consume(pid) {
                WaitStatus::PtraceSyscall(_) if self.is_at_the_point(pid) => {
                    return Reached::Point(Frozen {
                        leader: self.leader,
                        held: pid,
                        tracees: std::mem::take(&mut self.tracees),
                        call: std::mem::take(&mut self.call),
                    });
                }
                WaitStatus::PtraceSyscall(_) => self.go_on(pid, None),
                WaitStatus::PtraceEvent(_, _, libc::PTRACE_EVENT_EXEC) => {
                    if self.executed {
                        let _ = ptrace::detach(pid, None);
                        return Reached::End(std::mem::take(&mut self.stops));
                    }
                    self.executed = true;
                    self.number(pid);
                    self.go_on(pid, None);
                }
                WaitStatus::PtraceEvent(_, _, libc::PTRACE_EVENT_CLONE) => {
                    self.number(made_by(pid));
                    self.go_on(pid, None);
                }
                WaitStatus::PtraceEvent(_, _, libc::PTRACE_EVENT_FORK) => self.forked(pid),
                WaitStatus::PtraceEvent(_, _, libc::PTRACE_EVENT_STOP) => {
                    let known = pid == self.leader || Some(pid) == self.traced;
                    if self.target == Target::Lease || known {
                        self.go_on(pid, None);
                    } else {
                        self.early.push(pid);
                    }
                }
                WaitStatus::PtraceEvent(_, signal, _) | WaitStatus::Stopped(_, signal) => {
                    self.go_on(pid, Some(signal));
                }
                WaitStatus::Exited(..)
                | WaitStatus::Signaled(..)
                | WaitStatus::Continued(_)
                | WaitStatus::StillAlive => {}
            }
        }
    }

    fn go_on(&self, pid: Pid, signal: Option<Signal>) {
        // It may have been killed meanwhile, which is the next news of it.
        let _ = if Some(pid) == self.traced || self.target == Target::Lease {
            ptrace::syscall(pid, signal)
        } else {
            ptrace::cont(pid, signal)
        };
    }

    fn number(&mut self, pid: Pid) -> usize {
        if let Some(known) = self.tracees.iter().position(|tracee| *tracee == pid) {
            return known;
        }
        self.tracees.push(pid);
        self.stops.push(0);
        self.stops.len() - 1
    }

    fn is_at_the_point(&mut self, pid: Pid) -> bool {
        if !self.executed {
            return false;
        }
        let thread = self.number(pid);
        self.stops[thread] += 1;
        match self.point {
            None => false,
            Some(Point::Stop { thread: at, stop }) => {
                let is_at = (thread, self.stops[thread]) == (at, stop);
                if is_at {
                    self.call = match entered(pid) {
                        Some(number) => format!("the entry of call {number}"),
                        None => "the exit of a call".to_owned(),
                    };
                }
                is_at
            }
            Some(Point::After { call, time }) => {
                if thread != 0 {
                    return false;
                }
                let is_entry = match entered(pid) {
                    Some(number) => {
                        self.last = number;
                        true
                    }
                    None => false,
                };
                if is_entry || self.last != call {
                    return false;
                }
                self.times += 1;
                self.times == time
            }
        }
    }

    /// `lease` has forked: this is the traced process, or one of no interest.
    fn forked(&mut self, parent: Pid) {
        let child = made_by(parent);
        self.forks += 1;
        match self.early.iter().position(|early| *early == child) {
            Some(at) => drop(self.early.remove(at)),
            None => drop(consume(child)),
        }
        let wanted = match self.target {
            Target::Lease => 0,
            Target::Watchdog => 1,
            Target::Child => 2,
        };
        if self.forks == wanted {
            let _ = ptrace::detach(parent, None);
            self.tracees.clear();
            self.stops.clear();
            self.number(child);
            self.traced = Some(child);
            self.go_on(child, None);
        } else {
            let _ = ptrace::detach(child, None);
            self.go_on(parent, None);
        }
    }
}

/// The call that a tracee is about to make; `None` at an exit.
fn entered(pid: Pid) -> Option<i64> {
    let info = ptrace::syscall_info(pid).ok()?;
    (info.op == libc::PTRACE_SYSCALL_INFO_ENTRY).then(|| {
        // SAFETY: at an entry this is the part that is filled in.
        #[allow(unsafe_code)]
        let number = unsafe { info.u.entry.nr };
        number as i64
    })
}

fn consume(pid: Pid) -> WaitStatus {
    waitid(Id::Pid(pid), ANY).expect("the news that were there a moment ago")
}
