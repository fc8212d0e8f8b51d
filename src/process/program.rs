//! Finds the program to execute. Like a shell, it distinguishes "not found" from "cannot be executed".

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use nix::unistd::{AccessFlags, eaccess};

/// Why a command cannot be executed.
#[derive(Debug)]
pub enum NoProgram {
    /// It does not exist: exit 127 (POSIX, 2.8.2 Exit Status for Commands).
    NotFound,
    /// It exists, but the program in its first line does not: 127 too, as in bash, dash and env(1).
    NoInterpreter,
    /// It exists but cannot be executed: exit 126 (ibid.). The error has the reason.
    CannotExecute(io::Error),
}

/// Finds the file that execvp(3) would execute. If there is none, the error is the one that a shell would report.
///
/// execvp(3) itself returns `EACCES` if one directory of PATH may not be searched, even if the command is in none of
/// them. A shell reports "not found" then.
///
/// # Errors
/// See [`NoProgram`].
pub(super) fn find(name: &OsStr, path: Option<&OsString>) -> Result<PathBuf, NoProgram> {
    if name.is_empty() {
        return Err(NoProgram::NotFound);
    }
    if name.as_bytes().contains(&b'/') {
        return match look(Path::new(name)) {
            Look::Nothing => Err(NoProgram::NotFound),
            Look::Not(e) => Err(NoProgram::CannotExecute(e)),
            Look::Program => Ok(PathBuf::from(name)),
        };
    }
    let default = OsString::from("/bin:/usr/bin");
    let mut reason = None;
    for directory in std::env::split_paths(path.unwrap_or(&default)) {
        // An empty entry is the current directory (POSIX, 8.3). The "./" keeps the name from being looked up again.
        let candidate = if directory.as_os_str().is_empty() {
            Path::new(".").join(name)
        } else {
            directory.join(name)
        };
        match look(&candidate) {
            Look::Program => return Ok(candidate),
            // A directory of that name is not a command, and an entry that cannot be read is not known to be one.
            Look::Not(e) if candidate.is_file() => reason = Some(e),
            Look::Not(_) | Look::Nothing => {}
        }
    }
    Err(reason.map_or(NoProgram::NotFound, NoProgram::CannotExecute))
}

enum Look {
    Nothing,
    Not(io::Error),
    Program,
}

fn look(path: &Path) -> Look {
    match path.metadata() {
        Err(e) if e.kind() == io::ErrorKind::NotFound => Look::Nothing,
        Err(e) => Look::Not(e),
        Ok(meta) if meta.is_dir() => Look::Not(io::Error::from_raw_os_error(libc::EISDIR)),
        Ok(_) => match eaccess(path, AccessFlags::X_OK) {
            Ok(()) => Look::Program,
            Err(errno) => Look::Not(errno.into()),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(entries: &str) -> Option<OsString> {
        Some(OsString::from(entries))
    }

    #[test]
    fn a_name_is_looked_up_in_path_and_a_path_is_not() {
        let found = find(OsStr::new("sh"), path("/nowhere:/bin").as_ref()).expect("sh is there");
        assert_eq!(found, Path::new("/bin/sh"));
        assert!(find(OsStr::new("sh"), None).is_ok());
        assert!(find(OsStr::new("/bin/sh"), path("").as_ref()).is_ok());
    }

    #[test]
    fn a_missing_command_and_one_that_cannot_be_executed_differ() {
        let not_found = |name: &str, p: &str| {
            matches!(
                find(OsStr::new(name), path(p).as_ref()),
                Err(NoProgram::NotFound)
            )
        };
        let not_executable = |name: &str, p: &str| {
            matches!(
                find(OsStr::new(name), path(p).as_ref()),
                Err(NoProgram::CannotExecute(_))
            )
        };
        assert!(not_found("", "/bin"));
        assert!(not_found("no-such-command", "/bin:/usr/bin"));
        assert!(not_found("/no/such/file", "/bin"));
        assert!(not_executable("/etc", "/bin"));
        assert!(not_executable("/etc/passwd", "/bin"));
        assert!(not_executable("/etc/passwd/x", "/bin"));
        assert!(not_executable("passwd", "/etc"));
        // A directory in PATH that has the command's name.
        assert!(not_found("etc", "/"));
        // A file among the directories of PATH.
        assert!(not_found("x", "/etc/passwd"));
    }
}
