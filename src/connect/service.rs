//! The connection service file (PostgreSQL documentation, "The Connection Service File").

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use super::SettingsError;
use super::conninfo::{self, Words};
use super::keywords;
use super::reason::without_number;
use super::surroundings::Surroundings;

/// Where distributions keep the service file for the whole machine: Debian's place, then Red Hat's. libpq knows one
/// of them, by how it was built.
const SYSTEM_DIRECTORIES: &[&str] = &["/etc/postgresql-common", "/etc/sysconfig/pgsql"];

/// What the service file says for `service`.
///
/// The user's own file comes first and the machine's second; a service is taken whole from the first file that has it.
///
/// # Errors
/// No file has the service, or the one that has it can't be read.
pub(super) fn find(service: &str, around: &Surroundings<'_>) -> Result<Words, SettingsError> {
    let named = around.variable("PGSERVICEFILE").map(PathBuf::from);
    let must_exist = named.is_some();
    if let Some(path) = named.or_else(|| around.at_home(".pg_service.conf"))
        && let Some(words) = read(&path, service, must_exist)?
    {
        return Ok(words);
    }
    let system: Vec<PathBuf> = match around.variable("PGSYSCONFDIR") {
        Some(directory) => vec![directory.into()],
        None => SYSTEM_DIRECTORIES.iter().map(PathBuf::from).collect(),
    };
    for directory in system {
        if let Some(words) = read(&directory.join("pg_service.conf"), service, false)? {
            return Ok(words);
        }
    }
    Err(SettingsError::new(format!(
        "service: {service:?} is in no service file (PGSERVICEFILE, ~/.pg_service.conf, pg_service.conf in PGSYSCONFDIR)"
    )))
}

fn read(path: &Path, service: &str, must_exist: bool) -> Result<Option<Words>, SettingsError> {
    match fs::read(path) {
        Ok(bytes) => section(&String::from_utf8_lossy(&bytes), service)
            .map_err(|e| SettingsError::new(format!("service file {}: {e}", path.display()))),
        Err(e) if e.kind() == ErrorKind::NotFound && !must_exist => Ok(None),
        Err(e) => Err(SettingsError::new(format!(
            "service file {}: {}",
            path.display(),
            without_number(&e.to_string())
        ))),
    }
}

/// The words of one section. Lines of other sections are not looked at, so that their mistakes hurt nobody here.
fn section(text: &str, service: &str) -> Result<Option<Words>, String> {
    let mut found: Option<Words> = None;
    for (number, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        if let Some(header) = line.strip_prefix('[') {
            if found.is_some() {
                break;
            }
            if header
                .strip_prefix(service)
                .is_some_and(|rest| rest.starts_with(']'))
            {
                found = Some(Words::new());
            }
            continue;
        }
        let Some(words) = &mut found else { continue };
        let at = number + 1;
        if line.starts_with("ldap") {
            return Err(format!(
                "line {at}: looking a service up by LDAP is not supported"
            ));
        }
        let Some((name, value)) = line.split_once('=') else {
            return Err(format!("line {at} has no \"=\""));
        };
        if name == "service" {
            return Err(format!("line {at}: a service can't name another one"));
        }
        if name.ends_with([' ', '\t']) {
            return Err(format!("line {at}: no space may stand before the \"=\""));
        }
        let Some(keyword) = keywords::find(name) else {
            return Err(format!("line {at}: {}", conninfo::unknown(name)));
        };
        // Within a section the first line for a word counts, unlike in a connection string.
        if !words.iter().any(|(known, _)| *known == keyword.name) {
            words.push((keyword.name, value.to_owned()));
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "
# a comment
nonsense outside of a section
[other]
host = broken
[mine]
  host=a
host=b
user=u v
password=p=q'#
[after]
port=1
";

    #[test]
    fn a_section_is_read_word_for_word() {
        assert_eq!(
            section(TEXT, "mine").unwrap().unwrap(),
            vec![
                ("host", "a".to_owned()),
                ("user", "u v".to_owned()),
                ("password", "p=q'#".to_owned())
            ]
        );
        assert_eq!(section(TEXT, "absent").unwrap(), None);
        assert_eq!(section(TEXT, "min").unwrap(), None);
    }

    #[test]
    fn mistakes_are_named_by_line_and_never_quoted() {
        assert_eq!(
            section(TEXT, "other").unwrap_err(),
            "line 5: no space may stand before the \"=\""
        );
        assert_eq!(
            section("[s]\nsecret", "s").unwrap_err(),
            "line 2 has no \"=\""
        );
        assert!(
            section("[s]\nservice=t", "s")
                .unwrap_err()
                .contains("another one")
        );
        assert!(section("[s]\nldap://h", "s").unwrap_err().contains("LDAP"));
        assert_eq!(
            section("[s]\nprot=5", "s").unwrap_err(),
            "line 2: prot is no setting: did you mean port?"
        );
    }

    #[test]
    fn files_are_looked_for_in_libpqs_order() {
        let home = tempfile::tempdir().unwrap();
        let system = tempfile::tempdir().unwrap();
        let named = home.path().join("named");
        fs::write(
            home.path().join(".pg_service.conf"),
            "[s]\nhost=home\n[h]\nhost=h",
        )
        .unwrap();
        fs::write(
            system.path().join("pg_service.conf"),
            "[s]\nhost=system\n[t]\nhost=t",
        )
        .unwrap();
        let host = |service: &str, named: Option<&Path>| {
            let lookup = |name: &str| match name {
                "HOME" => Some(home.path().display().to_string()),
                "PGSYSCONFDIR" => Some(system.path().display().to_string()),
                "PGSERVICEFILE" => named.map(|n| n.display().to_string()),
                _ => None,
            };
            find(service, &Surroundings::new(&lookup))
                .map(|w| w[0].1.clone())
                .map_err(|e| e.to_string())
        };
        assert_eq!(host("s", None).unwrap(), "home");
        assert_eq!(host("t", None).unwrap(), "t");
        assert!(host("u", None).unwrap_err().contains("no service file"));
        assert!(
            host("s", Some(&named)).is_err(),
            "a named file has to exist"
        );
        fs::write(&named, "[s]\nhost=named").unwrap();
        assert_eq!(host("s", Some(&named)).unwrap(), "named");
        // With a named file the one in the home directory is not read; the machine's is.
        assert!(host("h", Some(&named)).is_err());
        assert_eq!(host("t", Some(&named)).unwrap(), "t");
    }
}
