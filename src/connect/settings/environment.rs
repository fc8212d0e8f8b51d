//! The environment of the process: variables, home directory, name of the user.
//!
//! The variables are passed in, so that tests which run in parallel can each have their own.

use std::path::{Path, PathBuf};

use nix::unistd::{Uid, User};

/// Where settings come from that are not in the connection string.
pub(super) struct Environment<'a> {
    variable: &'a dyn Fn(&str) -> Option<String>,
}

impl<'a> Environment<'a> {
    pub(super) fn new(variable: &'a dyn Fn(&str) -> Option<String>) -> Self {
        Self { variable }
    }

    /// The value of a variable. An empty variable is set, as in libpq.
    pub(super) fn variable(&self, name: &str) -> Option<String> {
        (self.variable)(name)
    }

    /// The home directory: HOME, or the one in the system's user database.
    pub(super) fn home(&self) -> Option<PathBuf> {
        let home = self.variable("HOME").filter(|h| !h.is_empty());
        home.map(PathBuf::from).or_else(|| Some(own_entry()?.dir))
    }

    /// A file in the home directory.
    pub(super) fn at_home(&self, path: impl AsRef<Path>) -> Option<PathBuf> {
        self.home().map(|h| h.join(path))
    }

    /// The name of the process's user in the system's user database.
    pub(super) fn user(&self) -> Option<String> {
        own_entry().map(|entry| entry.name)
    }
}

/// The entry of the process's user in the system's user database.
fn own_entry() -> Option<User> {
    User::from_uid(Uid::effective()).ok().flatten()
}
