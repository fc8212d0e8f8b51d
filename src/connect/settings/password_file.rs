//! The password file (PostgreSQL documentation, "The Password File").

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::text::os_error_text;

use super::hosts::SOCKET_DIRECTORY;

/// What a line of the file is compared with.
pub(in crate::connect) struct PassfileEntry<'a> {
    /// As in the settings: a name, an address, or the directory of a socket.
    pub(in crate::connect) host: &'a str,
    pub(in crate::connect) port: u16,
    pub(in crate::connect) database: &'a str,
    pub(in crate::connect) user: &'a str,
}

/// The result of reading a password file.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::connect) enum Passfile {
    /// There is no such file.
    Missing,
    /// The file cannot be used. Like libpq, we warn and go on without it. The text is the warning.
    Unusable(String),
    /// The text of the file.
    Text(String),
}

/// Reads the file, if only its owner can read it.
pub(in crate::connect) fn read(path: &Path) -> Passfile {
    let Ok(about) = fs::metadata(path) else {
        return Passfile::Missing;
    };
    if !about.is_file() {
        return Passfile::Unusable(format!(
            "password file {} is ignored: it is not a regular file",
            path.display()
        ));
    }
    let mode = about.permissions().mode();
    if mode & 0o077 != 0 {
        return Passfile::Unusable(format!(
            "password file {} is ignored: others can read it (chmod 0600 {0})",
            path.display()
        ));
    }
    match fs::read(path) {
        Ok(bytes) => Passfile::Text(String::from_utf8_lossy(&bytes).into_owned()),
        Err(e) => Passfile::Unusable(format!(
            "password file {} is ignored: {}",
            path.display(),
            os_error_text(&e)
        )),
    }
}

/// The password in the first line that matches.
pub(in crate::connect) fn find(text: &str, entry: &PassfileEntry<'_>) -> Option<String> {
    // In this file, libpq calls its default socket directory localhost.
    let host = if entry.host == SOCKET_DIRECTORY {
        "localhost"
    } else {
        entry.host
    };
    let port = entry.port.to_string();
    text.split('\n').find_map(|line| {
        let line = line.strip_suffix('\r').unwrap_or(line);
        if line.starts_with('#') {
            return None;
        }
        let rest = strip_field(line, host)?;
        let rest = strip_field(rest, &port)?;
        let rest = strip_field(rest, entry.database)?;
        let rest = strip_field(rest, entry.user)?;
        Some(unescape(rest))
    })
}

/// The rest of the line after a field, if the field is `*` or `expected`.
fn strip_field<'a>(line: &'a str, expected: &str) -> Option<&'a str> {
    if let Some(rest) = line.strip_prefix("*:") {
        return Some(rest);
    }
    let mut expected = expected.chars();
    let mut chars = line.char_indices();
    while let Some((at, c)) = chars.next() {
        let c = match c {
            ':' => return expected.next().is_none().then(|| &line[at + 1..]),
            '\\' => chars.next()?.1,
            c => c,
        };
        if expected.next() != Some(c) {
            return None;
        }
    }
    None
}

/// The last field, which ends at a colon. A backslash escapes the next character.
fn unescape(field: &str) -> String {
    let mut password = String::new();
    let mut chars = field.chars();
    while let Some(c) = chars.next() {
        match c {
            ':' => break,
            '\\' => password.push(chars.next().unwrap_or('\\')),
            c => password.push(c),
        }
    }
    password
}

#[cfg(test)]
mod tests {
    use super::*;

    fn password(text: &str, host: &str, port: u16, database: &str, user: &str) -> Option<String> {
        find(
            text,
            &PassfileEntry {
                host,
                port,
                database,
                user,
            },
        )
    }

    #[test]
    fn the_first_line_that_matches_wins() {
        let text = "# h:5432:d:u:comment\r\n\nh:5432:d:u:first\r\nh:*:*:u:second\n*:*:*:*:last";
        assert_eq!(
            password(text, "h", 5432, "d", "u").as_deref(),
            Some("first")
        );
        assert_eq!(
            password(text, "h", 5433, "d", "u").as_deref(),
            Some("second")
        );
        assert_eq!(password(text, "g", 5432, "d", "u").as_deref(), Some("last"));
        assert_eq!(password("h:5432:d:u:x", "h", 5432, "d", "other"), None);
        assert_eq!(password("h:5432:d", "h", 5432, "d", "u"), None);
    }

    #[test]
    fn colons_and_backslashes_are_escaped() {
        assert_eq!(
            password(r"\:\:1:5432:d:a\\b:p\:q\\r", "::1", 5432, "d", r"a\b").as_deref(),
            Some(r"p:q\r")
        );
        assert_eq!(
            password("h:5432:d:u:p:rest", "h", 5432, "d", "u").as_deref(),
            Some("p")
        );
        assert_eq!(
            password(r"h:5432:d:u:p\", "h", 5432, "d", "u").as_deref(),
            Some(r"p\")
        );
        // An escaped star is a star.
        assert_eq!(password(r"\*:5432:d:u:p", "h", 5432, "d", "u"), None);
        // A star with something after it is not a wildcard.
        assert_eq!(
            password("*.example:5432:d:u:p", "a.example", 5432, "d", "u"),
            None
        );
    }

    #[test]
    fn the_default_socket_directory_is_called_localhost() {
        let text = "localhost:5432:d:u:here\n/tmp:5432:d:u:tmp";
        assert_eq!(
            password(text, SOCKET_DIRECTORY, 5432, "d", "u").as_deref(),
            Some("here")
        );
        assert_eq!(
            password(text, "/tmp", 5432, "d", "u").as_deref(),
            Some("tmp")
        );
        assert_eq!(password(text, "/run/elsewhere", 5432, "d", "u"), None);
    }

    #[test]
    fn a_file_that_others_can_read_is_ignored_with_a_warning() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("pass");
        assert_eq!(read(&path), Passfile::Missing);
        fs::write(&path, "*:*:*:*:p").unwrap();
        for (mode, usable) in [
            (0o600, true),
            (0o400, true),
            (0o640, false),
            (0o604, false),
            (0o610, false),
        ] {
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            assert_eq!(matches!(read(&path), Passfile::Text(_)), usable, "{mode:o}");
        }
        assert!(matches!(read(dir.path()), Passfile::Unusable(_)));
    }
}
