//! No peer gets a password or a plain connection that it should not have, and none is trusted before it is authenticated.

use std::io::Write as _;
use std::net::TcpStream;

use pglease::connect::Access;
use pglease::fault::Fault;

use super::{LOGGED_IN, SSL_REQUEST, given, packet, peer, refusal, rest};
use crate::both::connect;

#[test]
fn a_server_without_tls_is_refused_if_tls_is_required() {
    for mode in [
        "require",
        "verify-ca sslrootcert=/etc/ssl/certs/ca-certificates.crt",
    ] {
        let (port, thread) = peer(1, |mut stream| {
            assert_eq!(packet(&mut stream), SSL_REQUEST);
            stream.write_all(b"N").unwrap();
            rest(&mut stream)
        });
        let (fault, message) = refusal(port, &format!("sslmode={mode}"));
        // If the machine has no such file, the setting is refused and there is no connection.
        if message.contains("sslrootcert") {
            drop(TcpStream::connect(("127.0.0.1", port)));
            continue;
        }
        assert_eq!(
            (fault, message),
            (
                Fault::Refused,
                format!(
                    "127.0.0.1:{port}: the server does not support TLS, but sslmode requires it"
                )
            )
        );
        assert_eq!(
            thread.join().unwrap()[0],
            b"",
            "nothing was sent in the clear"
        );
    }
}

#[test]
fn an_error_in_answer_to_the_tls_request_is_not_shown() {
    let (port, thread) = peer(1, |mut stream| {
        assert_eq!(packet(&mut stream), SSL_REQUEST);
        stream
            .write_all(b"E\0\0\0\x20SFATAL\0C28P01\0Mcall 555-1234\0\0")
            .unwrap();
        rest(&mut stream)
    });
    let (_, message) = refusal(port, "sslmode=prefer");
    assert!(
        message.contains("with an error") && !message.contains("555"),
        "{message}"
    );
    assert_eq!(thread.join().unwrap()[0], b"");
}

#[test]
fn plain_text_after_the_consent_to_tls_is_not_taken_as_the_servers() {
    // A man in the middle can put a whole login there, in case it is read from the buffer (CVE-2021-23222).
    let (port, thread) = peer(1, |mut stream| {
        assert_eq!(packet(&mut stream), SSL_REQUEST);
        stream.write_all(&[b"S", LOGGED_IN].concat()).unwrap();
        rest(&mut stream)
    });
    let (_, message) = refusal(port, "sslmode=require");
    assert!(message.contains("TLS: "), "{message}");
    let sent = thread.join().unwrap().remove(0);
    assert!(
        !sent.windows(3).any(|w| w == b"app"),
        "the session was not started in the clear"
    );
}

#[test]
fn a_failed_handshake_leads_to_a_plain_connection_only_with_prefer() {
    let treat = |mut stream: TcpStream| {
        let first = packet(&mut stream);
        if first == SSL_REQUEST {
            stream.write_all(b"Snonsense").unwrap();
        } else {
            stream.write_all(LOGGED_IN).unwrap();
        }
        rest(&mut stream);
        first == SSL_REQUEST
    };
    let (port, thread) = peer(2, treat);
    let settings = given(port, "sslmode=prefer").resolve().unwrap();
    drop(
        connect(&settings, Access::Read)
            .map_err(|e| e.message)
            .unwrap(),
    );
    assert_eq!(thread.join().unwrap(), [true, false]);
    let (port, thread) = peer(1, treat);
    assert!(refusal(port, "sslmode=require").1.contains("TLS: "));
    assert_eq!(thread.join().unwrap(), [true]);
}

#[test]
fn no_password_is_sent_by_a_method_that_is_excluded() {
    for more in [
        "require_auth=scram-sha-256",
        "channel_binding=require",
        "require_auth=!password",
    ] {
        let (port, thread) = peer(1, |mut stream| {
            packet(&mut stream);
            stream.write_all(b"R\0\0\0\x08\0\0\0\x03").unwrap();
            rest(&mut stream)
        });
        let (fault, _) = refusal(port, &format!("sslmode=disable {more}"));
        assert_eq!(fault, Fault::Login, "{more}");
        let sent = thread.join().unwrap().remove(0);
        assert!(!sent.windows(6).any(|w| w == b"secret"), "{more}");
    }
}

#[test]
fn the_login_contains_nothing_that_a_pooler_would_refuse() {
    let (port, thread) = peer(1, |mut stream| {
        let start = packet(&mut stream);
        stream.write_all(LOGGED_IN).unwrap();
        rest(&mut stream);
        start
    });
    let given = given(
        port,
        "sslmode=disable options='-c geqo=off --statement-timeout=5s'",
    );
    let settings = given.resolve().unwrap();
    drop(
        connect(&settings, Access::Read)
            .map_err(|e| e.message)
            .unwrap(),
    );
    let start = String::from_utf8(thread.join().unwrap()[0][8..].to_vec()).unwrap();
    let words: Vec<&str> = start.trim_end_matches('\0').split('\0').collect();
    assert_eq!(
        words,
        [
            "client_encoding",
            "UTF8",
            "user",
            "app",
            "database",
            "app",
            "application_name",
            "lease"
        ]
    );
}
