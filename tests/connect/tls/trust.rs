//! Which certificates of a server are accepted.

use super::world::WORLD;
use super::{TLS, both_in, both_refused, given, stricter};

#[test]
fn a_private_authority_is_trusted_if_it_is_given() {
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
fn the_name_is_checked_only_with_verify_full() {
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
        "needs host as well as hostaddr",
    );
    both_in(
        good,
        &format!("hostaddr=127.0.0.1 sslmode=verify-ca {root}"),
        TLS,
    );
    both_in(good, &format!("sslsni=0 sslmode=verify-full {root}"), TLS);
}

#[test]
fn a_certificate_that_libpq_accepts_and_rustls_does_not_is_explained() {
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
fn a_self_signed_certificate_is_accepted_as_its_own_root() {
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
        "CA:TRUE",
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
fn an_intermediate_certificate_is_taken_from_what_the_server_sends() {
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
    // OpenSSL requires a self-signed root. rustls also accepts an intermediate authority in the file of roots.
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
