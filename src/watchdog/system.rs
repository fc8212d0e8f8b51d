//! The watchdog's process: the fork, the detachment from its surroundings, and the loop around the [`Switch`].
//!
//! The parent may have had threads, so the child makes only async-signal-safe calls: no heap, no lock, no formatting,
//! no panic. It cannot report an error. So wherever something can fail, a failure makes it act early.
//!
//! Like every process, the watchdog can be stopped for a minute between any two lines:
//!
//! - Before it reads its first message: the messages wait in the pipe. The deadline of a running job comes with the fork.
//! - Between the clock, the pipe and the decision: the clock is read first. So the decision can be late, but it respects
//!   every deadline that was moved in time.
//! - Between the decision and the signal: the signal is late. It is still right, because a lost lease stays lost. A pidfd
//!   can only mean the job's group. Before Linux 6.9 the group is signalled by its number, which another group may have
//!   by then if it was free for long.
//! - While `lease` is stopped too: nothing stops the job. A `lease` that runs replaces a watchdog that was stopped by a
//!   signal.

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
use crate::clock::{self, BootTime};
use crate::job::Signal;
use crate::process::{Group, block_all, rename_forked, set_mask};
use crate::text::PreparedLine;

/// The descriptor of the read end of the pipe in the watchdog.
const PIPE: RawFd = 3;
/// The descriptor of the pidfd, if the job runs already.
const PIDFD: RawFd = 4;
/// Descriptors from here on are used while the two above are put in place.
const AWAY: c_int = 10;

/// How often the watchdog checks during a stop whether the group is gone, so that it does not wait for the whole grace
/// period without need.
const LOOK: Duration = Duration::from_millis(20);

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

fn last_errno() -> c_int {
    io::Error::last_os_error().raw_os_error().unwrap_or(0)
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
    let group = keep_descriptors(inherited);
    let mut watch = Watch {
        switch: Switch::new(inherited.grace),
        group,
        timer: timer(),
        sure: false,
        line: inherited.line,
        reported: false,
    };
    if let Some((_, message)) = inherited.job {
        watch.switch.job_is_known();
        watch.switch.hear(message);
    }
    watch.run();
    // SAFETY: _exit(2) is always allowed, and runs nothing of the parent's.
    unsafe { libc::_exit(0) }
}

/// Detaches the process from the terminal, the working directory and signals.
fn detach() {
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
fn keep_descriptors(inherited: &Inherited<'_>) -> Option<Group> {
    // SAFETY: no memory is read but the string, which ends with a NUL. Nothing of the parent's is used any more but what
    // is moved here, out of the way of the numbers that it is moved to.
    unsafe {
        let pidfd = inherited.job.and_then(|(job, _)| job.pidfd());
        let pidfd = pidfd.map(|fd| libc::fcntl(fd.as_raw_fd(), libc::F_DUPFD, AWAY));
        let read = libc::fcntl(inherited.read, libc::F_DUPFD, AWAY);
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
        inherited
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

/// A timer on the boot-time clock, which goes on while the machine is suspended. The timeout of poll(2) does not, and is
/// used only if there is no timer.
fn timer() -> Option<TimerFd> {
    let flags = TimerFlags::TFD_NONBLOCK | TimerFlags::TFD_CLOEXEC;
    TimerFd::new(ClockId::CLOCK_BOOTTIME, flags).ok()
}

struct Watch<'a> {
    switch: Switch,
    group: Option<Group>,
    timer: Option<TimerFd>,
    /// If the group can only be signalled by its number: whether the number certainly still means the job.
    sure: bool,
    /// The message to write once it has stopped the job.
    line: &'a PreparedLine,
    reported: bool,
}

impl Watch<'_> {
    fn run(&mut self) {
        loop {
            // All messages are read before anything is done. One may be a goodbye, after which the pipe closes as if
            // `lease` had been killed; another one may move the deadline. The clock is read before them, so that a deadline
            // that was moved in time counts, however long this process is stopped in between.
            let now = BootTime::now();
            self.listen();
            self.look();
            let act = self.switch.act(now);
            if self.switch.has_stopped_the_job(now) && !self.reported {
                self.reported = true;
                write_to_stderr(self.line);
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
                // The pipe is closed or cannot be read: no other process can stop the job now.
                if !self.switch.is_alone() {
                    // Until a moment ago, `lease` made sure that no other group could get the number.
                    self.sure = true;
                }
                self.switch.pipe_closed(BootTime::now());
                return;
            }
        }
    }

    /// During a stop, checks whether the group is gone. Only the kernel's answer to a signal counts, never /proc; see
    /// `process::group`.
    fn look(&mut self) {
        if self.switch.is_stopping(BootTime::now()) && self.signal(Signal::NONE) {
            // The kernel does not reuse the number of an existing group, so it is safe until the next look, a moment from
            // now.
            self.sure = true;
        }
    }

    /// Signals the group. Returns whether it exists. If another group may have the number by now, no signal is sent.
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
                // A closed pipe would always be ready. poll(2) ignores a negative descriptor.
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
        // Without a timer the clock is read every second. After a suspend the watchdog is late by up to a second.
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
        // Setting the timer also clears an earlier expiry.
        let _: nix::Result<()> = match until {
            None => timer.unset(),
            Some(at) => {
                // Zero would disarm the timer. A time in the past fires at once.
                let at = Duration::from_nanos(at.as_nanos().max(1));
                let at = Expiration::OneShot(TimeSpec::from_duration(at));
                timer.set(at, TimerSetTimeFlags::TFD_TIMER_ABSTIME)
            }
        };
    }
}

/// Writes one line to stderr, after everything else is done. The write can block, if nobody reads the pipe or Ctrl-S has
/// stopped the terminal. An alarm then ends the process after a second.
fn write_to_stderr(line: &PreparedLine) {
    let now = clock::utc_now();
    let parts = line.at(&now).map(|part| libc::iovec {
        iov_base: part.as_ptr().cast_mut().cast(),
        iov_len: part.len(),
    });
    let mut open = SigSet::all();
    open.remove(SIGALRM);
    // SAFETY: the parts are as long as they say; the set is a valid one, and nothing else runs in this process.
    unsafe {
        libc::signal(libc::SIGALRM, libc::SIG_DFL);
        let _: io::Result<()> = set_mask(open);
        libc::alarm(1);
        // In one call, so that lines of several processes do not mix. It only reads.
        libc::writev(2, parts.as_ptr(), parts.len() as c_int);
        libc::alarm(0);
        libc::signal(libc::SIGALRM, libc::SIG_IGN);
    }
}
