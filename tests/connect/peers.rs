//! Whoever answers in the server's place: no peer gets a password, a plain connection or this machine's memory by it.

use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread::JoinHandle;
use std::time::Duration;

use pglease::clock::BootTime;
use pglease::connect::{Access, open};
use pglease::fault::Fault;

use crate::PATIENCE;
use crate::both::{Given, connect, connect_within};

const SSL_REQUEST: [u8; 8] = [0, 0, 0, 8, 4, 210, 22, 47];
const LOGGED_IN: &[u8] = b"R\0\0\0\x08\0\0\0\0K\0\0\0\x0c\0\0\0\0\0\0\0\0Z\0\0\0\x05I";

/// A peer that treats each of so many connections in its own way, and gives back what that returns.
fn peer<T: Send + 'static>(
    connections: usize,
    treat: impl Fn(TcpStream) -> T + Send + 'static,
) -> (u16, JoinHandle<Vec<T>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let thread = std::thread::spawn(move || {
        (0..connections)
            .map(|_| {
                let stream = listener.accept().unwrap().0;
                stream.set_read_timeout(Some(PATIENCE)).unwrap();
                treat(stream)
            })
            .collect()
    });
    (port, thread)
}

fn given(port: u16, more: &str) -> Given {
    Given::new(
        Some(&format!(
            "host=127.0.0.1 port={port} user=app dbname=app password=secret {more}"
        )),
        &[("HOME", "/nonexistent")],
    )
}

fn refusal(port: u16, more: &str) -> (Fault, String) {
    connect_within(&given(port, more), Access::Read, PATIENCE).unwrap_err()
}

/// One packet without a type: the request for TLS, or the start of a session.
fn packet(stream: &mut TcpStream) -> Vec<u8> {
    let mut length = [0; 4];
    stream.read_exact(&mut length).unwrap();
    let mut bytes = length.to_vec();
    bytes.resize(u32::from_be_bytes(length) as usize, 0);
    stream.read_exact(&mut bytes[4..]).unwrap();
    bytes
}

/// Everything up to the end of the connection, however it ends.
fn rest(stream: &mut TcpStream) -> Vec<u8> {
    let mut bytes = Vec::new();
    let _ = stream.read_to_end(&mut bytes);
    bytes
}

/// Sends the same bytes until nobody takes them any more; how many were taken.
fn flood(stream: &mut TcpStream, bytes: &[u8]) -> u64 {
    stream.set_write_timeout(Some(PATIENCE)).unwrap();
    let mut sent = 0;
    loop {
        match stream.write(bytes) {
            Ok(n) => sent += n as u64,
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            Err(_) => return sent,
        }
        assert!(sent < 4 << 30, "it would take everything");
    }
}

/// What the kernel's buffers may have taken beside the reader.
const BUFFERS: u64 = 16 << 20;

#[test]
fn another_kind_of_server_is_recognised() {
    let (port, thread) = peer(1, |mut stream| {
        packet(&mut stream);
        stream
            .write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n")
            .unwrap();
    });
    let (fault, message) = refusal(port, "sslmode=disable");
    assert_eq!(
        (fault, message),
        (
            Fault::Refused,
            format!("127.0.0.1:{port}: what answers there is no PostgreSQL server")
        )
    );
    thread.join().unwrap();
    let (port, thread) = peer(1, |mut stream| {
        assert_eq!(packet(&mut stream), SSL_REQUEST);
        stream
            .write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n")
            .unwrap();
    });
    assert!(
        refusal(port, "sslmode=prefer")
            .1
            .contains("no PostgreSQL server")
    );
    thread.join().unwrap();
}

#[test]
fn a_peer_that_hangs_up_is_unreachable() {
    let (port, thread) = peer(1, drop);
    assert_eq!(refusal(port, "sslmode=disable").0, Fault::Unreachable);
    thread.join().unwrap();
}

#[test]
fn a_gigabyte_in_one_message_is_not_kept() {
    let (port, thread) = peer(1, |mut stream| {
        packet(&mut stream);
        stream.write_all(b"E\x40\0\0\0").unwrap();
        flood(&mut stream, &[b'x'; 65536])
    });
    assert!(refusal(port, "sslmode=disable").1.contains("too long"));
    assert!(thread.join().unwrap()[0] < BUFFERS);
}

