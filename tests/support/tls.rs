//! Certificates of every kind, made with the openssl command.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{keeper, programs, serial};

/// Whether openssl is installed. A test that finds it missing says so with [`super::skip`].
pub fn is_available() -> bool {
    programs::find("openssl").is_some()
}

/// A certificate with its key. The key is readable by the owner alone, as libpq demands.
#[derive(Clone, Debug)]
pub struct Certificate {
    /// The certificate, followed by those of the intermediate authorities: what a server or client presents.
    pub chain: PathBuf,
    /// Its key.
    pub key: PathBuf,
}

/// What a certificate is to say.
#[derive(Clone, Debug)]
pub struct Request {
    name: String,
    usage: Option<&'static str>,
    names: Vec<String>,
    days: i32,
    extensions: bool,
}

impl Request {
    /// For a server. Without an alternative name there is only the common name, which libpq takes and rustls refuses.
    pub fn server(common_name: &str) -> Self {
        Self {
            name: common_name.to_owned(),
            usage: Some("serverAuth"),
            names: Vec::new(),
            days: 30,
            extensions: true,
        }
    }

    /// For a client; the common name is its user.
    pub fn client(user: &str) -> Self {
        Self {
            usage: Some("clientAuth"),
            ..Self::server(user)
        }
    }

    /// An alternative name: a host name, or a pattern such as `*.example`.
    pub fn dns(mut self, name: &str) -> Self {
        self.names.push(format!("DNS:{name}"));
        self
    }

    /// An alternative name: an IP address.
    pub fn ip(mut self, address: &str) -> Self {
        self.names.push(format!("IP:{address}"));
        self
    }

    /// Valid until yesterday.
    pub fn expired(mut self) -> Self {
        self.days = -1;
        self
    }

    /// Without a word on what it is for, as the shortest recipes make them.
    pub fn any_usage(mut self) -> Self {
        self.usage = None;
        self
    }

    /// Without any extension, and so of version 1: no alternative names, no usage.
    pub fn version_1(mut self) -> Self {
        self.extensions = false;
        self
    }
}

/// Who signs certificates.
#[derive(Clone, Debug)]
pub struct Authority {
    /// Its own certificate: for the root, what `sslrootcert` names.
    pub certificate: PathBuf,
    key: PathBuf,
    /// The certificates between the root and what this authority signs, its own included; empty for the root.
    chain: String,
}

impl Authority {
    /// A root that trusts itself.
    pub fn root(name: &str) -> Self {
        let (certificate, key) = files();
        openssl(
            new_key(&key)
                .args(["-x509", "-days", "30", "-subj", &format!("/CN={name}")])
                .arg("-out")
                .arg(&certificate)
                .args(["-addext", "keyUsage=critical,keyCertSign,cRLSign"]),
        );
        Self {
            certificate,
            key,
            chain: String::new(),
        }
    }

    /// An authority whose certificate this one has signed.
    pub fn intermediate(&self, name: &str) -> Self {
        let extensions =
            "basicConstraints=critical,CA:TRUE\nkeyUsage=critical,keyCertSign,cRLSign\n";
        let (certificate, key) = self.sign(name, 30, Some(extensions));
        let chain = fs::read_to_string(&certificate).expect("a certificate") + &self.chain;
        Self {
            certificate,
            key,
            chain,
        }
    }

    /// Signs a certificate.
    pub fn issue(&self, request: &Request) -> Certificate {
        let mut extensions = "basicConstraints=CA:FALSE\n".to_owned();
        if let Some(usage) = request.usage {
            extensions += &format!("extendedKeyUsage={usage}\n");
        }
        if !request.names.is_empty() {
            extensions += &format!("subjectAltName={}\n", request.names.join(","));
        }
        let extensions = request.extensions.then_some(extensions.as_str());
        let (chain, key) = self.sign(&request.name, request.days, extensions);
        let own = fs::read_to_string(&chain).expect("a certificate");
        fs::write(&chain, own + &self.chain).expect("a certificate");
        Certificate { chain, key }
    }

