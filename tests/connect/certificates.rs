//! Certificates as they are found in the field, made by the `openssl` program.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::keeper;

/// A directory in which certificates are made.
pub(crate) struct Workshop(PathBuf);

/// Extensions of a server's certificate with these alternative names.
pub(crate) fn names(names: &str) -> String {
    format!("basicConstraints=CA:FALSE\nsubjectAltName={names}\n")
}

impl Workshop {
    pub(crate) fn new() -> Self {
        Self(keeper::dir("workshop"))
    }

    /// Where they lie.
    pub(crate) fn dir(&self) -> &str {
        self.0.to_str().unwrap()
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    fn openssl(&self, arguments: &str, more: &[&str]) {
        let output = Command::new("openssl")
            .current_dir(&self.0)
            .args(arguments.split_whitespace())
            .args(more)
            .output()
            .expect("openssl is installed");
        assert!(
            output.status.success(),
            "{arguments}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
    }

    /// A key and a self-signed certificate `name.crt`, made by the shortest recipe there is: it is an authority's.
    pub(crate) fn authority(&self, name: &str, more: &[&str]) {
        self.openssl(
            &format!(
                "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 30 -keyout {name}.key \
                 -out {name}.crt"
            ),
            &[&["-subj", &format!("/CN={name}")], more].concat(),
        );
    }

    /// A key and a request `name.csr`.
    fn request(&self, name: &str, common_name: &str) {
        self.openssl(
            &format!(
                "req -new -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout {name}.key -out {name}.csr"
            ),
            &["-subj", &format!("/CN={common_name}")],
        );
    }

    /// A certificate from an authority; without extensions it becomes one of version 1.
    pub(crate) fn issue(
        &self,
        authority: &str,
        name: &str,
        common_name: &str,
        days: i32,
        extensions: &str,
    ) {
        self.request(name, common_name);
        let mut command = format!(
            "x509 -req -in {name}.csr -CA {authority}.crt -CAkey {authority}.key -CAcreateserial -days {days} \
             -out {name}.crt"
        );
        if !extensions.is_empty() {
            fs::write(self.path(&format!("{name}.ext")), extensions).unwrap();
            command.push_str(&format!(" -extfile {name}.ext"));
        }
        self.openssl(&command, &[]);
    }

    /// A self-signed certificate of version 1.
    pub(crate) fn version_1(&self, name: &str) {
        self.request(name, "localhost");
        self.openssl(
            &format!("x509 -req -in {name}.csr -signkey {name}.key -days 30 -out {name}.crt"),
            &[],
        );
    }

    /// A list `name.crl` of what an authority has revoked.
    pub(crate) fn revocations(&self, authority: &str, name: &str, revoked: &[&str]) {
        fs::write(self.path(&format!("{name}.db")), "").unwrap();
        fs::write(
            self.path(&format!("{name}.cnf")),
            format!(
                "[ca]\ndefault_ca=x\n[x]\ndatabase={name}.db\ncertificate={authority}.crt\n\
                 private_key={authority}.key\ndefault_md=sha256\ndefault_crl_days=30\ncrlnumber={name}.number\n\
                 crl_extensions=e\n[e]\nauthorityKeyIdentifier=keyid\n"
            ),
        )
        .unwrap();
        fs::write(self.path(&format!("{name}.number")), "01\n").unwrap();
        for certificate in revoked {
            self.openssl(
                &format!("ca -config {name}.cnf -revoke {certificate}.crt"),
                &[],
            );
        }
        self.openssl(
            &format!("ca -config {name}.cnf -gencrl -out {name}.crl"),
            &[],
        );
    }

    /// Several files in one, as a chain.
    pub(crate) fn join(&self, name: &str, parts: &[&str]) {
        let text: Vec<String> = parts
            .iter()
            .map(|p| fs::read_to_string(self.path(p)).unwrap())
            .collect();
        fs::write(self.path(name), text.concat()).unwrap();
    }

    pub(crate) fn copy(&self, name: &str, to: &Path, mode: u32) {
        fs::create_dir_all(to.parent().unwrap()).unwrap();
        fs::copy(self.path(name), to).unwrap();
        fs::set_permissions(to, fs::Permissions::from_mode(mode)).unwrap();
    }
}
