//! The watchdog's process: fork, seclusion, the loop around the [`Switch`].
//!
//! After the fork only async-signal-safe calls are made, since the parent may have had threads: no heap, no lock, no
//! formatting, no panic. Errors have nobody to go to; what can fail is arranged so that failing means acting early.
//!
//! The watchdog can be stopped for a minute between any two lines, like every process:
//!
//! - Before it listens: what it is told waits in the pipe. The deadline of a job that runs already comes with the fork.
//! - Between the clock, the pipe and the decision: the clock is read first, so what is decided can be late, but never
//!   disregards a deadline that was moved in time.
//! - Between the decision and the signal: the signal is late. It is not wrong by then, because `lease` does not take a lost
//!   lease back. A pidfd names the job's group or nobody. Before Linux 6.9 the group goes by number, and a number that
//!   was free for long may be somebody else's.
//! - While `lease` is stopped too: nobody is left to stop the job. Where `lease` runs, it replaces a watchdog that was
//!   stopped by a signal.

use std::io;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::time::Duration;

use libc::{c_int, c_uint, pid_t};
use nix::errno::Errno;
use nix::sys::signal::{SIGALRM, SIGKILL, SigSet, kill};
use nix::sys::time::TimeSpec;
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};
use nix::sys::wait::waitpid;
use nix::unistd::Pid;

use super::switch::{Act, Switch};
use super::wire::{Message, SIZE};
use crate::clock::BootTime;
use crate::job::Signal;
use crate::process::{Group, block_all, rename_forked, set_mask};

/// Where the read end of the pipe lives in the watchdog.
const PIPE: RawFd = 3;
/// Where the pidfd of a job lives that was there before this watchdog.
const PIDFD: RawFd = 4;
/// The first number that is in the way of neither.
const AWAY: c_int = 10;

/// How often a stop looks whether the group is gone, so that the watchdog does not stay for a grace that nobody needs.
const LOOK: Duration = Duration::from_millis(20);

