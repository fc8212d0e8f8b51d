//! Gives the terminal to the job and takes it back, as a shell does.
//!
//! A process group that is not the terminal's foreground group cannot read from the terminal, and does not get its
//! Ctrl-C. The job's group is a new one. So `lease` gives it the terminal if `lease` itself is in the foreground, and
//! takes it back when the job stops or ends. See tcsetpgrp(3), termios(3), and "Implementing a Job Control Shell" in
//! the GNU C Library manual.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::os::unix::fs::OpenOptionsExt;

use libc::pid_t;
use nix::errno::Errno;
use nix::sys::signal::{SIGCONT, SIGTTOU, SigSet, SigmaskHow, kill};
use nix::sys::termios::{SetArg, Termios, tcgetattr, tcsetattr};
use nix::unistd::{Pid, getpgrp, tcgetpgrp, tcsetpgrp};

use super::inherited::{block_ttou, ignored_at_start, set_disposition, unblock_ttou};
use super::procfs::own_group_is_orphaned;
use crate::job::{Foreground, Signal};

/// The width of the terminal on stdout, in columns; `None` if stdout is not a terminal or its width is unknown.
#[must_use]
pub fn terminal_columns() -> Option<usize> {
    let mut size = libc::winsize {
        ws_row: 0,
        ws_col: 0,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    // SAFETY: ioctl_tty(2): TIOCGWINSZ writes one winsize, which `size` is.
    let answered = unsafe { libc::ioctl(libc::STDOUT_FILENO, libc::TIOCGWINSZ, &raw mut size) };
    (answered == 0 && size.ws_col > 0).then(|| size.ws_col.into())
}

/// The controlling terminal, which `lease` can give to a job.
#[derive(Debug)]
pub struct Terminal {
    tty: File,
    /// The terminal's modes before the job got it.
    modes: Option<Termios>,
    /// The job's group.
    job: Option<Pid>,
}

impl Terminal {
    /// This process's controlling terminal, if it has one that it may share with a job.
    ///
    /// `None` in an asynchronous list of a shell without job control (`lease run k -- job &` in a script), which is
    /// recognized by INT being ignored (POSIX, 2.11). That command is in the same group as the script. If the job got
    /// the terminal, a Ctrl-C would no longer reach the script.
    #[must_use]
    pub fn open() -> Option<Self> {
        if ignored_at_start(Signal::INT) {
            return None;
        }
        let tty = OpenOptions::new()
            .read(true)
            .write(true)
            .custom_flags(libc::O_NOCTTY)
            .open("/dev/tty")
            .ok()?;
        Some(Self {
            tty,
            modes: None,
            job: None,
        })
    }

    /// What the job's child needs to take the terminal for its group, if this process's group is in the foreground now.
    /// In the background (`lease run k -- job &` in an interactive shell), `lease` does not have the terminal before a
    /// `fg`.
    pub(super) fn for_child(&mut self) -> Option<ChildTerminal> {
        self.is_ours().then(|| {
            self.remember_modes();
            ChildTerminal(self.tty.as_raw_fd())
        })
    }

    /// Records that the job was started as this process, the leader of its group.
    pub(super) fn is_for(&mut self, job: pid_t) {
        self.job = Some(Pid::from_raw(job));
    }

    /// Which group is in the foreground.
    #[must_use]
    pub fn foreground(&self) -> Foreground {
        match tcgetpgrp(&self.tty) {
            Ok(group) if group == getpgrp() => Foreground::Own,
            Ok(group) if Some(group) == self.job => Foreground::Job,
            Ok(_) | Err(_) => Foreground::Other,
        }
    }

    /// Gives the terminal to the job, if this process's group is in the foreground now. A shell's `fg` puts it there,
    /// its `bg` does not.
    pub fn give(&mut self) {
        if let Some(job) = self.job
            && self.is_ours()
        {
            self.remember_modes();
            let _: nix::Result<()> = self.set_foreground(job);
        }
    }

    fn is_ours(&self) -> bool {
        self.foreground() == Foreground::Own
    }

    /// Only in the foreground are these the modes that a job would find. A shell that waits for input has set its own.
    fn remember_modes(&mut self) {
        if self.modes.is_none() {
            self.modes = tcgetattr(&self.tty).ok();
        }
    }

    /// Takes the terminal back if the job's group has it, or a group that no longer has a member. It is not taken from
    /// any other group: a shell may have given it the terminal meanwhile.
    ///
    /// With `restore_modes`, this also restores the modes that the terminal had before the job. bash(1) does this after
    /// a job that was ended by a signal, because a killed editor leaves the terminal without echo. If a job ended by
    /// itself, the modes that it has set (`stty`) stay.
    pub fn take_back(&self, restore_modes: bool) {
        let own = getpgrp();
        let Ok(holder) = tcgetpgrp(&self.tty) else {
            return;
        };
        if holder != own {
            if self.job != Some(holder) && !is_empty(holder) {
                return;
            }
            let _: nix::Result<()> = self.set_foreground(own);
        }
        if restore_modes
            && self.is_ours()
            && let Some(modes) = &self.modes
        {
            // At once, because on a terminal held by Ctrl-S the output may never drain.
            let _: nix::Result<()> = tcsetattr(&self.tty, SetArg::TCSANOW, modes);
        }
    }

    fn set_foreground(&self, group: Pid) -> nix::Result<()> {
        // In the background, the call sends TTOU to the caller's group unless TTOU is blocked (tcsetpgrp(3)).
        without_ttou(|| tcsetpgrp(self.tty.as_fd(), group))
    }
}

fn is_empty(group: Pid) -> bool {
    group.as_raw() <= 0 || kill(Pid::from_raw(-group.as_raw()), None) == Err(Errno::ESRCH)
}

fn without_ttou<T>(call: impl FnOnce() -> nix::Result<T>) -> nix::Result<T> {
    let ttou: SigSet = [SIGTTOU].into_iter().collect();
    let before = ttou.thread_swap_mask(SigmaskHow::SIG_BLOCK)?;
    let answer = call();
    before.thread_set_mask()?;
    answer
}

/// The terminal, for the job's child before its exec. All signals are blocked there, including TTOU.
#[derive(Clone, Copy, Debug)]
pub(super) struct ChildTerminal(RawFd);

impl ChildTerminal {
    /// Gives the terminal to the calling process's group. Async-signal-safe.
    pub(super) fn give_to_caller(self) -> io::Result<()> {
        // SAFETY: neither call reads memory; the descriptor is the parent's, open until the exec.
        if unsafe { libc::tcsetpgrp(self.0, libc::getpid()) } == 0 {
            Ok(())
        } else {
            Err(io::Error::last_os_error())
        }
    }
}

/// The result of [`stop_own_group`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopOutcome {
    /// This process was stopped, and has been continued.
    Continued,
    /// It was not stopped: its group is orphaned, so the kernel does not stop it, or the signal is ignored.
    StayedAwake,
}

