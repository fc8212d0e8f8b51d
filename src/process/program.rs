//! Finding the program, with the two ways of failing that a shell tells apart.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use nix::unistd::{AccessFlags, eaccess};

/// Why a command can't be run.
#[derive(Debug)]
pub enum NoProgram {
    /// There is none: exit 127 (POSIX, 2.8.2 Exit Status for Commands).
    NotFound,
    /// It is there, but the program that its first line names is not: 127 too, as bash, dash and env(1) have it.
    NoInterpreter,
    /// There is one that can't be executed: exit 126 (ibid.). The reason is in the error.
    CannotExecute(io::Error),
}

/// Finds what execvp(3) would run, with a shell's answer where it would not run anything.
///
/// execvp(3) itself answers `EACCES` as soon as one directory of PATH may not be searched, although the command is
/// nowhere; a shell calls that "not found".
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
            // A directory of that name is no command, and what can't even be looked at is not known to be one.
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
    fn what_is_not_there_and_what_can_not_be_executed_differ() {
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
