//! From the start of the job until nothing of it is left.
//!
//! | stage | what it means | what ends it |
//! |---|---|---|
//! | running | the job runs and its lease is trusted | the job's end, or a reason to stop it |
//! | stopping | TERM and CONT were sent, KILL is due | the job's end |
//! | sweeping | the job is reaped; others of its group may be left | the proof that nothing of its group acts any more |
//! | done | nothing of the job is left | |
//!
//! A look that finds no live process does not end a run, because a group that keeps forking can look like that
//! (`process::group` has the argument). The run ends if the kernel says that the group is empty, or if a look that
//! began after a KILL finds only zombies. So if two looks in a row find no live process, the group gets its KILL at
//! once. Without /proc, or if a zombie belongs to another user, even this is not a proof. Then the looks must find no
//! live process for a second after the KILL.
//!
//! | file | what it does |
//! |---|---|
//! | `stop` | a stop of the job, and its KILL |
//! | `sweep` | what is left of the job after its first process |
//! | `state` | what is known about a job while it, or something of it, is there |
//! | `leftovers` | what a look at the leftovers calls for, and the end of the run |
//! | `outside` | what comes from outside the lease: job control, signals, and the loss of a helper |
//! | `handle` | one event at a time: the clock, the lease, and the stop of the job |

mod handle;
mod leftovers;
mod outside;
mod state;
mod stop;
mod sweep;

pub(super) use self::state::Guarding;
