//! The types with which every room describes a job: its signals, its end, and what a lost lease means for it.
#![forbid(unsafe_code)]

use std::ffi::c_int;
use std::fmt;

use clap::ValueEnum;

/// A signal, by its number in signal(7). Not an enum, because real-time signals are passed on too.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Signal(c_int);

impl Signal {
    /// No signal: kill(2) with it only checks whether there is a process to signal.
    pub const NONE: Self = Self(0);
    /// The terminal was closed, or a configuration file should be read again.
    pub const HUP: Self = Self(libc::SIGHUP);
    /// Ctrl-C.
    pub const INT: Self = Self(libc::SIGINT);
    /// Ctrl-\\.
    pub const QUIT: Self = Self(libc::SIGQUIT);
    /// End at once; cannot be caught.
    pub const KILL: Self = Self(libc::SIGKILL);
    /// For the program's own use.
    pub const USR1: Self = Self(libc::SIGUSR1);
    /// For the program's own use.
    pub const USR2: Self = Self(libc::SIGUSR2);
    /// A timer has run out.
    pub const ALRM: Self = Self(libc::SIGALRM);
    /// End.
    pub const TERM: Self = Self(libc::SIGTERM);
    /// A child ended, stopped or was continued.
    pub const CHLD: Self = Self(libc::SIGCHLD);
    /// Continue if stopped.
    pub const CONT: Self = Self(libc::SIGCONT);
    /// Stop; cannot be caught.
    pub const STOP: Self = Self(libc::SIGSTOP);
    /// Ctrl-Z.
    pub const TSTP: Self = Self(libc::SIGTSTP);
    /// A background process reads the terminal.
    pub const TTIN: Self = Self(libc::SIGTTIN);
    /// A background process writes to the terminal.
    pub const TTOU: Self = Self(libc::SIGTTOU);
    /// The size of the terminal has changed.
    pub const WINCH: Self = Self(libc::SIGWINCH);
    /// The power fails.
    pub const PWR: Self = Self(libc::SIGPWR);

    /// The signal with this number.
    #[must_use]
    pub const fn new(number: c_int) -> Self {
        Self(number)
    }

    /// Its number.
    #[must_use]
    pub const fn number(self) -> c_int {
        self.0
    }
}

impl fmt::Display for Signal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// By exit(3) with this code, 0 to 255.
    Code(u8),
    /// By this signal.
    Signal(Signal),
}

/// Which process group is in the foreground of the terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Foreground {
    /// The job's.
    Job,
    /// The group of `lease`.
    Own,
    /// Another one, or there is no terminal that `lease` could share with the job.
    Other,
}

/// What one look at the job's group found.
///
/// Only [`Empty`](Self::Empty) is a proof by itself: it is the kernel's answer to a signal. Everything else is read
/// from /proc, process by process, while processes start and end. `process::group` says how reliable that is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leftovers {
    /// The group has no member, not even a zombie.
    Empty,
    /// The group has members, but the look found none that is alive.
    OnlyZombies {
        /// Whether a signal to the group reaches every process that was found.
        reached: bool,
    },
    /// The group has live members.
    Alive {
        /// How many of them were found.
        count: usize,
        /// When the newest of them was started, in a unit of the kernel. A larger number is later.
        newest: u64,
    },
    /// The group has members, but it is unknown whether one is alive.
    Unknown {
        /// Whether a signal to the group reaches at least one of them.
        reached: bool,
    },
}

/// What happens to the job when its lease is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum OnLoss {
    /// Stop the job and exit 76
    Stop,
    /// Report the loss; the job runs on without the lease
    Continue,
}
