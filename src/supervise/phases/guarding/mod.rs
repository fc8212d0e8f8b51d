//! While the job, or something of it, is there.
//!
//! | stage | what it means | what ends it |
//! |---|---|---|
//! | running | the job runs and its lease is trusted | the job's end, or a reason to stop it |
//! | stopping | TERM and CONT were sent, KILL is due | the job's end |
//! | sweeping | the job is reaped; others of its group may be left | the proof that nothing of its group acts any more |
//! | done | nothing of the job is left | |
//!
//! No run ends on a look that finds nobody alive: a group that keeps forking can look like that (`process::group` has the
//! argument). It ends if the kernel says that the group is empty, or if a look that began after a KILL finds nothing but
//! zombies. So a group of which nothing is to be seen twice in a row gets its KILL at once. Where not even that is a proof,
//! since /proc is not there or a zombie has another user, the looks have to find the same for a second after the KILL.
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
