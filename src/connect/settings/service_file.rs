//! The connection service file (PostgreSQL documentation, "The Connection Service File").

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use crate::text::os_error_text;

use super::environment::Environment;
use super::error::SettingsError;
use super::keywords;
use super::raw::{self, RawSettings};

/// Where distributions keep the machine's service file: Debian, then Red Hat. libpq is built to look in one of them.
const SYSTEM_DIRECTORIES: &[&str] = &["/etc/postgresql-common", "/etc/sysconfig/pgsql"];

/// The settings of `service` in the service files.
///
/// The user's file comes first, then the machine's. A service is taken as a whole from the first file that has it.
///
/// # Errors
/// No file has the service, or a file cannot be read.
pub(super) fn find(
    service: &str,
    environment: &Environment<'_>,
) -> Result<RawSettings, SettingsError> {
    let named = environment.variable("PGSERVICEFILE").map(PathBuf::from);
    let must_exist = named.is_some();
    if let Some(path) = named.or_else(|| environment.at_home(".pg_service.conf"))
        && let Some(raw) = read(&path, service, must_exist)?
    {
        return Ok(raw);
    }
    let system: Vec<PathBuf> = match environment.variable("PGSYSCONFDIR") {
        Some(directory) => vec![directory.into()],
        None => SYSTEM_DIRECTORIES.iter().map(PathBuf::from).collect(),
    };
    for directory in system {
        if let Some(raw) = read(&directory.join("pg_service.conf"), service, false)? {
            return Ok(raw);
        }
    }
    Err(SettingsError::new(format!(
        "service {service:?} is not in any service file (PGSERVICEFILE, ~/.pg_service.conf, pg_service.conf in PGSYSCONFDIR)"
    )))
}

fn read(
    path: &Path,
    service: &str,
    must_exist: bool,
) -> Result<Option<RawSettings>, SettingsError> {
    match fs::read(path) {
        Ok(bytes) => section(&String::from_utf8_lossy(&bytes), service)
            .map_err(|e| SettingsError::new(format!("service file {}: {e}", path.display()))),
        Err(e) if e.kind() == ErrorKind::NotFound && !must_exist => Ok(None),
        Err(e) => Err(SettingsError::new(format!(
            "service file {}: {}",
            path.display(),
            os_error_text(&e)
        ))),
    }
}

/// The settings of one section. Other sections are not read, so a mistake in them does no harm.
fn section(text: &str, service: &str) -> Result<Option<RawSettings>, String> {
    let mut found: Option<RawSettings> = None;
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
                found = Some(RawSettings::new());
            }
            continue;
        }
        let Some(raw) = &mut found else { continue };
        let at = number + 1;
        if line.starts_with("ldap") {
            return Err(format!("line {at}: LDAP is not supported"));
        }
        let Some((name, value)) = line.split_once('=') else {
            return Err(format!("line {at} has no \"=\""));
        };
        if name == "service" {
            return Err(format!("line {at}: a service cannot name another service"));
        }
        if name.ends_with([' ', '\t']) {
            return Err(format!("line {at} has a space before the \"=\""));
        }
        let Some(keyword) = keywords::find(name) else {
            return Err(format!("line {at}: {}", raw::unknown(name)));
        };
        // In a section the first line for a keyword counts, unlike in a connection string.
        if !raw.iter().any(|(known, _)| *known == keyword.name) {
            raw.push((keyword.name, value.to_owned()));
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
    fn a_section_is_read_as_it_is_written() {
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
    fn an_error_names_the_line_and_never_quotes_it() {
        assert_eq!(
            section(TEXT, "other").unwrap_err(),
            "line 5 has a space before the \"=\""
        );
        assert_eq!(
            section("[s]\nsecret", "s").unwrap_err(),
            "line 2 has no \"=\""
        );
        assert!(
            section("[s]\nservice=t", "s")
                .unwrap_err()
                .contains("another service")
        );
        assert!(section("[s]\nldap://h", "s").unwrap_err().contains("LDAP"));
        assert_eq!(
            section("[s]\nprot=5", "s").unwrap_err(),
            "line 2: unknown setting prot: did you mean port?"
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
            find(service, &Environment::new(&lookup))
                .map(|w| w[0].1.clone())
                .map_err(|e| e.to_string())
        };
        assert_eq!(host("s", None).unwrap(), "home");
        assert_eq!(host("t", None).unwrap(), "t");
        assert!(
            host("u", None)
                .unwrap_err()
                .contains("not in any service file")
        );
        assert!(host("s", Some(&named)).is_err(), "a named file must exist");
        fs::write(&named, "[s]\nhost=named").unwrap();
        assert_eq!(host("s", Some(&named)).unwrap(), "named");
        // If a file is named, the one in the home directory is not read. The machine's file still is.
        assert!(host("h", Some(&named)).is_err());
        assert_eq!(host("t", Some(&named)).unwrap(), "t");
    }
}
