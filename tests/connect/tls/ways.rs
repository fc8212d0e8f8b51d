//! Whether a connection is encrypted, and what the login requires of it.

use super::world::WORLD;
use super::{TLS, both_in, both_refused, given};

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
    // A file of root certificates is used if it exists.
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
    // "prefer" guarantees nothing. It goes on without TLS if the certificate is not accepted.
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
fn the_versions_of_tls_can_be_limited() {
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
        "not one of",
    );
}

#[test]
fn a_login_can_be_bound_to_the_tls_connection() {
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
fn a_client_certificate_is_sent_to_a_server_that_requests_one() {
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
    both_refused(good, &with("certified", "open"), "accessible to others");
    both_refused(good, &with("certified", "none"), "sslkey");
    both_refused(good, &with("certified", "stranger"), "does not belong to");
    both_refused(good, &with("stranger", "stranger"), "");
    both_refused(good, &with("none", "certified"), "client certificate");
}

#[test]
fn the_new_settings_of_libpq_16_and_17_take_effect() {
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
        "the server requested scram-sha-256",
    );
    refused(
        "require_auth=scram-sha-256",
        "did not request authentication",
    );
    refused(
        "require_auth=!none sslmode=disable",
        "did not request authentication",
    );
    refused(
        "sslcertmode=require sslmode=require",
        "sslcert has no certificate",
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
    refused("load_balance_hosts=maybe", "not one of");
    // The private authority is not one of the system's.
    refused("sslrootcert=system", "");
    refused("sslrootcert=system sslmode=require", "verify-full");
    // A server before version 17 closes the connection.
    refused("sslnegotiation=direct sslmode=require", "");
}
