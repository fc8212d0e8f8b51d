//! What the tests of TLS have to do with: servers, each with a certificate of another kind, and files of every kind.

use std::sync::LazyLock;

use crate::certificates::{Workshop, names};
use crate::support::Server;

const HBA: &str = "
hostssl all covered 127.0.0.1/32 trust
hostnossl all covered 127.0.0.1/32 reject
hostssl all bare 127.0.0.1/32 reject
hostnossl all bare 127.0.0.1/32 trust
hostssl all certified 127.0.0.1/32 cert
host all scram 127.0.0.1/32 scram-sha-256
";

/// Everything that these tests need, made once.
pub(super) struct World {
    pub(super) shop: Workshop,
    pub(super) good: Server,
    pub(super) nameless: Server,
    pub(super) version_1: Server,
    pub(super) own_root: Server,
    pub(super) expired: Server,
    pub(super) chained: Server,
}

fn server(shop: &Workshop, certificate: &str, key: &str) -> Server {
    let server = Server::builder()
        .hba(HBA)
        .ssl(shop.path(certificate), shop.path(key))
        .client_ca(shop.path("clients.crt"))
        .start();
    server.psql(
        "create role app login; create role covered login; create role bare login; create role certified login; \
         create role scram login password 'secret'",
    );
    server
}

pub(super) static WORLD: LazyLock<World> = LazyLock::new(|| {
    let shop = Workshop::new();
    shop.authority("root", &[]);
    shop.authority("other", &[]);
    shop.authority("clients", &[]);
    shop.issue(
        "root",
        "good",
        "a server",
        30,
        &names("DNS:localhost,DNS:db.example,DNS:*.wild.example,IP:127.0.0.1"),
    );
    shop.issue(
        "root",
        "nameless",
        "localhost",
        30,
        "basicConstraints=CA:FALSE\n",
    );
    shop.issue(
        "root",
        "expired",
        "a server",
        -1,
        &names("DNS:localhost,IP:127.0.0.1"),
    );
    shop.version_1("version1");
    shop.authority("own", &["-addext", "subjectAltName=DNS:localhost"]);
    shop.issue(
        "root",
        "middle",
        "middle",
        30,
        "basicConstraints=critical,CA:TRUE\nkeyUsage=keyCertSign,cRLSign\n",
    );
    shop.issue("middle", "leaf", "a server", 30, &names("DNS:localhost"));
    shop.join("chain.crt", &["leaf.crt", "middle.crt"]);
    shop.join("bundle.crt", &["other.crt", "root.crt"]);
    shop.issue(
        "clients",
        "certified",
        "certified",
        30,
        "basicConstraints=CA:FALSE\n",
    );
    shop.issue(
        "other",
        "stranger",
        "certified",
        30,
        "basicConstraints=CA:FALSE\n",
    );
    shop.revocations("root", "nothing", &[]);
    shop.revocations("root", "revoked", &["good"]);
    for (name, crt, key) in [("certified", 0o644, 0o600), ("stranger", 0o644, 0o600)] {
        shop.copy(
            &format!("{name}.crt"),
            &shop.path(&format!("keys/{name}.crt")),
            crt,
        );
        shop.copy(
            &format!("{name}.key"),
            &shop.path(&format!("keys/{name}.key")),
            key,
        );
    }
    shop.copy("certified.key", &shop.path("keys/open.key"), 0o644);
    // Home directories: with the right root, with another one, with a certificate of the client's, with nothing.
    shop.copy("root.crt", &shop.path("home/.postgresql/root.crt"), 0o644);
    shop.copy(
        "other.crt",
        &shop.path("strange/.postgresql/root.crt"),
        0o644,
    );
    shop.copy(
        "certified.crt",
        &shop.path("client/.postgresql/postgresql.crt"),
        0o644,
    );
    shop.copy(
        "certified.key",
        &shop.path("client/.postgresql/postgresql.key"),
        0o600,
    );
    World {
        good: server(&shop, "good.crt", "good.key"),
        nameless: server(&shop, "nameless.crt", "nameless.key"),
        version_1: server(&shop, "version1.crt", "version1.key"),
        own_root: server(&shop, "own.crt", "own.key"),
        expired: server(&shop, "expired.crt", "expired.key"),
        chained: server(&shop, "chain.crt", "leaf.key"),
        shop,
    }
});
