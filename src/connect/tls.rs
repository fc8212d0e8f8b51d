//! What was set about TLS (PostgreSQL documentation, "SSL Support" of libpq).

use std::path::{Path, PathBuf};

use rustls::SupportedProtocolVersion;

use super::SettingsError;
use super::surroundings::Surroundings;
use super::values::{self, CertMode, SslMode};

/// Where the certificates are that vouch for the server's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Roots {
    /// Those of the operating system (`sslrootcert=system`).
    System,
    /// A file, which libpq reads if it exists; there is none without a home directory.
    File(Option<PathBuf>),
}

/// Everything about TLS that was set.
#[derive(Clone, Debug)]
pub(super) struct TlsSettings {
    pub(super) mode: SslMode,
    /// Whether TLS starts without asking first (`sslnegotiation=direct`, PostgreSQL 17 and later).
    pub(super) direct: bool,
    pub(super) cert_mode: CertMode,
    pub(super) roots: Roots,
    pub(super) certificate: Option<PathBuf>,
    pub(super) key: Option<PathBuf>,
    pub(super) revoked: Option<PathBuf>,
    pub(super) sni: bool,
    pub(super) versions: Vec<&'static SupportedProtocolVersion>,
}

impl TlsSettings {
    /// Collects the settings. What is odd but harmless becomes a warning.
    pub(super) fn find(
        get: &dyn Fn(&str) -> Option<String>,
        around: &Surroundings<'_>,
        warnings: &mut Vec<String>,
    ) -> Result<Self, SettingsError> {
        let nonempty = |name: &str| get(name).filter(|v| !v.is_empty());
        let path = |name: &str, default: &str| {
            nonempty(name)
                .map(PathBuf::from)
                .or_else(|| around.at_home(Path::new(".postgresql").join(default)))
        };
        let mode = get("sslmode")
            .map(|v| values::choice("sslmode", &v, values::SSL_MODES))
            .transpose()?;
        let roots = if nonempty("sslrootcert").as_deref() == Some("system") {
            Roots::System
        } else {
            Roots::File(path("sslrootcert", "root.crt"))
        };
        let mode = match (mode, &roots) {
            (Some(mode), Roots::System) if mode != SslMode::VerifyFull => {
                return Err(SettingsError::about(
                    "sslrootcert",
                    "sslrootcert=system needs sslmode=verify-full: anyone can get a certificate from a public authority, \
                     but not one with the server's name",
                ));
            }
            (Some(mode), _) => mode,
            (None, Roots::System) => SslMode::VerifyFull,
            (None, Roots::File(_)) => SslMode::Prefer,
        };
        let direct = get("sslnegotiation")
            .map(|v| {
                values::choice(
                    "sslnegotiation",
                    &v,
                    &[("postgres", false), ("direct", true)],
                )
            })
            .transpose()?
            .unwrap_or(false);
        if direct && mode < SslMode::Require {
            return Err(SettingsError::about(
                "sslnegotiation",
                "sslnegotiation=direct needs sslmode=require, verify-ca or verify-full: it can't fall back",
            ));
        }
        if mode == SslMode::Require
            && let (Some(given), Roots::File(Some(file))) = (nonempty("sslrootcert"), &roots)
            && !file.exists()
        {
            warnings.push(format!(
                "sslrootcert={given:?} does not exist: with sslmode=require the server's certificate is not checked"
            ));
        }
        Ok(Self {
            mode,
            direct,
            cert_mode: get("sslcertmode")
                .map(|v| values::choice("sslcertmode", &v, values::CERT_MODES))
                .transpose()?
                .unwrap_or(CertMode::Allow),
            roots,
            certificate: path("sslcert", "postgresql.crt"),
            key: path("sslkey", "postgresql.key"),
            revoked: path("sslcrl", "root.crl"),
            // libpq sends the name if the setting begins with a "1", whatever else it says.
            sni: get("sslsni").is_none_or(|v| v.starts_with('1')),
            versions: protocol_versions(
                nonempty("ssl_min_protocol_version").as_deref(),
                nonempty("ssl_max_protocol_version").as_deref(),
            )?,
        })
    }

