//! No peer can fill this machine's memory.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::TcpStream;

use pglease::connect::Access;

use super::{LOGGED_IN, given, packet, peer, refusal};
use crate::PATIENCE;
use crate::both::connect;

/// Sends the same bytes until the reader stops. Returns how many it took.
fn flood(stream: &mut TcpStream, bytes: &[u8]) -> u64 {
    stream.set_write_timeout(Some(PATIENCE)).unwrap();
    let mut sent = 0;
    loop {
        match stream.write(bytes) {
            Ok(n) => sent += n as u64,
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            Err(_) => return sent,
        }
        assert!(sent < 4 << 30, "the reader takes everything");
    }
}

/// How much the kernel's buffers may hold besides.
const BUFFERS: u64 = 16 << 20;

#[test]
fn a_gigabyte_in_one_message_is_not_kept() {
    let (port, thread) = peer(1, |mut stream| {
        packet(&mut stream);
        stream.write_all(b"E\x40\0\0\0").unwrap();
        flood(&mut stream, &[b'x'; 65536])
    });
    assert!(
        refusal(port, "sslmode=disable")
            .1
            .contains("sends more than")
    );
    assert!(thread.join().unwrap()[0] < BUFFERS);
}

#[test]
fn endless_notices_are_not_kept() {
    let (port, thread) = peer(1, |mut stream| {
        packet(&mut stream);
        stream.write_all(b"R\0\0\0\x08\0\0\0\0").unwrap();
        let notice = [&b"N\0\0\x04\x04M"[..], &[b'x'; 1022], &[0]].concat();
        flood(&mut stream, &notice.repeat(64))
    });
    assert!(
        refusal(port, "sslmode=disable")
            .1
            .contains("sends more than")
    );
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