/// fork(2)s; the child becomes the watchdog and never returns. Answers the child's id.
pub(super) fn fork_into(
    read: &OwnedFd,
    grace: Duration,
    job: Option<(&Group, Message)>,
    line: &str,
) -> io::Result<pid_t> {
    // Not a single signal may reach a handler in the child: ours tell the parent's loop what they see.
    let before = block_all()?;
    // SAFETY: the child only runs `watch`, which is async-signal-safe and does not return.
    let pid = unsafe { libc::fork() };
    if pid == 0 {
        watch(&Legacy {
            read: read.as_raw_fd(),
            grace,
            job,
            line: line.as_bytes(),
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

/// KILLs and reaps a child that was not reaped yet.
pub(super) fn kill_and_reap(pid: pid_t) {
    // The number is the child's own until it is reaped.
    let child = Pid::from_raw(pid);
    let _: nix::Result<()> = kill(child, SIGKILL);
    while waitpid(child, None) == Err(Errno::EINTR) {}
}

fn last_errno() -> c_int {
    io::Error::last_os_error().raw_os_error().unwrap_or(0)
}

/// What the child has from its parent.
struct Legacy<'a> {
    read: RawFd,
    grace: Duration,
    /// A job that runs already, and what there is to know about its time.
    job: Option<(&'a Group, Message)>,
    line: &'a [u8],
}

/// `extern "C"`, so that a panic, which can't happen, would abort instead of unwinding into a copy of `lease`.
extern "C" fn watch(legacy: &Legacy<'_>) -> ! {
    seclude();
    let group = keep_descriptors(legacy);
    let mut watch = Watch {
        switch: Switch::new(legacy.grace),
        group,
        timer: timer(),
        sure: false,
        line: legacy.line,
        said: false,
    };
    if let Some((_, message)) = legacy.job {
        watch.switch.job_is_known();
        watch.switch.hear(message);
    }
    watch.run();
    // SAFETY: _exit(2) is always allowed, and runs nothing of the parent's.
    unsafe { libc::_exit(0) }
}

/// Leaves everything behind that ties it to a terminal, a mount, a pipeline or a signal.
fn seclude() {
    // SAFETY: none of the calls reads memory but the strings, which end with a NUL. The process has one thread.
    unsafe {
        libc::setsid();
        libc::prctl(libc::PR_SET_NAME, c"job-watchdog".as_ptr());
        rename_forked(c"job-watchdog");
        // A working directory would keep its file system from being unmounted for as long as the job runs.
        libc::chdir(c"/".as_ptr());
        for signal in 1..=64 {
            // Those that a fault raises stay as they are: ignoring them would not help, and blocked they kill.
            if !matches!(
                signal,
                libc::SIGSEGV | libc::SIGBUS | libc::SIGILL | libc::SIGFPE
            ) {
                libc::signal(signal, libc::SIG_IGN);
            }
        }
    }
}

/// Keeps the pipe, the job's pidfd if there is one, and stderr; closes all others.
fn keep_descriptors(legacy: &Legacy<'_>) -> Option<Group> {
    // SAFETY: no memory is read but the string, which ends with a NUL. Nothing of the parent's is used any more but what
    // is moved here, out of the way of the numbers that it is moved to.
    unsafe {
        let pidfd = legacy.job.and_then(|(job, _)| job.pidfd());
        let pidfd = pidfd.map(|fd| libc::fcntl(fd.as_raw_fd(), libc::F_DUPFD, AWAY));
        let read = libc::fcntl(legacy.read, libc::F_DUPFD, AWAY);
        if libc::dup2(read, PIPE) != PIPE {
            // Whatever has that number is not ours to read. Without it the pipe counts as closed.
            libc::close(PIPE);
        }
        let pidfd = pidfd
            .filter(|fd| libc::dup2(*fd, PIDFD) == PIDFD)
            .map(|_| PIDFD);
        close_from(if pidfd.is_some() { PIDFD } else { PIPE } + 1);
        // Kept off stdin and stdout: a pipeline behind `lease run` must end when the job does. A later open(2) must not
        // get their numbers, so they stay taken.
        let null = libc::open(c"/dev/null".as_ptr(), libc::O_RDWR);
        for fd in [0, 1] {
            if null < 0 || libc::dup2(null, fd) < 0 {
                libc::close(fd);
            }
        }
        libc::close(null);
        legacy
            .job
            .map(|(job, _)| job.adopted(pidfd.map(|fd| OwnedFd::from_raw_fd(fd))))
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

/// A timer on the boot-time clock, which a suspended machine's sleep counts for; poll(2)'s own timeout stands still
/// there. If there is none, poll(2) must do.
fn timer() -> Option<TimerFd> {
    let flags = TimerFlags::TFD_NONBLOCK | TimerFlags::TFD_CLOEXEC;
    TimerFd::new(ClockId::CLOCK_BOOTTIME, flags).ok()
}

struct Watch<'a> {
    switch: Switch,
    group: Option<Group>,
    timer: Option<TimerFd>,
    /// Where the group only goes by number: whether the number is still certain to be the job's.
    sure: bool,
    /// What it says once it has stopped the job.
    line: &'a [u8],
    said: bool,
}

impl Watch<'_> {
    fn run(&mut self) {
        loop {
            // The clock is read first, and all that was said is heard before anything is done: the pipe of a `lease` that
            // said goodbye closes like that of one that was killed, and a deadline may have been moved. One that was moved
            // before it had come is always heard in time, however long this process is stopped in between.
            let now = BootTime::now();
            self.listen();
            self.look();
            let act = self.switch.act(now);
            if self.switch.has_stopped_the_job(now) && !self.said {
                self.said = true;
                say(self.line);
            }
            match act {
                Act::Wait(until) => self.wait(until),
                Act::Term => {
                    // A stopped process acts on TERM only once it is continued.
                    if self.signal(Signal::TERM) {
                        self.switch.has_hit();
                        self.signal(Signal::CONT);
                    }
                }
                Act::Kill => {
                    if self.signal(Signal::KILL) {
                        self.switch.has_hit();
                    }
                }
                Act::Leave => return,
            }
        }
    }

    fn listen(&mut self) {
        loop {
            let mut bytes = [0; SIZE];
            // SAFETY: the buffer is as long as it says.
            let got = unsafe { libc::read(PIPE, bytes.as_mut_ptr().cast(), SIZE) };
            if got == SIZE as isize {
                let Some(message) = Message::decode(bytes) else {
                    continue;
                };
                if let Message::Group(id) = message {
                    self.group = Group::open_late(id);
                    if self.group.is_none() {
                        continue;
                    }
                }
                self.switch.hear(message);
            } else if got < 0 && last_errno() == libc::EINTR {
                continue;
            } else if got < 0 && last_errno() == libc::EAGAIN {
                return;
            } else {
                // The end of the pipe, or a pipe that can't be read any more: nobody is there to keep the job in check.
                if !self.switch.is_alone() {
                    // Until a moment ago `lease` kept the number from being used again, one way or another.
                    self.sure = true;
                }
                self.switch.pipe_closed(BootTime::now());
                return;
            }
        }
    }

    /// Whether the group is gone, while that matters. Only the kernel's answer counts, never a look at /proc
    /// (`process::group`).
    fn look(&mut self) {
        if self.switch.is_stopping(BootTime::now()) && self.signal(Signal::NONE) {
            // A number is not given out while a group has it, so this one is sure until the next look, a moment from now.
            self.sure = true;
        }
    }

    /// Signals the group, and answers whether it is there. A number that may be somebody else's by now is not signalled.
    fn signal(&mut self, signal: Signal) -> bool {
        let there = self.group.as_ref().is_some_and(|group| {
            let known = self.sure || !group.goes_by_number() || group.has_leader();
            known
                && !matches!(group.signal(signal), Err(e) if e.raw_os_error() == Some(libc::ESRCH))
        });
        if !there {
            self.switch.job_is_gone();
        }
        there
    }

    fn wait(&mut self, until: Option<BootTime>) {
        let now = BootTime::now();
        let stopping = self.switch.is_stopping(now);
        let until = match until {
            Some(at) if stopping => Some(at.min(now + LOOK)),
            other => other,
        };
        self.sure = self.sure && stopping;
        self.arm(until);
        let mut fds = [
            libc::pollfd {
                // A closed pipe is always ready; a negative number is passed over.
                fd: if self.switch.is_alone() { -1 } else { PIPE },
                events: libc::POLLIN,
                revents: 0,
            },
            libc::pollfd {
                fd: self.timer.as_ref().map_or(-1, |t| t.as_fd().as_raw_fd()),
                events: libc::POLLIN,
                revents: 0,
            },
        ];
        // Without a timer the clock is read every second, which is late by as much after a suspend.
        let timeout = match until {
            Some(at) if self.timer.is_none() => {
                c_int::try_from(at.remaining().as_millis().min(999)).unwrap_or(999) + 1
            }
            Some(_) | None => -1,
        };
        // SAFETY: the array has the length that is given.
        unsafe { libc::poll(fds.as_mut_ptr(), 2, timeout) };
    }

    fn arm(&self, until: Option<BootTime>) {
        let Some(timer) = &self.timer else { return };
        // Setting it also takes back that it has fired.
        let _: nix::Result<()> = match until {
            None => timer.unset(),
            Some(at) => {
                // Zero would disarm it; an instant that has passed fires at once.
                let at = Duration::from_nanos(at.as_nanos().max(1));
                let at = Expiration::OneShot(TimeSpec::from_duration(at));
                timer.set(at, TimerSetTimeFlags::TFD_TIMER_ABSTIME)
            }
        };
    }
}

/// One line on stderr, after everything else is done, and never for long: stderr may be a pipe that nobody reads or a
/// terminal held by Ctrl-S. An alarm ends the process then.
fn say(line: &[u8]) {
    let mut open = SigSet::all();
    open.remove(SIGALRM);
    // SAFETY: the buffer is as long as it says; the set is a valid one, and nothing else runs in this process.
    unsafe {
        libc::signal(libc::SIGALRM, libc::SIG_DFL);
        let _: io::Result<()> = set_mask(open);
        libc::alarm(1);
        libc::write(2, line.as_ptr().cast(), line.len());
        libc::alarm(0);
        libc::signal(libc::SIGALRM, libc::SIG_IGN);
    }
}
