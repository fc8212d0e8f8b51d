//! TLS as libpq is told to do it, by rustls (PostgreSQL documentation, "SSL Support" of libpq).
//!
//! Files are read when a connection is opened, as libpq reads them, so that a certificate that is renewed while a job
//! runs is used from the next heartbeat on.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rustls::client::{ResolvesClientCert, Resumption, WebPkiServerVerifier};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, CertificateRevocationListDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;
use rustls::{ClientConfig, NamedGroup, RootCertStore, SignatureScheme, SupportedProtocolVersion};

use super::SettingsError;
use super::surroundings::Surroundings;
use super::values::{self, CertMode, SslMode};
use super::verify::{Check, Verifier};

/// Where the certificates are that vouch for the server's.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Roots {
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
    roots: Roots,
    certificate: Option<PathBuf>,
    key: Option<PathBuf>,
    revoked: Option<PathBuf>,
    sni: bool,
    versions: Vec<&'static SupportedProtocolVersion>,
}

/// What is ready for a handshake.
#[derive(Clone)]
pub(super) struct Prepared {
    pub(super) config: ClientConfig,
    /// Becomes true when the server asks for a certificate and is shown one.
    pub(super) certificate_shown: Arc<AtomicBool>,
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
                return Err(SettingsError::new(
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
            return Err(SettingsError::new(
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
        self.prepare().map(drop).map_err(SettingsError)
    }

    /// Reads the files and puts together what a handshake needs.
    ///
    /// # Errors
    /// A fragment that names the file or the setting.
    pub(super) fn prepare(&self) -> Result<Prepared, String> {
        let provider = Arc::new(provider());
        let verifier = self.verifier(&provider)?;
        let certificate_shown = Arc::new(AtomicBool::new(false));
        let resolver = Certificate {
            key: self.client_certificate(&provider)?,
            shown: Arc::clone(&certificate_shown),
        };
        if self.cert_mode == CertMode::Require && resolver.key.is_none() {
            return Err("sslcertmode=require: there is no certificate in sslcert".to_owned());
        }
        let mut config = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&self.versions)
            .map_err(|e| format!("ssl_min_protocol_version: {e}"))?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(verifier))
            .with_client_cert_resolver(Arc::new(resolver));
        config.alpn_protocols = vec![b"postgresql".to_vec()];
        config.enable_sni = self.sni;
        // Each connection has a configuration of its own, so nothing could be resumed.
        config.resumption = Resumption::disabled();
        Ok(Prepared {
            config,
            certificate_shown,
        })
    }

    fn verifier(&self, provider: &Arc<CryptoProvider>) -> Result<Verifier, String> {
        let (roots, source) = match &self.roots {
            Roots::System => (system_roots()?, "the operating system's roots".to_owned()),
            Roots::File(Some(path)) if path.exists() => {
                (read_roots(path)?, path.display().to_string())
            }
            Roots::File(path) if self.mode >= SslMode::VerifyCa => {
                let path = path
                    .as_ref()
                    .map_or("~/.postgresql/root.crt".to_owned(), |p| {
                        p.display().to_string()
                    });
                return Err(format!(
                    "sslrootcert: {path} does not exist (give the file with the root certificate, or sslrootcert=system)"
                ));
            }
            Roots::File(_) => return Ok(Verifier::new(Check::Nothing, provider)),
        };
        // A file of roots that is there is used in every mode: libpq's "require" is then "verify-ca".
        let check = if self.mode == SslMode::VerifyFull {
            Check::Name
        } else {
            Check::Chain
        };
        let mut store = RootCertStore::empty();
        store.add_parsable_certificates(roots.iter().cloned());
        let chain = if store.is_empty() {
            None
        } else {
            let builder =
                WebPkiServerVerifier::builder_with_provider(Arc::new(store), Arc::clone(provider))
                    .with_crls(self.revocation_lists()?)
                    .enforce_revocation_expiration();
            Some(builder.build().map_err(|e| {
                format!("sslcrl: {e} (a revocation list has to be of version 2, with a CRL number)")
            })?)
        };
        Ok(Verifier::new(check, provider).with_roots(chain, roots, source))
    }

    fn revocation_lists(&self) -> Result<Vec<CertificateRevocationListDer<'static>>, String> {
        let Some(path) = self.revoked.as_deref().filter(|p| p.exists()) else {
            return Ok(Vec::new());
        };
        CertificateRevocationListDer::pem_file_iter(path)
            .and_then(Iterator::collect)
            .map_err(|e| format!("sslcrl: {}: {e}", path.display()))
    }

