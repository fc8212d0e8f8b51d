//! Files with certificates and keys.

use std::fs;
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use crate::text::{os_error_text, without_number};

/// The root certificates of the operating system.
pub(super) fn system_roots() -> Result<Vec<CertificateDer<'static>>, String> {
    let found = rustls_native_certs::load_native_certs();
    if found.certs.is_empty() {
        return Err(
            "sslrootcert=system: this machine has no root certificates (install ca-certificates)"
                .to_owned(),
        );
    }
    Ok(found.certs)
}

pub(super) fn read_roots(path: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    certificates(path).map_err(|e| format!("sslrootcert: {e}"))
}

pub(super) fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let certificates: Vec<_> = CertificateDer::pem_file_iter(path)
        .and_then(Iterator::collect)
        .map_err(|e| format!("{}: {}", path.display(), without_number(&e.to_string())))?;
    if certificates.is_empty() {
        return Err(format!("{} does not contain a certificate", path.display()));
    }
    Ok(certificates)
}

/// Reads a private key. Only its owner may have access to it, or also a group if the owner is root.
pub(super) fn read_key(path: &Path) -> Result<PrivateKeyDer<'static>, String> {
    let shown = path.display();
    let unreadable = |e: io::Error| format!("{shown}: {}", os_error_text(&e));
    let about = fs::metadata(path).map_err(unreadable)?;
    if !about.is_file() {
        return Err(format!("{shown} is not a regular file"));
    }
    let forbidden = if about.uid() == 0 { 0o037 } else { 0o077 };
    if about.permissions().mode() & forbidden != 0 {
        return Err(format!(
            "{shown} is accessible to others (chmod 0600, or 0640 if root owns it)"
        ));
    }
    let bytes = fs::read(path).map_err(unreadable)?;
    if bytes.windows(9).any(|w| w == b"ENCRYPTED") {
        return Err(format!(
            "{shown} is encrypted, which is not supported (decrypt it: openssl pkey -in {shown} -out ...)"
        ));
    }
    PrivateKeyDer::from_pem_slice(&bytes)
        .ok()
        .or_else(|| PrivateKeyDer::try_from(bytes).ok())
        .ok_or_else(|| format!("{shown} does not contain a private key"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_that_others_can_read_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("key");
        fs::write(
            &path,
            "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n",
        )
        .unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        assert!(
            read_key(&path)
                .unwrap_err()
                .contains("accessible to others")
        );
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        assert!(read_key(&path).unwrap_err().contains("encrypted"));
        fs::write(&path, "nothing").unwrap();
        assert!(
            read_key(&path)
                .unwrap_err()
                .contains("does not contain a private key")
        );
    }
}