/// Stops this process by TSTP, TTIN or TTOU, and returns when it is continued. With `whole_group`, its whole group is
/// stopped, as the terminal would have done if the group were still in the foreground. A script around `lease`, or its
/// neighbours in a pipeline, must stop too.
///
/// Must be called by the main thread: the kernel delivers a process's signal to that one first, so it is stopped before
/// the call returns. Whether it will be stopped is determined beforehand. Afterwards this is unknown, because another
/// thread may still be handling the CONT.
#[must_use]
pub fn stop_own_group(signal: Signal, whole_group: bool) -> StopOutcome {
    if ignored_at_start(signal) || own_group_is_orphaned() {
        return StopOutcome::StayedAwake;
    }
    let Ok(old) = set_disposition(signal, libc::SIG_DFL) else {
        return StopOutcome::StayedAwake;
    };
    let _: io::Result<()> = unblock_ttou();
    // SAFETY: neither call reads memory.
    unsafe {
        let whom = if whole_group { 0 } else { libc::getpid() };
        libc::kill(whom, signal.number());
    }
    let _: io::Result<()> = block_ttou();
    // SAFETY: `old` is the disposition that was set until a moment ago.
    unsafe { libc::sigaction(signal.number(), &raw const old, std::ptr::null_mut()) };
    StopOutcome::Continued
}

/// Continues this process's own group, including this process.
pub fn wake_own_group() {
    let _: nix::Result<()> = kill(Pid::from_raw(0), SIGCONT);
}