#[test]
fn notices_without_end_are_not_kept() {
    let (port, thread) = peer(1, |mut stream| {
        packet(&mut stream);
        stream.write_all(b"R\0\0\0\x08\0\0\0\0").unwrap();
        let notice = [&b"N\0\0\x04\x04M"[..], &[b'x'; 1022], &[0]].concat();
        flood(&mut stream, &notice.repeat(64))
    });
    assert!(refusal(port, "sslmode=disable").1.contains("too long"));
    assert!(thread.join().unwrap()[0] < BUFFERS);
}

#[test]
fn a_gigabyte_in_an_answer_is_not_kept() {
    let (port, thread) = peer(1, |mut stream| {
        packet(&mut stream);
        stream.write_all(LOGGED_IN).unwrap();
        stream.read_exact(&mut [0; 5]).unwrap();
        stream.write_all(b"D\x40\0\0\0").unwrap();
        flood(&mut stream, &[b'x'; 65536])
    });
    let settings = given(port, "sslmode=disable").resolve().unwrap();
    let mut client = connect(&settings, Access::Read)
        .map_err(|e| e.message)
        .unwrap();
    assert!(client.simple_query("select 1").is_err());
    drop(client);
    assert!(thread.join().unwrap()[0] < BUFFERS);
}

#[test]
fn a_refusal_of_tls_ends_a_connection_that_needs_it() {
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
        // Where the machine has no such file the setting is refused, and nobody was connected to.
        if message.contains("sslrootcert") {
            drop(TcpStream::connect(("127.0.0.1", port)));
            continue;
        }
        assert_eq!(
            (fault, message),
            (
                Fault::Refused,
                format!("127.0.0.1:{port}: the server has no TLS, but sslmode requires it")
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
fn an_error_in_answer_to_the_request_for_tls_is_not_believed() {
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
fn plain_text_behind_the_consent_to_tls_is_not_taken_for_the_server() {
    // A man in the middle may put a whole login there, hoping that it is read from the buffer (CVE-2021-23222).
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
fn a_broken_handshake_leads_to_a_plain_connection_for_prefer_alone() {
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
fn no_password_is_sent_in_a_way_that_was_excluded() {
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
fn nothing_is_asked_of_the_server_that_a_pooler_would_refuse() {
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

/// Whether the other side has closed the connection, after whatever it still had to say.
fn is_closed(mut stream: TcpStream) -> bool {
    stream.read_to_end(&mut Vec::new()).is_ok()
}

#[test]
fn a_login_that_hangs_ends_in_time_and_leaves_no_connection_behind() {
    // Stopped before the request for TLS is answered, in the middle of the handshake, and in the login.
    for (mode, answers) in [("require", &b""[..]), ("require", b"S"), ("prefer", b"N")] {
        let (port, thread) = peer(1, |mut stream| {
            packet(&mut stream);
            stream.write_all(answers).unwrap();
            is_closed(stream)
        });
        let given = given(port, &format!("sslmode={mode}"));
        let (fault, _) = connect_within(&given, Access::Read, Duration::from_secs(1)).unwrap_err();
        assert_eq!(fault, Fault::Timeout, "{mode}");
        assert_eq!(thread.join().unwrap(), [true], "{mode}");
    }
}

#[test]
fn a_host_that_was_given_up_is_let_go_of() {
    let (port, thread) = peer(2, is_closed);
    let given = Given::new(
        Some(&format!(
            "host=127.0.0.1,127.0.0.1 port={port},{port} user=app sslmode=disable"
        )),
        &[("HOME", "/nonexistent")],
    );
    assert!(connect_within(&given, Access::Read, Duration::from_secs(1)).is_err());
    assert_eq!(thread.join().unwrap(), [true, true]);
}

#[test]
fn a_connection_ends_soon_after_the_operation_that_it_was_for() {
    let (port, thread) = peer(1, |mut stream| {
        packet(&mut stream);
        stream.write_all(LOGGED_IN).unwrap();
        is_closed(stream)
    });
    let settings = given(port, "sslmode=disable").resolve().unwrap();
    let by = BootTime::now() + Duration::from_secs(1);
    let mut client = open(&settings, "lease", Access::Read, by)
        .map_err(|e| e.message)
        .unwrap();
    // Nobody ever answers this, and no keepalive would notice.
    assert!(client.simple_query("select 1").is_err());
    drop(client);
    assert_eq!(thread.join().unwrap(), [true]);
}
