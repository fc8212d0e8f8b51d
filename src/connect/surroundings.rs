//! What a process finds around it: variables, home directory, the name of its user. Handed in, so that the rules that
//! depend on it can be tested side by side.

use std::path::{Path, PathBuf};

use nix::unistd::{Uid, User};

/// The surroundings that settings are looked for in.
pub(super) struct Surroundings<'a> {
    variable: &'a dyn Fn(&str) -> Option<String>,
}

impl<'a> Surroundings<'a> {
    pub(super) fn new(variable: &'a dyn Fn(&str) -> Option<String>) -> Self {
        Self { variable }
    }

    /// The value of a variable; a variable that is set to nothing is set.
    pub(super) fn variable(&self, name: &str) -> Option<String> {
        (self.variable)(name)
    }

    /// The home directory: HOME, or what the system's user database says.
    pub(super) fn home(&self) -> Option<PathBuf> {
        self.variable("HOME").filter(|h| !h.is_empty()).map_or_else(
            || {
                User::from_uid(Uid::effective())
                    .ok()
                    .flatten()
                    .map(|u| u.dir)
            },
            |h| Some(PathBuf::from(h)),
        )
    }

    /// A file in the home directory.
    pub(super) fn at_home(&self, path: impl AsRef<Path>) -> Option<PathBuf> {
        self.home().map(|h| h.join(path))
    }

    /// The name that the system's user database has for this process's user.
    pub(super) fn user(&self) -> Option<String> {
        User::from_uid(Uid::effective())
            .ok()
            .flatten()
            .map(|u| u.name)
    }
}
