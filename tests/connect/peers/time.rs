//! No peer can hold up a connection beyond its time limit, or keep one that is not used.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use pglease::clock::BootTime;
use pglease::connect::{Access, open};
use pglease::fault::Fault;

use super::{LOGGED_IN, given, packet, peer};
use crate::both::{Given, connect_within};

/// Whether the other side closes the connection.
fn is_closed(mut stream: TcpStream) -> bool {
    stream.read_to_end(&mut Vec::new()).is_ok()
}

#[test]
fn a_login_that_hangs_ends_in_time_and_leaves_no_connection_behind() {
    // Before the answer to the TLS request, in the handshake, and in the login.
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
fn a_host_that_was_given_up_keeps_no_connection() {
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
    let mut client = open(&settings, "lease", Access::Read, (by, by), None)
        .map_err(|e| e.message)
        .map(|made| made.client)
        .unwrap();
    // There is never an answer, and no keepalive notices.
    assert!(client.simple_query("select 1").is_err());
    drop(client);
    assert_eq!(thread.join().unwrap(), [true]);
}
