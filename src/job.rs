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

/// What happens to the job when its lease is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum OnLoss {
    /// Stop the job and exit 76
    Stop,
    /// Report the loss; the job runs on without the lease
    Continue,
}
