//! The table of exit codes. Scripts rely on it; README.md and the man pages print it.
//!
//! 75 is `EX_TEMPFAIL` and 69 is `EX_UNAVAILABLE` of sysexits(3). 125 to 127 are used as by env(1), nohup(1) and
//! timeout(1). 76 is next to 75 on purpose: "not yours" and "no longer yours".

/// How `lease` ends, unless it ends as its job did.
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
    /// Someone else holds the lease, the key is cooling, or a run is not due.
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
    /// The exit code.
    #[must_use]
    pub const fn code(self) -> u8 {
        self as u8
    }
}

/// A row of the table: code and meaning.
pub type Row = (&'static str, &'static str);

pub(crate) const DONE: Row = ("0", "done");
pub(crate) const USAGE: Row = (
    "2",
    "wrong usage, such as a key, ttl or fence that is not valid; nothing was changed",
);
pub(crate) const UNAVAILABLE: Row = (
    "69",
    "the database can't be reached, did not answer in time, or refused; the message says which",
);
pub(crate) const LOST: Row = ("76", "the caller has lost the lease, or never had it");
pub(crate) const FAILED: Row = ("125", "lease itself failed");

/// The table as README.md and lease(1) print it. The pages of the verbs have only the rows that the verb needs.
pub const TABLE: &[Row] = &[
    DONE,
    (
        "1",
        "status --exit-code: a named key is not held; history --overdue: a key is overdue",
    ),
    USAGE,
    UNAVAILABLE,
    (
        "75",
        "not now: someone else holds the lease, the key is cooling, or the run is not due (--once-per); -E sets another code",
    ),
    LOST,
    FAILED,
    ("126", "run: the command was found but can't be executed"),
    ("127", "run: the command was not found"),
    (
        "other",
        "run: the job's own exit code; if a signal ended the job, lease ends by the same signal (128 + n in a shell)",
    ),
];
