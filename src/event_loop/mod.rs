//! The one event loop of `run` and `claim`: feeds events to the supervisor and carries its actions out.
//!
//! It decides nothing: what an event calls for is `supervise`'s. What can block runs on a thread of its own, so the loop
//! is always there for a signal and for the deadline.
//!
//! This process can be stopped for a minute between the look at the clock and an action that follows from it:
//!
//! - Signals to the job hit a group that the watchdog has killed meanwhile, and nobody else.
//! - A deadline is told too late to a watchdog that has begun to stop the job. So the clock is looked at once more after
//!   each telling, and a deadline counts from then on.
//! - A stop that was announced is left to the watchdog, which sends no TERM of its own then, but the KILL in time.
//! - The start of the job is given up by its child, which looks at the clock last.
//! - A release arrives late. It acts on this term only, and a lease that has expired since is not called lost.
//! - The terminal may be given to the job although a shell has taken it back meanwhile. No system call does both the look
//!   and the change.
//!
//! | file | what happens there |
//! |---|---|
//! | `input` | what the loop waits for |
//! | `database` | the thread that claims, renews once and releases |
//! | `job_control` | what a run has besides its claim |
//! | `state` | what the loop works with |
//! | `job` | what the loop does for a job: its watchdog, its start, its terminal, its heartbeat |
//! | `drive` | the loop: inputs become events, actions are carried out |

mod database;
mod drive;
mod input;
mod job;
mod job_control;
mod state;

pub use self::database::Claimant;
pub use self::input::Input;
pub use self::job_control::JobControl;
pub use self::state::EventLoop;
