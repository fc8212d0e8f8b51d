//! The decisions of a run: events go in, actions come out, and the time is an argument.
//!
//! Nothing here touches a process, a clock or the database, so every order of events can be tested. The event loop
//! passes in one [`Event`] at a time, and carries out the [`Action`]s in their order.
//!
//! | phase | what it means | what ends it |
//! |---|---|---|
//! | claiming | the database is asked for the lease, again and again if that may help | the grant, or the end of the wait |
//! | settling | a grant that came late is renewed once | the answer |
//! | starting | the watchdog is armed, then the job is started | the answer |
//! | guarding | the job, or something of it, is there | the proof that nothing of its process group acts any more |
//! | releasing | nothing of the job is left | the answer, or the end of the time for it |
//! | done | [`Action::Finish`] was given | |
//!
//! `lease claim` goes from claiming to done: its caller gets the term.
//!
//! One sequence stops a job, whatever the reason: TERM to the group, CONT, the grace period, KILL. The KILL is never
//! later than the deadline, which is the local instant until which the lease is certainly held.
#![forbid(unsafe_code)]

mod action;
mod event;
mod phases;
mod plan;
#[cfg(test)]
mod tests;

pub use self::action::{Action, JobEnd, NotReleased, Outcome, Reason, Report, WatchdogOrder};
pub use self::event::{
    ClaimAnswer, Event, Granted, NotStarted, OperationFailure, ReleaseAnswer, StartAnswer,
};
pub use self::phases::Supervisor;
pub use self::plan::{JobPlan, Plan, Purpose};
