//! TLS against servers as they are found in the field, side by side with `psql`.

use std::sync::LazyLock;

use crate::both::Given;
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
struct World {
    shop: Workshop,
    good: Server,
    nameless: Server,
    version_1: Server,
    own_root: Server,
    expired: Server,
    chained: Server,
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

static WORLD: LazyLock<World> = LazyLock::new(|| {
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

fn given(server: &Server, settings: &str) -> Given {
    let dir = WORLD.shop.dir();
    let settings = settings.replace("{dir}", dir);
    // A home directory is named as a word of its own here.
    let (home, settings) = match settings.split_once("HOME=") {
        Some((before, home)) => (format!("{dir}/{home}"), before.to_owned()),
        None => ("/nonexistent".to_owned(), settings),
    };
    let place = if settings.contains("host=") || settings.contains("hostaddr=") {
        ""
    } else {
        "host=localhost"
    };
    Given::new(
        Some(&format!(
            "user=app {place} port={} dbname=postgres {settings}",
            server.port()
        )),
        &[("HOME", &home)],
    )
}

/// Both get in, over this kind of connection.
fn both_in(server: &Server, settings: &str, cover: &str) {
    let said = given(server, settings)
        .compare()
        .unwrap_or_else(|e| panic!("{settings}: {e}"));
    assert!(said.contains(&format!("ssl={cover}")), "{settings}: {said}");
}

/// Both are refused, and the library says this.
fn both_refused(server: &Server, settings: &str, why: &str) {
    let text = given(server, settings).compare().expect_err(settings);
    assert!(text.contains(why), "{settings}: {text}");
}

/// Only the library refuses, and says what is missing.
fn stricter(server: &Server, settings: &str, why: &str) {
    let given = given(server, settings);
    given
        .by_psql()
        .unwrap_or_else(|e| panic!("psql {settings}: {e}"));
    let text = given.by_library().expect_err(settings);
    assert!(text.contains(why), "{settings}: {text}");
}

const TLS: &str = "TLSv1.3";

#[test]
fn a_private_authority_is_trusted_when_it_is_given() {
    let good = &WORLD.good;
    for mode in ["verify-ca", "verify-full"] {
        both_in(
            good,
            &format!("sslmode={mode} sslrootcert={{dir}}/root.crt"),
            TLS,
        );
        both_in(
            good,
            &format!("sslmode={mode} sslrootcert={{dir}}/bundle.crt"),
            TLS,
        );
        both_in(good, &format!("sslmode={mode} HOME=home"), TLS);
        both_refused(
            good,
            &format!("sslmode={mode} sslrootcert={{dir}}/other.crt"),
            "not from an authority in",
        );
        both_refused(
            good,
            &format!("sslmode={mode} sslrootcert={{dir}}/none.crt"),
            "does not exist",
        );
        both_refused(good, &format!("sslmode={mode}"), "root.crt does not exist");
    }
}

#[test]
fn the_name_counts_for_verify_full_alone() {
    let good = &WORLD.good;
    let root = "sslrootcert={dir}/root.crt";
    both_in(
        good,
        &format!("host=db.example hostaddr=127.0.0.1 sslmode=verify-full {root}"),
        TLS,
    );
    both_in(
        good,
        &format!("host=a.wild.example hostaddr=127.0.0.1 sslmode=verify-full {root}"),
        TLS,
    );
    both_in(
        good,
        &format!("host=127.0.0.1 sslmode=verify-full {root}"),
        TLS,
    );
    both_in(
        good,
        &format!("host=elsewhere.example hostaddr=127.0.0.1 sslmode=verify-ca {root}"),
        TLS,
    );
    both_refused(
        good,
        &format!("host=elsewhere.example hostaddr=127.0.0.1 sslmode=verify-full {root}"),
        "is for localhost, db.example, *.wild.example, 127.0.0.1, not for elsewhere.example",
    );
    both_refused(
        good,
        &format!("hostaddr=127.0.0.1 sslmode=verify-full {root}"),
        "needs host beside hostaddr",
    );
    both_in(
        good,
        &format!("hostaddr=127.0.0.1 sslmode=verify-ca {root}"),
        TLS,
    );
    both_in(good, &format!("sslsni=0 sslmode=verify-full {root}"), TLS);
}

#[test]
fn weaker_modes_fall_back_as_libpq_does_and_no_further() {
    let good = &WORLD.good;
    both_in(good, "", TLS);
    both_in(good, "sslmode=require", TLS);
    both_in(good, "sslmode=allow", "off");
    both_in(good, "sslmode=disable", "off");
    both_in(good, "sslmode=allow user=covered", TLS);
    both_in(good, "sslmode=prefer user=covered", TLS);
    both_in(good, "sslmode=prefer user=bare", "off");
    both_in(good, "sslmode=allow user=bare", "off");
    both_refused(good, "sslmode=require user=bare", "rejects connection");
    both_refused(good, "sslmode=disable user=covered", "rejects connection");
    // A file of roots is used whenever it is there.
    both_in(good, "sslmode=require HOME=home", TLS);
    both_refused(
        good,
        "sslmode=require HOME=strange",
        "not from an authority in",
    );
    both_refused(
        good,
        "sslmode=require sslrootcert={dir}/other.crt",
        "not from an authority in",
    );
    both_in(good, "sslmode=require sslrootcert={dir}/none.crt", TLS);
    // "prefer" promises nothing, and goes on without TLS where the certificate is bad.
    both_in(good, "sslmode=prefer HOME=strange", "off");
    both_refused(
        good,
        "sslmode=prefer user=covered HOME=strange",
        "not from an authority in",
    );
    both_in(good, "sslmode=allow HOME=strange", "off");
    both_refused(
        good,
        "sslmode=allow user=covered HOME=strange",
        "not from an authority in",
    );
}

#[test]
fn versions_of_the_protocol_can_be_bounded() {
    let good = &WORLD.good;
    both_in(
        good,
        "sslmode=require ssl_max_protocol_version=TLSv1.2",
        "TLSv1.2",
    );
    both_in(
        good,
        "sslmode=verify-full ssl_max_protocol_version=tlsv1.2 HOME=home",
        "TLSv1.2",
    );
    both_in(
        good,
        "sslmode=require ssl_min_protocol_version=TLSv1.3",
        TLS,
    );
    both_refused(
        good,
        "sslmode=require ssl_min_protocol_version=TLSv1.3 ssl_max_protocol_version=TLSv1.2",
        "above",
    );
    both_refused(
        good,
        "sslmode=require ssl_min_protocol_version=SSLv3",
        "none of",
    );
}

#[test]
fn a_login_can_be_bound_to_the_connection() {
    let good = &WORLD.good;
    for version in ["TLSv1.2", "TLSv1.3"] {
        both_in(
            good,
            &format!(
                "user=scram password=secret sslmode=require channel_binding=require ssl_max_protocol_version={version}"
            ),
            version,
        );
    }
    both_in(
        good,
        "user=scram password=secret sslmode=require channel_binding=disable",
        TLS,
    );
    both_in(good, "user=scram password=secret sslmode=require", TLS);
    both_refused(
        good,
        "user=scram password=secret sslmode=disable channel_binding=require",
        "channel_binding=require",
    );
    both_refused(
        good,
        "user=scram password=wrong sslmode=require",
        "password authentication failed",
    );
    both_refused(
        good,
        "sslmode=require channel_binding=require",
        "channel_binding=require",
    );
}

#[test]
fn a_client_certificate_is_shown_where_one_is_wanted() {
    let good = &WORLD.good;
    let with = |name: &str, key: &str| {
        format!(
            "user=certified sslmode=require sslcert={{dir}}/keys/{name}.crt sslkey={{dir}}/keys/{key}.key"
        )
    };
    both_in(good, &with("certified", "certified"), TLS);
    both_in(
        good,
        &format!(
            "{} ssl_max_protocol_version=TLSv1.2",
            with("certified", "certified")
        ),
        "TLSv1.2",
    );
    both_in(good, "user=certified sslmode=require HOME=client", TLS);
    both_refused(good, "user=certified sslmode=require", "client certificate");
    both_refused(good, &with("certified", "open"), "may be used by others");
    both_refused(good, &with("certified", "none"), "sslkey");
    both_refused(good, &with("certified", "stranger"), "does not belong to");
    both_refused(good, &with("stranger", "stranger"), "");
    both_refused(good, &with("none", "certified"), "client certificate");
}

#[test]
fn what_libpq_takes_and_rustls_does_not_is_explained() {
    let (nameless, version_1, own) = (&WORLD.nameless, &WORLD.version_1, &WORLD.own_root);
    let root = "sslrootcert={dir}/root.crt";
    both_in(nameless, &format!("sslmode=verify-ca {root}"), TLS);
    stricter(
        nameless,
        &format!("sslmode=verify-full {root}"),
        "no subjectAltName",
    );
    both_refused(
        nameless,
        &format!("host=127.0.0.1 sslmode=verify-full {root}"),
        "no subjectAltName",
    );
    let itself = "sslrootcert={dir}/version1.crt";
    both_in(version_1, "sslmode=require", TLS);
    both_in(
        version_1,
        "sslmode=require ssl_max_protocol_version=TLSv1.2",
        "TLSv1.2",
    );
    both_in(version_1, &format!("sslmode=verify-ca {itself}"), TLS);
    stricter(
        version_1,
        &format!("sslmode=verify-full {itself}"),
        "version 1",
    );
    both_refused(version_1, &format!("sslmode=verify-ca {root}"), "version 1");
    both_in(own, "sslmode=require", TLS);
    both_refused(own, &format!("sslmode=verify-full {root}"), "authority");
}

#[test]
fn a_self_signed_certificate_is_its_own_root() {
    let own = &WORLD.own_root;
    let root = "sslrootcert={dir}/own.crt";
    both_in(own, &format!("sslmode=verify-ca {root}"), TLS);
    both_in(own, &format!("sslmode=verify-full {root}"), TLS);
    both_refused(
        own,
        &format!("host=127.0.0.1 sslmode=verify-full {root}"),
        "not for 127.0.0.1",
    );
    both_refused(
        own,
        "sslmode=verify-full sslrootcert={dir}/other.crt",
        "own",
    );
}

#[test]
fn an_expired_certificate_is_refused_even_as_its_own_root() {
    let expired = &WORLD.expired;
    both_in(expired, "sslmode=require", TLS);
    both_refused(
        expired,
        "sslmode=verify-ca sslrootcert={dir}/root.crt",
        "expired",
    );
    both_refused(
        expired,
        "sslmode=verify-full sslrootcert={dir}/expired.crt",
        "expired",
    );
}

#[test]
fn an_authority_between_root_and_server_is_found_in_what_the_server_sends() {
    let chained = &WORLD.chained;
    both_in(
        chained,
        "sslmode=verify-full sslrootcert={dir}/root.crt",
        TLS,
    );
    both_refused(
        chained,
        "sslmode=verify-full sslrootcert={dir}/other.crt",
        "not from an authority in",
    );
    // OpenSSL wants a root that signed itself; an authority in the middle that is given as trusted is one for rustls.
    let middle = given(chained, "sslmode=verify-full sslrootcert={dir}/middle.crt");
    assert!(middle.by_psql().is_err());
    assert!(middle.by_library().is_ok());
}

#[test]
fn a_revoked_certificate_is_refused() {
    let good = &WORLD.good;
    let root = "sslmode=verify-full sslrootcert={dir}/root.crt";
    both_in(good, &format!("{root} sslcrl={{dir}}/nothing.crl"), TLS);
    both_refused(
        good,
        &format!("{root} sslcrl={{dir}}/revoked.crl"),
        "revoked",
    );
    both_refused(
        &WORLD.chained,
        &format!("{root} sslcrl={{dir}}/nothing.crl"),
        "",
    );
}

#[test]
fn settings_that_are_new_in_libpq_16_and_17_are_kept() {
    let good = &WORLD.good;
    let library = |settings: &str| given(good, settings).by_library();
    let refused = |settings: &str, why: &str| {
        let text = library(settings).expect_err(settings);
        assert!(text.contains(why), "{settings}: {text}");
    };
    let scram = "user=scram password=secret";
    assert!(library(&format!("{scram} require_auth=scram-sha-256")).is_ok());
    assert!(library(&format!("{scram} require_auth=!password,!md5")).is_ok());
    assert!(library("require_auth=none").is_ok());
    refused(
        &format!("{scram} require_auth=md5"),
        "the server asks for scram-sha-256",
    );
    refused("require_auth=scram-sha-256", "does not ask who is there");
    refused(
        "require_auth=!none sslmode=disable",
        "does not ask who is there",
    );
    refused(
        "sslcertmode=require sslmode=require",
        "no certificate in sslcert",
    );
    assert!(library("sslcertmode=require sslmode=require HOME=client").is_ok());
    refused(
        "sslcertmode=require sslmode=disable HOME=client",
        "sslcertmode=require",
    );
    refused(
        "user=certified sslcertmode=disable sslmode=require HOME=client",
        "client certificate",
    );
    assert_eq!(
        library("load_balance_hosts=random gssdelegation=0").err(),
        None
    );
    refused("load_balance_hosts=maybe", "none of");
    // The private authority is none of the system's.
    refused("sslrootcert=system", "");
    refused("sslrootcert=system sslmode=require", "verify-full");
    // A server before version 17 breaks such a connection off.
    refused("sslnegotiation=direct sslmode=require", "");
}
