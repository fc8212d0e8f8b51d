//! Everything about processes except the decisions: starts the job in a group of its own, signals it, gives it the
//! terminal, waits for it, and ends as it ended.
//!
//! The job must run as it would without `lease`: with the same arguments, environment, descriptors, signal dispositions
//! and terminal, and the same end.
#![allow(unsafe_code)] // The system's interface; each use says why it is sound.

mod end;
mod group;
mod image;
mod inherited;
mod keyboard;
mod procfs;
mod program;
mod spawn;
mod terminal;
mod wait;

pub use end::die_as;
pub use group::{Group, GroupId};
pub(crate) use inherited::{block_all, rename_forked, set_mask};
pub use inherited::{block_ttou, ignored_at_start, unblock_all, was_closed_at_start};
pub use keyboard::{
    Size, is_foreground, read_keys, restore_modes, set_key_modes, stdout_can_show_a_screen,
    takes_output, terminal_size,
};
pub use program::NoProgram;
pub use spawn::{Announce, Job, Launch, SpawnError, spawn};
pub use terminal::{StopOutcome, Terminal, stop_own_group, terminal_columns, wake_own_group};
pub use wait::{Change, Children, reap};
