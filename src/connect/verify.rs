//! Whether a server's certificate is good, and which property is missing if it is not.
//!
//! rustls asks for more than OpenSSL does, which libpq uses: it takes no name from the subject's common name, no X.509
//! version 1, and no authority's certificate as a server's own. The first two are what the recipe in PostgreSQL's own
//! documentation used to give, so "invalid certificate" would not help anybody.

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
use x509_cert::der::asn1::{PrintableStringRef, Utf8StringRef};
use x509_cert::der::oid::db::rfc4519::COMMON_NAME;
use x509_cert::der::{Decode, Encode};
use x509_cert::ext::pkix::{BasicConstraints, SubjectAltName};

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

    /// What is wrong with it, for whoever has to issue a better one.
    fn explain(
        &self,
        certificate: &CertificateDer<'_>,
        name: &ServerName<'_>,
        error: &Error,
    ) -> String {
        let Ok(parsed) = Certificate::from_der(certificate) else {
            return format!("the server's certificate can't be read: {error}");
        };
        let about = &parsed.tbs_certificate;
        if about.version != Version::V3 {
            return "the server's certificate is of X.509 version 1, which is not accepted: version 3 is needed, with the \
                    host in its subjectAltName"
                .to_owned();
        }
        let Error::InvalidCertificate(error) = error else {
            return format!("the server's certificate is not accepted: {error}");
        };
        let names_missing = matches!(
            error,
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. }
        );
        if names_missing {
            let host = name.to_str();
            return match about.get::<SubjectAltName>() {
                Ok(None) => format!(
                    "the server's certificate has no subjectAltName, and no name is taken from its common name{}: it has \
                     to name {host} there (or sslmode=verify-ca, which does not look at the name)",
                    common_name(about)
                        .map(|n| format!(" {n:?}"))
                        .unwrap_or_default()
                ),
                _ => format!(
                    "the server's certificate is for {}, not for {host}",
                    presented(error)
                ),
            };
        }
        let unknown_issuer = *error == CertificateError::UnknownIssuer;
        if !unknown_issuer
            && matches!(about.get::<BasicConstraints>(), Ok(Some((_, constraints))) if constraints.ca)
        {
            return format!(
                "the server's certificate is an authority's (CA:TRUE), which is not accepted as a server's own: issue one \
                 with CA:FALSE, or put this very certificate into {}",
                self.source
            );
        }
        if let CertificateError::Expired | CertificateError::ExpiredContext { .. } = error {
            return format!(
                "the server's certificate, or one that vouches for it, has expired (its own date is {})",
                about.validity.not_after
            );
        }
        if let CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } = error {
            return format!(
                "the server's certificate is not valid before {} (is this machine's clock right?)",
                about.validity.not_before
            );
        }
        if *error == CertificateError::Revoked {
            return "the server's certificate has been revoked by its authority (sslcrl)"
                .to_owned();
        }
        if *error == CertificateError::UnknownRevocationStatus {
            return "sslcrl has no list of the authority that the server's certificate comes from"
                .to_owned();
        }
        if unknown_issuer {
            return format!(
                "the server's certificate is not from an authority in {} (it was issued by {:?})",
                self.source,
                about.issuer.to_string()
            );
        }
        format!("the server's certificate is not accepted: {error}")
    }
}

/// The names that a certificate has, as rustls lists them.
fn presented(error: &CertificateError) -> String {
    if let CertificateError::NotValidForNameContext { presented, .. } = error
        && !presented.is_empty()
    {
        return presented.join(", ");
    }
    "another name".to_owned()
}

fn common_name(about: &x509_cert::TbsCertificate) -> Option<String> {
    let attribute = about
        .subject
        .0
        .iter()
        .flat_map(|rdn| rdn.0.iter())
        .find(|a| a.oid == COMMON_NAME)?;
    let value = &attribute.value;
    (value
        .decode_as::<Utf8StringRef<'_>>()
        .map(|s| s.as_str().to_owned()))
    .or_else(|_| {
        value
            .decode_as::<PrintableStringRef<'_>>()
            .map(|s| s.as_str().to_owned())
    })
    .ok()
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
            let why = Untrusted(self.explain(certificate, name, &error));
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
