//! The password file (PostgreSQL documentation, "The Password File").

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use super::reason::without_number;
use super::settings::SOCKET_DIRECTORY;

/// Where a password is needed: the four things that a line of the file is compared with.
pub(super) struct Place<'a> {
    /// As it was given: a name, an address, or the directory of a socket.
    pub(super) host: &'a str,
    pub(super) port: u16,
    pub(super) database: &'a str,
    pub(super) user: &'a str,
}

/// What a password file had to say.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Lookup {
    /// There is no such file, or no line of it fits.
    Nothing,
    /// The file can't be used. libpq warns and goes on without it, and so do we: the text is such a warning.
    Unusable(String),
    /// The text of the file.
    Text(String),
}

/// Reads the file, if its owner alone may.
pub(super) fn read(path: &Path) -> Lookup {
    let Ok(about) = fs::metadata(path) else {
        return Lookup::Nothing;
    };
    if !about.is_file() {
        return Lookup::Unusable(format!(
            "password file {} is ignored: it is no plain file",
            path.display()
        ));
    }
    let mode = about.permissions().mode();
    if mode & 0o077 != 0 {
        return Lookup::Unusable(format!(
            "password file {} is ignored: others may use it too (chmod 0600 {0})",
            path.display()
        ));
    }
    match fs::read(path) {
        Ok(bytes) => Lookup::Text(String::from_utf8_lossy(&bytes).into_owned()),
        Err(e) => Lookup::Unusable(format!(
            "password file {} is ignored: {}",
            path.display(),
            without_number(&e.to_string())
        )),
    }
}

/// The password of the first line that fits.
pub(super) fn find(text: &str, place: &Place<'_>) -> Option<String> {
    // libpq knows the socket directory that it was built with by the name localhost.
    let host = if place.host == SOCKET_DIRECTORY {
        "localhost"
    } else {
        place.host
    };
    let port = place.port.to_string();
    text.split('\n').find_map(|line| {
        let line = line.strip_suffix('\r').unwrap_or(line);
        if line.starts_with('#') {
            return None;
        }
        let rest = strip_field(line, host)?;
        let rest = strip_field(rest, &port)?;
        let rest = strip_field(rest, place.database)?;
        let rest = strip_field(rest, place.user)?;
        Some(unescape(rest))
    })
}

/// What follows a field of the line, if the field is `*` or says `expected`.
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

/// The last field: up to a further colon, a backslash takes the next character as it is.
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
            &Place {
                host,
                port,
                database,
                user,
            },
        )
    }

    #[test]
    fn the_first_line_that_fits_wins() {
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
        // A star with something behind it is no wildcard.
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
    fn a_file_that_others_may_read_is_ignored_with_a_warning() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("pass");
        assert_eq!(read(&path), Lookup::Nothing);
        fs::write(&path, "*:*:*:*:p").unwrap();
        for (mode, usable) in [
            (0o600, true),
            (0o400, true),
            (0o640, false),
            (0o604, false),
            (0o610, false),
        ] {
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            assert_eq!(matches!(read(&path), Lookup::Text(_)), usable, "{mode:o}");
        }
        assert!(matches!(read(dir.path()), Lookup::Unusable(_)));
    }
}
