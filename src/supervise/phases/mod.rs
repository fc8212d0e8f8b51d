//! The state machine behind [`Supervisor::handle`].
//!
//! | file or room | what it does |
//! |---|---|
//! | `held_term` | the term that a run holds |
//! | `guarding` | while the job, or something of it, is there |
//! | `state` | what a run knows, in each phase |
//! | `claiming` | from the first claim to the grant, or to the end of the wait |
//! | `starting` | from the grant to the running job; a grant that came late is settled here |
//! | `releasing` | from the end of the job to the exit |
//! | `handle` | one event at a time, for the phase that the run is in |

mod claiming;
mod guarding;
mod handle;
mod held_term;
mod releasing;
mod starting;
mod state;

pub use self::state::Supervisor;
