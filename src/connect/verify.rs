//! Whether a server's certificate is good.

use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{WebPkiServerVerifier, verify_server_name};
use rustls::crypto::{
    CryptoProvider, WebPkiSupportedAlgorithms, verify_tls12_signature, verify_tls13_signature,
};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, DigitallySignedStruct, Error, OtherError, SignatureScheme};
use x509_cert::Certificate;
use x509_cert::certificate::Version;
use x509_cert::der::{Decode, Encode};

use super::explain::explain;

/// How much is checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Check {
    /// Nothing: whoever answers is taken for the server (`require` without a file of roots, as libpq defines it).
    Nothing,
    /// That a root vouches for the certificate.
    Chain,
    /// That too, and that it names the host.
    Name,
}

/// Why a certificate was refused, in words.
#[derive(Debug)]
pub(super) struct Untrusted(String);

impl std::fmt::Display for Untrusted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Untrusted {}

#[derive(Debug)]
pub(super) struct Verifier {
    check: Check,
    chain: Option<Arc<WebPkiServerVerifier>>,
    roots: Vec<CertificateDer<'static>>,
    /// Where the roots came from, for messages.
    source: String,
    algorithms: WebPkiSupportedAlgorithms,
}

impl Verifier {
    pub(super) fn new(check: Check, provider: &CryptoProvider) -> Self {
        Self {
            check,
            chain: None,
            roots: Vec::new(),
            source: String::new(),
            algorithms: provider.signature_verification_algorithms,
        }
    }

    pub(super) fn with_roots(
        mut self,
        chain: Option<Arc<WebPkiServerVerifier>>,
        roots: Vec<CertificateDer<'static>>,
        source: String,
    ) -> Self {
        (self.chain, self.roots, self.source) = (chain, roots, source);
        self
    }

    /// The check itself, with rustls's own errors.
    fn judge(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        now: UnixTime,
    ) -> Result<(), Error> {
        if self.roots.iter().any(|root| root == certificate) {
            // The very certificate was given as trusted: nobody has to vouch for it, but it can still be out of date or
            // somebody else's.
            in_date(certificate, now)?;
            if self.check == Check::Name {
                verify_server_name(&ParsedCertificate::try_from(certificate)?, name)?;
            }
            return Ok(());
        }
        let Some(chain) = &self.chain else {
            return Err(CertificateError::UnknownIssuer.into());
        };
        // The name is looked at last, so an error about it says that everything else is right.
        match chain.verify_server_cert(certificate, intermediates, name, &[], now) {
            Err(Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) if self.check == Check::Chain => Ok(()),
            verdict => verdict.map(drop),
        }
    }
}

/// Whether a certificate's own dates include `now`.
fn in_date(certificate: &CertificateDer<'_>, now: UnixTime) -> Result<(), Error> {
    let parsed = Certificate::from_der(certificate).map_err(|_| CertificateError::BadEncoding)?;
    let validity = parsed.tbs_certificate.validity;
    if now.as_secs() < validity.not_before.to_unix_duration().as_secs() {
        return Err(CertificateError::NotValidYet.into());
    }
    if now.as_secs() > validity.not_after.to_unix_duration().as_secs() {
        return Err(CertificateError::Expired.into());
    }
    Ok(())
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        _ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        if self.check != Check::Nothing
            && let Err(error) = self.judge(certificate, intermediates, name, now)
        {
            let why = Untrusted(explain(certificate, name, &error, &self.source));
            return Err(CertificateError::Other(OtherError(Arc::new(why))).into());
        }
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, certificate, signed, &self.algorithms)
            .or_else(|e| self.verify_with_key_alone(message, certificate, signed, e))
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signed, &self.algorithms)
            .or_else(|e| self.verify_with_key_alone(message, certificate, signed, e))
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}

impl Verifier {
    /// The handshake's signature, checked with the certificate's key and without regard to the rest of it: a certificate
    /// of version 1 that was accepted above (nothing is checked, or it is a root itself) can't be parsed by webpki.
    fn verify_with_key_alone(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
        error: Error,
    ) -> Result<HandshakeSignatureValid, Error> {
        let Ok(parsed) = Certificate::from_der(certificate) else {
            return Err(error);
        };
        if parsed.tbs_certificate.version == Version::V3 {
            return Err(error);
        }
        let info = &parsed.tbs_certificate.subject_public_key_info;
        let Ok(identifier) = info.algorithm.to_der() else {
            return Err(error);
        };
        let candidates = self
            .algorithms
            .mapping
            .iter()
            .filter(|(scheme, _)| *scheme == signed.scheme);
        candidates
            .flat_map(|(_, algorithms)| algorithms.iter())
            // rustls names an algorithm by the content of its SEQUENCE, without the two bytes of tag and length.
            .filter(|algorithm| identifier.get(2..) == Some(algorithm.public_key_alg_id().as_ref()))
            .any(|algorithm| {
                algorithm
                    .verify_signature(
                        info.subject_public_key.raw_bytes(),
                        message,
                        signed.signature(),
                    )
                    .is_ok()
            })
            .then(HandshakeSignatureValid::assertion)
            .ok_or(error)
    }
}
