//! Prepares a TLS handshake with rustls.
//!
//! The files are read for each connection, as libpq reads them. So a certificate that is renewed while a job runs is used
//! from the next heartbeat on.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rustls::client::{ResolvesClientCert, Resumption, WebPkiServerVerifier};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::CertificateRevocationListDer;
use rustls::pki_types::pem::PemObject;
use rustls::sign::CertifiedKey;
use rustls::{ClientConfig, NamedGroup, RootCertStore, SignatureScheme};

use crate::connect::settings::{CertMode, Roots, SslMode, TlsSettings};
use crate::text::without_number;

use super::pem;
use super::verify::{Check, Verifier};

/// What a handshake needs.
#[derive(Clone)]
pub(in crate::connect) struct Prepared {
    pub(in crate::connect) config: ClientConfig,
    /// Becomes true when the server requests a certificate and gets one.
    pub(in crate::connect) certificate_sent: Arc<AtomicBool>,
}

/// Reads the files of certificates and keys, and prepares a handshake.
///
/// # Errors
/// The text of a message that names the file or the setting.
pub(in crate::connect) fn prepare(settings: &TlsSettings) -> Result<Prepared, String> {
    let provider = Arc::new(provider());
    let verifier = verifier(settings, &provider)?;
    let certificate_sent = Arc::new(AtomicBool::new(false));
    let resolver = ClientCertificate {
        key: client_certificate(settings, &provider)?,
        sent: Arc::clone(&certificate_sent),
    };
    if settings.cert_mode == CertMode::Require && resolver.key.is_none() {
        return Err("sslcertmode=require: sslcert has no certificate".to_owned());
    }
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&settings.versions)
        .map_err(|e| format!("ssl_min_protocol_version: {e}"))?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier))
        .with_client_cert_resolver(Arc::new(resolver));
    config.alpn_protocols = vec![b"postgresql".to_vec()];
    config.enable_sni = settings.sni;
    // Each connection has its own configuration, so no session can be resumed.
    config.resumption = Resumption::disabled();
    Ok(Prepared {
        config,
        certificate_sent,
    })
}

fn verifier(settings: &TlsSettings, provider: &Arc<CryptoProvider>) -> Result<Verifier, String> {
    let (roots, source) = match &settings.roots {
        Roots::System => (
            pem::system_roots()?,
            "the operating system's root certificates".to_owned(),
        ),
        Roots::File(Some(path)) if path.exists() => {
            (pem::read_roots(path)?, path.display().to_string())
        }
        Roots::File(path) if settings.mode >= SslMode::VerifyCa => {
            let path = path
                .as_ref()
                .map_or("~/.postgresql/root.crt".to_owned(), |p| {
                    p.display().to_string()
                });
            return Err(format!(
                "sslrootcert: {path} does not exist (name a file with root certificates, or use sslrootcert=system)"
            ));
        }
        Roots::File(_) => return Ok(Verifier::new(Check::Nothing, provider)),
    };
    // As in libpq, a file of root certificates that exists turns "require" into "verify-ca".
    let check = if settings.mode == SslMode::VerifyFull {
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
                .with_crls(revocation_lists(settings)?)
                .enforce_revocation_expiration();
        Some(builder.build().map_err(|e| {
            format!("sslcrl: {e} (a revocation list must be of version 2, with a CRL number)")
        })?)
    };
    Ok(Verifier::new(check, provider).with_roots(chain, roots, source))
}

fn revocation_lists(
    settings: &TlsSettings,
) -> Result<Vec<CertificateRevocationListDer<'static>>, String> {
    let Some(path) = settings.revoked.as_deref().filter(|p| p.exists()) else {
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

/// The certificate to send, if its file exists. As in libpq, a missing file is not an error.
fn client_certificate(
    settings: &TlsSettings,
    provider: &CryptoProvider,
) -> Result<Option<Arc<CertifiedKey>>, String> {
    let Some(path) = settings.certificate.as_deref().filter(|p| p.exists()) else {
        return Ok(None);
    };
    if settings.cert_mode == CertMode::Disable {
        return Ok(None);
    }
    let chain = pem::certificates(path).map_err(|e| format!("sslcert: {e}"))?;
    let key = match &settings.key {
        Some(key) => pem::read_key(key).map_err(|e| format!("sslkey: {e}"))?,
        None => return Err("sslkey: there is no key for the certificate".to_owned()),
    };
    CertifiedKey::from_der(chain, key, provider)
        .map(|k| Some(Arc::new(k)))
        .map_err(|e| {
            format!(
                "sslkey: the key does not belong to {}, or cannot be used: {e}",
                path.display()
            )
        })
}

/// ring, with the curve first that servers before PostgreSQL 18 want. Otherwise each handshake begins twice.
fn provider() -> CryptoProvider {
    let mut provider = rustls::crypto::ring::default_provider();
    provider
        .kx_groups
        .sort_by_key(|g| g.name() != NamedGroup::secp256r1);
    provider
}

/// The certificate for a server that requests one. Like libpq, this ignores which authorities the server names.
#[derive(Debug)]
struct ClientCertificate {
    key: Option<Arc<CertifiedKey>>,
    sent: Arc<AtomicBool>,
}

impl ResolvesClientCert for ClientCertificate {
    fn resolve(
        &self,
        _authorities: &[&[u8]],
        schemes: &[SignatureScheme],
    ) -> Option<Arc<CertifiedKey>> {
        let key = self
            .key
            .clone()
            .filter(|k| k.key.choose_scheme(schemes).is_some())?;
        self.sent.store(true, Ordering::Release);
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
    fn the_curve_that_servers_want_comes_first() {
        assert_eq!(provider().kx_groups[0].name(), NamedGroup::secp256r1);
    }
}