    /// Reads every file once, so that a wrong one is a wrong setting and not a failed connection. Where TLS is optional,
    /// libpq goes on without it, and nothing is said.
    pub(super) fn check(&self) -> Result<(), SettingsError> {
        if self.mode < SslMode::Require {
            return Ok(());
        }
        self.prepare().map(drop).map_err(SettingsError::new)
    }
}

/// The versions between two bounds; only 1.2 and 1.3 are spoken here.
fn protocol_versions(
    least: Option<&str>,
    most: Option<&str>,
) -> Result<Vec<&'static SupportedProtocolVersion>, SettingsError> {
    let names = ["tlsv1", "tlsv1.1", "tlsv1.2", "tlsv1.3"];
    let rank = |name: &str, value: &str| {
        names
            .iter()
            .position(|n| n.eq_ignore_ascii_case(value))
            .ok_or_else(|| {
                SettingsError::about(
                    name,
                    format!("{name}={value:?} is none of TLSv1, TLSv1.1, TLSv1.2, TLSv1.3"),
                )
            })
    };
    let least = least.map_or(Ok(2), |v| rank("ssl_min_protocol_version", v))?;
    let most = most.map_or(Ok(3), |v| rank("ssl_max_protocol_version", v))?;
    if least > most {
        return Err(SettingsError::about(
            "ssl_min_protocol_version",
            "ssl_min_protocol_version is above ssl_max_protocol_version",
        ));
    }
    if most < 2 {
        return Err(SettingsError::about(
            "ssl_max_protocol_version",
            "ssl_max_protocol_version: nothing below TLSv1.2 is spoken here",
        ));
    }
    let spoken = [(2, &rustls::version::TLS12), (3, &rustls::version::TLS13)];
    Ok(spoken
        .into_iter()
        .filter(|(r, _)| (least..=most).contains(r))
        .map(|(_, v)| v)
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(settings: &[(&str, &str)]) -> Result<TlsSettings, String> {
        let get = |name: &str| {
            settings
                .iter()
                .find(|(n, _)| *n == name)
                .map(|(_, v)| (*v).to_owned())
        };
        let nowhere = |name: &str| (name == "HOME").then(|| "/nonexistent".to_owned());
        let mut warnings = Vec::new();
        TlsSettings::find(&get, &Surroundings::new(&nowhere), &mut warnings)
            .map_err(|e| e.to_string())
    }

    #[test]
    fn weak_modes_do_not_go_with_what_needs_a_strong_one() {
        assert_eq!(find(&[]).unwrap().mode, SslMode::Prefer);
        assert_eq!(
            find(&[("sslrootcert", "system")]).unwrap().mode,
            SslMode::VerifyFull
        );
        assert!(
            find(&[("sslrootcert", "system"), ("sslmode", "require")])
                .unwrap_err()
                .contains("verify-full")
        );
        assert!(
            find(&[("sslnegotiation", "direct")])
                .unwrap_err()
                .contains("sslmode=require")
        );
        assert!(
            find(&[("sslnegotiation", "direct"), ("sslmode", "require")])
                .unwrap()
                .direct
        );
        assert!(
            find(&[("sslmode", "verify-full")])
                .unwrap()
                .check()
                .unwrap_err()
                .to_string()
                .contains("root.crt")
        );
        assert!(
            find(&[("sslcertmode", "require"), ("sslmode", "require")])
                .unwrap()
                .check()
                .is_err()
        );
    }

    #[test]
    fn only_versions_that_are_spoken_can_be_asked_for() {
        assert_eq!(protocol_versions(None, None).unwrap().len(), 2);
        assert_eq!(
            protocol_versions(Some("TLSv1"), Some("tlsv1.2")).unwrap(),
            vec![&rustls::version::TLS12]
        );
        assert_eq!(
            protocol_versions(Some("TLSv1.3"), None).unwrap(),
            vec![&rustls::version::TLS13]
        );
        assert!(protocol_versions(Some("TLSv1.3"), Some("TLSv1.2")).is_err());
        assert!(protocol_versions(Some("TLSv1"), Some("TLSv1.1")).is_err());
        assert!(protocol_versions(Some("SSLv3"), None).is_err());
    }
}