    /// The certificate to show, if there is a file with one; libpq takes a missing file for none.
    fn client_certificate(
        &self,
        provider: &CryptoProvider,
    ) -> Result<Option<Arc<CertifiedKey>>, String> {
        let Some(path) = self.certificate.as_deref().filter(|p| p.exists()) else {
            return Ok(None);
        };
        if self.cert_mode == CertMode::Disable {
            return Ok(None);
        }
        let chain = certificates(path).map_err(|e| format!("sslcert: {e}"))?;
        let key = match &self.key {
            Some(key) => read_key(key).map_err(|e| format!("sslkey: {e}"))?,
            None => return Err("sslkey: there is a certificate but no key for it".to_owned()),
        };
        CertifiedKey::from_der(chain, key, provider)
            .map(|k| Some(Arc::new(k)))
            .map_err(|e| {
                format!(
                    "sslkey: it does not belong to {}, or can't be used: {e}",
                    path.display()
                )
            })
    }
}

/// ring, with the curve first that servers before PostgreSQL 18 prefer: otherwise each handshake begins twice.
fn provider() -> CryptoProvider {
    let mut provider = rustls::crypto::ring::default_provider();
    provider
        .kx_groups
        .sort_by_key(|g| g.name() != NamedGroup::secp256r1);
    provider
}

fn system_roots() -> Result<Vec<CertificateDer<'static>>, String> {
    let found = rustls_native_certs::load_native_certs();
    if found.certs.is_empty() {
        return Err(
            "sslrootcert=system: this system has no root certificates (install ca-certificates)"
                .to_owned(),
        );
    }
    Ok(found.certs)
}

fn read_roots(path: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    certificates(path).map_err(|e| format!("sslrootcert: {e}"))
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let certificates: Vec<_> = CertificateDer::pem_file_iter(path)
        .and_then(Iterator::collect)
        .map_err(|e| format!("{}: {e}", path.display()))?;
    if certificates.is_empty() {
        return Err(format!("{} holds no certificate", path.display()));
    }
    Ok(certificates)
}

/// Reads a private key that nobody but its owner may read; the system's own keys may be read by a group.
fn read_key(path: &Path) -> Result<PrivateKeyDer<'static>, String> {
    let shown = path.display();
    let about = fs::metadata(path).map_err(|e| format!("{shown}: {e}"))?;
    if !about.is_file() {
        return Err(format!("{shown} is no plain file"));
    }
    let forbidden = if about.uid() == 0 { 0o037 } else { 0o077 };
    if about.permissions().mode() & forbidden != 0 {
        return Err(format!(
            "{shown} may be used by others (chmod 0600, or 0640 if root owns it)"
        ));
    }
    let bytes = fs::read(path).map_err(|e| format!("{shown}: {e}"))?;
    if bytes.windows(9).any(|w| w == b"ENCRYPTED") {
        return Err(format!(
            "{shown} is encrypted, which is not supported, with sslpassword or without (openssl pkey -in it -out a plain one)"
        ));
    }
    PrivateKeyDer::from_pem_slice(&bytes)
        .ok()
        .or_else(|| PrivateKeyDer::try_from(bytes).ok())
        .ok_or_else(|| format!("{shown} holds no private key"))
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
                SettingsError::new(format!(
                    "{name}={value:?} is none of TLSv1, TLSv1.1, TLSv1.2, TLSv1.3"
                ))
            })
    };
    let least = least.map_or(Ok(2), |v| rank("ssl_min_protocol_version", v))?;
    let most = most.map_or(Ok(3), |v| rank("ssl_max_protocol_version", v))?;
    if least > most {
        return Err(SettingsError::new(
            "ssl_min_protocol_version is above ssl_max_protocol_version",
        ));
    }
    if most < 2 {
        return Err(SettingsError::new(
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

/// The certificate that is shown to whoever asks for one: libpq does not look at which authorities a server names.
#[derive(Debug)]
struct Certificate {
    key: Option<Arc<CertifiedKey>>,
    shown: Arc<AtomicBool>,
}

impl ResolvesClientCert for Certificate {
    fn resolve(
        &self,
        _authorities: &[&[u8]],
        schemes: &[SignatureScheme],
    ) -> Option<Arc<CertifiedKey>> {
        let key = self
            .key
            .clone()
            .filter(|k| k.key.choose_scheme(schemes).is_some())?;
        self.shown.store(true, Ordering::Release);
        Some(key)
    }

    fn has_certs(&self) -> bool {
        self.key.is_some()
    }
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

    #[test]
    fn the_curve_that_servers_prefer_comes_first() {
        assert_eq!(provider().kx_groups[0].name(), NamedGroup::secp256r1);
    }

    #[test]
    fn a_key_that_others_may_read_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("key");
        fs::write(
            &path,
            "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n",
        )
        .unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        assert!(read_key(&path).unwrap_err().contains("used by others"));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        assert!(read_key(&path).unwrap_err().contains("encrypted"));
        fs::write(&path, "nothing").unwrap();
        assert!(
            read_key(&path)
                .unwrap_err()
                .contains("holds no private key")
        );
    }
}
