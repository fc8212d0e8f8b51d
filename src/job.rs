//! What every room says about a job: its signals, its end, and what a lost lease means for it.
#![forbid(unsafe_code)]

use clap::ValueEnum;

/// The number of a signal, as in signal(7). Not an enum, because real-time signals are passed on too.
pub type Signo = i32;

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// By exit(3) with this code, 0 to 255.
    Code(u8),
    /// By this signal.
    Signal(Signo),
}

/// Whose group is in the foreground of the terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Foreground {
    /// The job's.
    Job,
    /// That of `lease`.
    Own,
    /// Another one, or there is no terminal to be shared with the job.
    Other,
}

/// What one look at the job's group has found.
///
/// Only [`Empty`](Self::Empty) is a proof by itself: it is what the kernel answers to a signal. Everything else is read from
/// /proc process by process, while processes start others and end; see `process::group` for what it is worth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leftovers {
    /// The group has no member, not even a zombie.
    Empty,
    /// The group has members, and no look has found one that is alive.
    OnlyZombies {
        /// Whether a signal to the group reaches every one of those that were found.
        reached: bool,
    },
    /// The group has live members.
    Alive {
        /// How many were found.
        count: usize,
        /// When the newest of them was started, in a unit of the kernel's: more, if it was later.
        newest: u64,
    },
    /// The group has members, and it can't be told whether one is alive.
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
