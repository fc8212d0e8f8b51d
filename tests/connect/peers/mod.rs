//! Peers that are not the server: none of them gets a password, a plain connection or this machine's memory.

mod memory;
mod secrecy;
mod time;

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::thread::JoinHandle;

use pglease::connect::Access;
use pglease::fault::Fault;

use crate::PATIENCE;
use crate::both::{Given, connect_within};

const SSL_REQUEST: [u8; 8] = [0, 0, 0, 8, 4, 210, 22, 47];

const LOGGED_IN: &[u8] = b"R\0\0\0\x08\0\0\0\0K\0\0\0\x0c\0\0\0\0\0\0\0\0Z\0\0\0\x05I";

/// A peer that accepts a number of connections, and handles each one with `treat`. The thread returns the results.
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

/// One packet without a type: the TLS request, or the start of a session.
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

#[test]
fn a_peer_that_is_not_postgresql_is_recognised() {
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
            format!("127.0.0.1:{port}: the peer is not a PostgreSQL server")
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
            .contains("not a PostgreSQL server")
    );
    thread.join().unwrap();
}

#[test]
fn a_peer_that_hangs_up_is_unreachable() {
    let (port, thread) = peer(1, drop);
    assert_eq!(refusal(port, "sslmode=disable").0, Fault::Unreachable);
    thread.join().unwrap();
}
