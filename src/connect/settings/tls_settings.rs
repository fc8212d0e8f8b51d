//! The settings of TLS (PostgreSQL documentation, "SSL Support" of libpq).

use std::path::{Path, PathBuf};

use rustls::SupportedProtocolVersion;

use super::environment::Environment;
use super::error::SettingsError;
use super::layered::LayeredSettings;
use super::values::{CertMode, SslMode};

/// The certificates of the authorities that are trusted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::connect) enum Roots {
    /// Those of the operating system (`sslrootcert=system`).
    System,
    /// A file, which is read if it exists. Without a home directory there is no default.
    File(Option<PathBuf>),
}

/// The settings of TLS.
#[derive(Clone, Debug)]
pub(in crate::connect) struct TlsSettings {
    pub(in crate::connect) mode: SslMode,
    /// Whether TLS starts without a request (`sslnegotiation=direct`, PostgreSQL 17 and later).
    pub(in crate::connect) direct: bool,
    pub(in crate::connect) cert_mode: CertMode,
    pub(in crate::connect) roots: Roots,
    pub(in crate::connect) certificate: Option<PathBuf>,
    pub(in crate::connect) key: Option<PathBuf>,
    pub(in crate::connect) revoked: Option<PathBuf>,
    pub(in crate::connect) sni: bool,
    pub(in crate::connect) versions: Vec<&'static SupportedProtocolVersion>,
}

impl TlsSettings {
    /// Reads the settings. `warnings` receives what is odd but harmless.
    pub(super) fn read(
        settings: &LayeredSettings,
        environment: &Environment<'_>,
        warnings: &mut Vec<String>,
    ) -> Result<Self, SettingsError> {
        let path = |name: &str, default: &str| {
            let given = settings.nonempty(name).map(PathBuf::from);
            given.or_else(|| environment.at_home(Path::new(".postgresql").join(default)))
        };
        let roots = if settings.nonempty("sslrootcert") == Some("system") {
            Roots::System
        } else {
            Roots::File(path("sslrootcert", "root.crt"))
        };
        let mode = match (settings.choice("sslmode", SslMode::VALUES)?, &roots) {
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
        let negotiation = [("postgres", false), ("direct", true)];
        let direct = settings.choice("sslnegotiation", &negotiation)? == Some(true);
        if direct && mode < SslMode::Require {
            return Err(SettingsError::about(
                "sslnegotiation",
                "sslnegotiation=direct needs sslmode=require, verify-ca or verify-full: it cannot fall back to a plain connection",
            ));
        }
        if mode == SslMode::Require
            && let (Some(given), Roots::File(Some(file))) =
                (settings.nonempty("sslrootcert"), &roots)
            && !file.exists()
        {
            warnings.push(format!(
                "sslrootcert={given:?} does not exist: with sslmode=require the server's certificate is not checked"
            ));
        }
        let cert_mode = settings.choice("sslcertmode", CertMode::VALUES)?;
        Ok(Self {
            mode,
            direct,
            cert_mode: cert_mode.unwrap_or(CertMode::Allow),
            roots,
            certificate: path("sslcert", "postgresql.crt"),
            key: path("sslkey", "postgresql.key"),
            revoked: path("sslcrl", "root.crl"),
            // libpq looks at the first character only.
            sni: settings.get("sslsni").is_none_or(|v| v.starts_with('1')),
            versions: protocol_versions(
                settings.nonempty("ssl_min_protocol_version"),
                settings.nonempty("ssl_max_protocol_version"),
            )?,
        })
    }
}

/// The supported versions between two bounds. Only 1.2 and 1.3 are supported.
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
                    format!("{name}={value:?} is not one of TLSv1, TLSv1.1, TLSv1.2, TLSv1.3"),
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
            "ssl_max_protocol_version: TLSv1.2 is the lowest supported version",
        ));
    }
    let supported = [(2, &rustls::version::TLS12), (3, &rustls::version::TLS13)];
    Ok(supported
        .into_iter()
        .filter(|(r, _)| (least..=most).contains(r))
        .map(|(_, v)| v)
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(given: &[(&'static str, &str)]) -> Result<TlsSettings, String> {
        let raw = given.iter().map(|(n, v)| (*n, (*v).to_owned())).collect();
        let nowhere = |name: &str| (name == "HOME").then(|| "/nonexistent".to_owned());
        let environment = Environment::new(&nowhere);
        let settings = LayeredSettings::gather(raw, &environment).unwrap();
        TlsSettings::read(&settings, &environment, &mut Vec::new()).map_err(|e| e.to_string())
    }

    #[test]
    fn a_weak_mode_does_not_go_with_a_setting_that_needs_a_strong_one() {
        assert_eq!(read(&[]).unwrap().mode, SslMode::Prefer);
        let system = ("sslrootcert", "system");
        assert_eq!(read(&[system]).unwrap().mode, SslMode::VerifyFull);
        let error = read(&[system, ("sslmode", "require")]).unwrap_err();
        assert!(error.contains("verify-full"), "{error}");
        let direct = ("sslnegotiation", "direct");
        let error = read(&[direct]).unwrap_err();
        assert!(error.contains("sslmode=require"), "{error}");
        assert!(read(&[direct, ("sslmode", "require")]).unwrap().direct);
    }

    #[test]
    fn only_supported_protocol_versions_can_be_chosen() {
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
