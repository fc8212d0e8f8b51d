//! Verifies a server's certificate.

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

use super::certificate_error::describe;

/// How much is checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Check {
    /// Nothing, as libpq defines `require` without a file of root certificates.
    Nothing,
    /// That the certificate is from a trusted authority.
    Chain,
    /// The same, and that it is for the host.
    Name,
}

/// Why a certificate is not accepted, in words.
#[derive(Debug)]
pub(in crate::connect) struct UntrustedCertificate(String);

impl std::fmt::Display for UntrustedCertificate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for UntrustedCertificate {}

/// What rustls asks about a server's certificate.
#[derive(Debug)]
pub(super) struct Verifier {
    check: Check,
    chain: Option<Arc<WebPkiServerVerifier>>,
    roots: Vec<CertificateDer<'static>>,
    /// Where the root certificates are from, for messages.
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
    fn verify(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        now: UnixTime,
    ) -> Result<(), Error> {
        if self.roots.iter().any(|root| root == certificate) {
            // This certificate itself is trusted. It can still have expired, or be for another host.
            in_date(certificate, now)?;
            if self.check == Check::Name {
                verify_server_name(&ParsedCertificate::try_from(certificate)?, name)?;
            }
            return Ok(());
        }
        let Some(chain) = &self.chain else {
            return Err(CertificateError::UnknownIssuer.into());
        };
        // The name is checked last, so an error about the name means that all the rest is valid.
        match chain.verify_server_cert(certificate, intermediates, name, &[], now) {
            Err(Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) if self.check == Check::Chain => Ok(()),
            verdict => verdict.map(drop),
        }
    }
}

/// Whether `now` is within a certificate's dates.
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
            && let Err(error) = self.verify(certificate, intermediates, name, now)
        {
            let why = UntrustedCertificate(describe(certificate, name, &error, &self.source));
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
    /// Checks the handshake's signature with nothing but the key of the certificate.
    ///
    /// webpki cannot parse certificates of version 1, and `openssl x509 -req` made such ones for a long time. `verify`
    /// accepts one if nothing is checked, or if it is a root certificate itself. The signature still matters then: without
    /// it, a man in the middle could present the server's certificate and pass channel binding.
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
            // rustls stores the content of the algorithm's SEQUENCE, without the two bytes of tag and length.
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
