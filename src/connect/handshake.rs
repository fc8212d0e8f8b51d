//! What a TLS handshake needs, by rustls.
//!
//! Files are read when a connection is opened, as libpq reads them, so that a certificate that is renewed while a job
//! runs is used from the next heartbeat on.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rustls::client::{ResolvesClientCert, Resumption, WebPkiServerVerifier};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::CertificateRevocationListDer;
use rustls::pki_types::pem::PemObject;
use rustls::sign::CertifiedKey;
use rustls::{ClientConfig, NamedGroup, RootCertStore, SignatureScheme};

use super::pem;
use super::reason::without_number;
use super::tls::{Roots, TlsSettings};
use super::values::{CertMode, SslMode};
use super::verify::{Check, Verifier};

/// What is ready for a handshake.
#[derive(Clone)]
pub(super) struct Prepared {
    pub(super) config: ClientConfig,
    /// Becomes true when the server asks for a certificate and is shown one.
    pub(super) certificate_shown: Arc<AtomicBool>,
}

impl TlsSettings {
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
            Roots::System => (
                pem::system_roots()?,
                "the operating system's roots".to_owned(),
            ),
            Roots::File(Some(path)) if path.exists() => {
                (pem::read_roots(path)?, path.display().to_string())
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
            .map_err(|e| {
                format!(
                    "sslcrl: {}: {}",
                    path.display(),
                    without_number(&e.to_string())
                )
            })
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
        let chain = pem::certificates(path).map_err(|e| format!("sslcert: {e}"))?;
        let key = match &self.key {
            Some(key) => pem::read_key(key).map_err(|e| format!("sslkey: {e}"))?,
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

    #[test]
    fn the_curve_that_servers_prefer_comes_first() {
        assert_eq!(provider().kx_groups[0].name(), NamedGroup::secp256r1);
    }
}