    /// The list of these certificates, which it has signed and takes back; what `sslcrl` names.
    pub fn revocations(&self, revoked: &[&Certificate]) -> PathBuf {
        let dir = keeper::dir("crl");
        let (conf, list) = (dir.join("conf"), dir.join("list.crl"));
        fs::write(dir.join("database"), "").expect("a database");
        fs::write(dir.join("number"), "01\n").expect("a number");
        let text = format!(
            "[ca]\ndefault_ca=x\n[x]\ndatabase={dir}/database\ncrlnumber={dir}/number\ncertificate={}\n\
             private_key={}\ndefault_md=sha256\ndefault_crl_days=30\ncrl_extensions=e\n\
             [e]\nauthorityKeyIdentifier=keyid\n",
            self.certificate.display(),
            self.key.display(),
            dir = dir.display(),
        );
        fs::write(&conf, text).expect("a configuration");
        let ca = || {
            let mut command = Command::new("openssl");
            command.arg("ca").arg("-config").arg(&conf);
            command
        };
        for certificate in revoked {
            openssl(ca().arg("-revoke").arg(&certificate.chain));
        }
        openssl(ca().args(["-gencrl", "-out"]).arg(&list));
        list
    }

    fn sign(&self, name: &str, days: i32, extensions: Option<&str>) -> (PathBuf, PathBuf) {
        let (certificate, key) = files();
        let request = request(name, &certificate, &key);
        let mut sign = Command::new("openssl");
        sign.args(["x509", "-req", "-in"])
            .arg(&request)
            .arg("-CA")
            .arg(&self.certificate)
            .arg("-CAkey")
            .arg(&self.key);
        sign.args([
            "-days",
            &days.to_string(),
            "-set_serial",
            &(1000 + serial()).to_string(),
            "-out",
        ]);
        sign.arg(&certificate);
        if let Some(extensions) = extensions {
            let file = certificate.with_extension("ext");
            fs::write(&file, extensions).expect("extensions");
            sign.arg("-extfile").arg(file);
        }
        openssl(&mut sign);
        (certificate, key)
    }
}

/// A server's certificate that is its own root, an authority at that: what `openssl req -x509` makes. For one host.
pub fn self_signed(name: &str, host: &str) -> Certificate {
    let (chain, key) = files();
    let host = format!("subjectAltName=DNS:{host}");
    openssl(
        new_key(&key)
            .args(["-x509", "-days", "30", "-subj", &format!("/CN={name}")])
            .args(["-addext", &host, "-out"])
            .arg(&chain),
    );
    Certificate { chain, key }
}

/// As [`self_signed`], of version 1: without any extension, and so for no host.
pub fn self_signed_version_1(name: &str) -> Certificate {
    let (chain, key) = files();
    let request = request(name, &chain, &key);
    openssl(
        Command::new("openssl")
            .args(["x509", "-req", "-days", "30", "-in"])
            .arg(&request)
            .arg("-signkey")
            .arg(&key)
            .arg("-out")
            .arg(&chain),
    );
    Certificate { chain, key }
}

/// Asks for a certificate with a new key.
fn request(name: &str, certificate: &Path, key: &Path) -> PathBuf {
    let request = certificate.with_extension("csr");
    openssl(
        new_key(key)
            .args(["-subj", &format!("/CN={name}"), "-out"])
            .arg(&request),
    );
    request
}

fn files() -> (PathBuf, PathBuf) {
    let dir = keeper::dir("tls");
    (dir.join("own.crt"), dir.join("own.key"))
}

fn new_key(key: &Path) -> Command {
    let mut command = Command::new("openssl");
    command.args([
        "req",
        "-new",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:prime256v1",
        "-nodes",
        "-keyout",
    ]);
    command.arg(key);
    command
}

fn openssl(command: &mut Command) {
    programs::run(command);
    let key = command
        .get_args()
        .skip_while(|arg| *arg != "-keyout")
        .nth(1);
    if let Some(key) = key {
        fs::set_permissions(key, Permissions::from_mode(0o600)).expect("chmod");
    }
}
