//! The servers and files of the TLS tests: each server has another kind of certificate.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use crate::support::tls::{self, Authority, Certificate, Request};
use crate::support::{Server, keeper};

const HBA: &str = "
hostssl all covered 127.0.0.1/32 trust
hostnossl all covered 127.0.0.1/32 reject
hostssl all bare 127.0.0.1/32 reject
hostnossl all bare 127.0.0.1/32 trust
hostssl all certified 127.0.0.1/32 cert
host all scram 127.0.0.1/32 scram-sha-256
";

/// What these tests need, made once.
pub(super) struct World {
    /// The directory of the files.
    pub(super) dir: PathBuf,
    pub(super) good: Server,
    pub(super) nameless: Server,
    pub(super) version_1: Server,
    pub(super) own_root: Server,
    pub(super) expired: Server,
    pub(super) chained: Server,
}

pub(super) static WORLD: LazyLock<World> = LazyLock::new(|| {
    let [root, other, clients] = ["root", "other", "clients"].map(Authority::root);
    let middle = root.intermediate("middle");
    let for_server = |name: &str| Request::server(name).any_usage();
    let at_localhost = || for_server("a server").dns("localhost");
    let good = root.issue(
        &at_localhost()
            .dns("db.example")
            .dns("*.wild.example")
            .ip("127.0.0.1"),
    );
    let own = tls::self_signed("own", "localhost");
    let version_1 = tls::self_signed_version_1("localhost");
    let expired = root.issue(&at_localhost().ip("127.0.0.1").expired());
    let certified = Request::client("certified").any_usage();
    let (certified, stranger) = (clients.issue(&certified), other.issue(&certified));

    let dir = keeper::dir("world");
    let put = |file: &Path, name: &str, mode: u32| {
        let to = dir.join(name);
        fs::create_dir_all(to.parent().unwrap()).unwrap();
        fs::copy(file, &to).unwrap();
        fs::set_permissions(&to, Permissions::from_mode(mode)).unwrap();
    };
    for (file, name) in [
        (&root.certificate, "root.crt"),
        (&other.certificate, "other.crt"),
        (&middle.certificate, "middle.crt"),
        (&own.chain, "own.crt"),
        (&version_1.chain, "version1.crt"),
        (&expired.chain, "expired.crt"),
        (&root.revocations(&[]), "nothing.crl"),
        (&root.revocations(&[&good]), "revoked.crl"),
        (&certified.chain, "keys/certified.crt"),
        (&stranger.chain, "keys/stranger.crt"),
        (&certified.key, "keys/open.key"),
        // Home directories: with the right root, with another root, and with a client certificate.
        (&root.certificate, "home/.postgresql/root.crt"),
        (&other.certificate, "strange/.postgresql/root.crt"),
        (&certified.chain, "client/.postgresql/postgresql.crt"),
    ] {
        put(file, name, 0o644);
    }
    for (file, name) in [
        (&certified.key, "keys/certified.key"),
        (&stranger.key, "keys/stranger.key"),
        (&certified.key, "client/.postgresql/postgresql.key"),
    ] {
        put(file, name, 0o600);
    }
    let both = [&other.certificate, &root.certificate].map(|file| fs::read(file).unwrap());
    fs::write(dir.join("bundle.crt"), both.concat()).unwrap();

    let server = |certificate: &Certificate| server(certificate, &clients);
    World {
        good: server(&good),
        nameless: server(&root.issue(&for_server("localhost"))),
        version_1: server(&version_1),
        own_root: server(&own),
        expired: server(&expired),
        chained: server(&middle.issue(&at_localhost())),
        dir,
    }
});

fn server(certificate: &Certificate, clients: &Authority) -> Server {
    let server = Server::builder()
        .hba(HBA)
        .ssl(&certificate.chain, &certificate.key)
        .client_ca(&clients.certificate)
        .start();
    server.psql(
        "create role app login; create role covered login; create role bare login; create role certified login; \
         create role scram login password 'secret'",
    );
    server
}
