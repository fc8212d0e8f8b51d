//! The table of exit codes. Scripts rely on it; README.md and the man pages print it.
//!
//! 75 is `EX_TEMPFAIL` and 69 is `EX_UNAVAILABLE` of sysexits(3); 125 to 127 are what env(1), nohup(1) and
//! timeout(1) use; 76 stands beside 75 on purpose: "not yours" and "no longer yours".

/// How `lease` ends, when it is not by the signal or the code of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Exit {
    /// Done.
    Done = 0,
    /// `status --exit-code`: a named key is not held.
    NotHeld = 1,
    /// Wrong usage: nothing was touched.
    Usage = 2,
    /// The database can't be reached, did not answer in time, or refused.
    Unavailable = 69,
    /// Someone else holds the lease.
    Conflict = 75,
    /// The caller is not, or no longer, the holder.
    Lost = 76,
    /// `lease` itself failed.
    Failed = 125,
    /// The command was found but can't be executed.
    CannotExecute = 126,
    /// The command was not found.
    NotFound = 127,
}

impl Exit {
    /// The code as the operating system gets it.
    #[must_use]
    pub const fn code(self) -> u8 {
        self as u8
    }
}

/// The table as it is printed, code and meaning; one place for help text, man pages and tests.
pub const TABLE: &[(&str, &str)] = &[
    ("0", "done"),
    ("1", "status --exit-code: not held"),
    (
        "2",
        "wrong usage, including a key, ttl or fence that can't be valid: nothing was touched",
    ),
    (
        "69",
        "the database can't be reached, did not answer in time, or refused (the message says which)",
    ),
    (
        "75",
        "someone else holds the lease; also when --wait ran out",
    ),
    (
        "76",
        "the lease is lost: the caller is not, or no longer, its holder",
    ),
    ("125", "lease itself failed"),
    (
        "126, 127",
        "run: the command can't be executed, was not found (as a shell reports it)",
    ),
    (
        "other",
        "run: the job's own code; a job ended by a signal ends lease by that signal (128 + n in a shell)",
    ),
];
