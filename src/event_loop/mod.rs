//! The one event loop of `run` and `claim`. It feeds events to the supervisor and carries out its actions.
//!
//! It decides nothing: `supervise` does that. Everything that can block runs on a thread of its own, so the loop can always
//! react to a signal or a deadline.
//!
//! This process can be stopped for a minute after it has read the clock and before it acts. Then:
//!
//! - A signal for the job reaches only the job's group, which the watchdog has killed by then.
//! - A new deadline can reach the watchdog after it has begun to stop the job. So the clock is read again after each such
//!   message, and the deadline counts only if the message was in time.
//! - If a stop was announced, the watchdog leaves TERM to this process, and sends KILL in time.
//! - A job that is to start too late is not started: its child reads the clock last.
//! - A release arrives late. It acts on this term only. If the lease has expired since, it is not reported as lost.
//! - The job may get the terminal although a shell has taken it back. No system call can check this and change it in one
//!   step.
//!
//! | file | what happens there |
//! |---|---|
//! | `input` | what the loop waits for |
//! | `database` | the thread that claims, renews once and releases |
//! | `job_control` | what a run needs in addition to its claim |
//! | `state` | what the loop works with |
//! | `job` | the effects of the loop on a job: its watchdog, its start, its terminal and its heartbeat |
//! | `reports` | what the loop tells people |
//! | `drive` | the loop: inputs become events, actions are carried out |

mod database;
mod drive;
mod input;
mod job;
mod job_control;
mod reports;
mod state;

pub use self::database::Claimant;
pub use self::input::Input;
pub use self::job_control::JobControl;
pub use self::state::EventLoop;
