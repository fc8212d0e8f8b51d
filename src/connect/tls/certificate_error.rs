//! Says why a server's certificate is not accepted.
//!
//! rustls accepts less than OpenSSL, which libpq uses. It does not accept X.509 version 1, it ignores the common name, and
//! it refuses an authority's certificate as a server's own. The recipe in PostgreSQL's documentation used to produce the
//! first two, so "invalid certificate" alone would not help.

use std::net::IpAddr;

use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{CertificateError, Error};
use x509_cert::Certificate;
use x509_cert::certificate::Version;
use x509_cert::der::Decode;
use x509_cert::der::asn1::{PrintableStringRef, Utf8StringRef};
use x509_cert::der::oid::db::rfc4519::COMMON_NAME;
use x509_cert::ext::pkix::name::GeneralName;
use x509_cert::ext::pkix::{BasicConstraints, SubjectAltName};

/// What is wrong with the certificate, for the person who issues a better one. `roots` is where the root certificates are
/// from.
pub(super) fn describe(
    certificate: &CertificateDer<'_>,
    name: &ServerName<'_>,
    error: &Error,
    roots: &str,
) -> String {
    let Ok(parsed) = Certificate::from_der(certificate) else {
        return format!("the server's certificate cannot be parsed: {error}");
    };
    let about = &parsed.tbs_certificate;
    if about.version != Version::V3 {
        return "the server's certificate is of X.509 version 1, which is not accepted (issue one of version 3, with the \
                host in its subjectAltName)"
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
                "the server's certificate has no subjectAltName, and its common name{} is ignored (issue one with {host} \
                 in its subjectAltName, or use sslmode=verify-ca, which ignores the name)",
                common_name(about)
                    .map(|n| format!(" {n:?}"))
                    .unwrap_or_default()
            ),
            Ok(Some((_, names))) => format!(
                "the server's certificate is for {}, not for {host}",
                listed(&names)
            ),
            Err(_) => format!("the server's certificate is not for {host}"),
        };
    }
    let unknown_issuer = *error == CertificateError::UnknownIssuer;
    if !unknown_issuer
        && matches!(about.get::<BasicConstraints>(), Ok(Some((_, constraints))) if constraints.ca)
    {
        return format!(
            "the server's certificate is an authority's (CA:TRUE), which is not accepted for a server (issue one with \
             CA:FALSE, or add this one to {})",
            roots
        );
    }
    if let CertificateError::Expired | CertificateError::ExpiredContext { .. } = error {
        return format!(
            "the server's certificate, or one of its authorities' certificates, has expired (the server's own is valid until {})",
            about.validity.not_after
        );
    }
    if let CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } = error {
        return format!(
            "the server's certificate is not valid before {} (is this machine's clock correct?)",
            about.validity.not_before
        );
    }
    if *error == CertificateError::Revoked {
        return "the server's certificate has been revoked by its authority (sslcrl)".to_owned();
    }
    if *error == CertificateError::UnknownRevocationStatus {
        return "sslcrl has no list of the authority that issued the server's certificate"
            .to_owned();
    }
    if unknown_issuer {
        return format!(
            "the server's certificate is not from an authority in {} (it was issued by {:?})",
            roots,
            about.issuer.to_string()
        );
    }
    format!("the server's certificate is not accepted: {error}")
}

/// The names that a certificate is for, as they would be in `host`.
fn listed(names: &SubjectAltName) -> String {
    let names: Vec<String> = names
        .0
        .iter()
        .filter_map(|name| {
            if let GeneralName::DnsName(name) = name {
                return Some(name.to_string());
            }
            let GeneralName::IpAddress(address) = name else {
                return None;
            };
            let v4 = <[u8; 4]>::try_from(address.as_bytes()).map(IpAddr::from);
            let v6 = <[u8; 16]>::try_from(address.as_bytes()).map(IpAddr::from);
            v4.or(v6).ok().map(|a| a.to_string())
        })
        .collect();
    if names.is_empty() {
        "no host".to_owned()
    } else {
        names.join(", ")
    }
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
