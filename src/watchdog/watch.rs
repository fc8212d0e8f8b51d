//! The loop of the watchdog's process around the [`Switch`].
//!
//! Everything here is async-signal-safe; see `system.rs`. Like every process, the watchdog can be stopped for a minute
//! between any two lines:
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
use std::os::fd::{AsFd, AsRawFd};
use std::time::Duration;

use libc::c_int;
use nix::sys::signal::{SIGALRM, SigSet};
use nix::sys::time::TimeSpec;
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};

use super::detach::PIPE;
use super::switch::{Act, Switch};
use super::wire::{Message, SIZE};
use crate::clock::{self, BootTime};
use crate::job::Signal;
use crate::process::{Group, set_mask};
use crate::text::PreparedLine;

/// How often the watchdog checks during a stop whether the group is gone, so that it does not wait for the whole grace
/// period without need.
const LOOK: Duration = Duration::from_millis(20);

/// A timer on the boot-time clock, which goes on while the machine is suspended. The timeout of poll(2) does not, and is
/// used only if there is no timer.
fn timer() -> Option<TimerFd> {
    let flags = TimerFlags::TFD_NONBLOCK | TimerFlags::TFD_CLOEXEC;
    TimerFd::new(ClockId::CLOCK_BOOTTIME, flags).ok()
}

/// The watchdog after its fork.
pub(super) struct Watch<'a> {
    switch: Switch,
    group: Option<Group>,
    timer: Option<TimerFd>,
    /// If the group can only be signalled by its number: whether the number certainly still means the job.
    sure: bool,
    /// The message to write once it has stopped the job.
    line: &'a PreparedLine,
    reported: bool,
}

impl<'a> Watch<'a> {
    /// `order` is for a job that runs already.
    pub(super) fn new(
        group: Option<Group>,
        order: Option<Message>,
        grace: Duration,
        line: &'a PreparedLine,
    ) -> Self {
        let mut switch = Switch::new(grace);
        if let Some(order) = order {
            switch.job_is_known();
            switch.hear(order);
        }
        Self {
            switch,
            group,
            timer: timer(),
            sure: false,
            line,
            reported: false,
        }
    }

    /// Returns when there is nothing left to do.
    pub(super) fn run(&mut self) {
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

fn last_errno() -> c_int {
    io::Error::last_os_error().raw_os_error().unwrap_or(0)
}
