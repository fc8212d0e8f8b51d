//! As much of PostgreSQL's protocol (version 3, without TLS) as it takes to refuse a login, and to see a COMMIT and its
//! answer go by.

use std::io::{self, Read as _, Write as _};
use std::net::TcpStream;

/// An error as poolers send it: severity, SQLSTATE and message, without the source code's place that a server adds.
pub(super) fn server_lost(severity: &str, sqlstate: &str) -> Vec<u8> {
    let fields = format!("S{severity}\0V{severity}\0C{sqlstate}\0Mserver connection lost\0\0");
    let length = u32::try_from(fields.len() + 4).expect("a short message");
    [b"E", length.to_be_bytes().as_slice(), fields.as_bytes()].concat()
}

/// Hears a client out up to its login, in plain text, and refuses it.
pub(super) fn refuse_login(mut client: &TcpStream, sqlstate: &str) -> io::Result<()> {
    loop {
        let mut length = [0; 4];
        client.read_exact(&mut length)?;
        let mut body = vec![0; (u32::from_be_bytes(length) as usize).saturating_sub(4)];
        client.read_exact(&mut body)?;
        if !is_encryption_request(&body) {
            return client.write_all(&server_lost("FATAL", sqlstate));
        }
        client.write_all(b"N")?;
    }
}

/// SSLRequest or GSSENCRequest.
fn is_encryption_request(body: &[u8]) -> bool {
    matches!(body.get(..4), Some([0x04, 0xd2, 0x16, 0x2f | 0x30]))
}

/// What a client sends: first messages without a type, then messages of a type byte and a length.
#[derive(Debug, Default)]
pub(super) struct Requests {
    bytes: Vec<u8>,
    started: bool,
}

impl Requests {
    /// Takes what came next; returns whether a COMMIT has been completed by it.
    pub(super) fn begin_commit(&mut self, bytes: &[u8]) -> bool {
        self.bytes.extend_from_slice(bytes);
        let mut found = false;
        while let Some((kind, body)) = next(&mut self.bytes, self.started) {
            if kind.is_none() {
                // A request for encryption is answered with "N" and followed by another first message.
                self.started = !is_encryption_request(&body);
            }
            let sql = match kind {
                Some(b'Q') => body.as_slice(),
                // Parse: the statement's name, then its text.
                Some(b'P') => body.splitn(2, |byte| *byte == 0).nth(1).unwrap_or_default(),
                _ => &[],
            };
            let sql = String::from_utf8_lossy(sql)
                .trim_start()
                .to_ascii_uppercase();
            found |= sql.starts_with("COMMIT") || sql.starts_with("END");
        }
        found
    }
}

/// What a server sends while the answer to a COMMIT is awaited.
#[derive(Debug, Default)]
pub(super) struct Answers {
    bytes: Vec<u8>,
}

impl Answers {
    /// Takes what came next; returns whether the answer has begun to arrive: a command tag, or an error.
    pub(super) fn end_commit(&mut self, bytes: &[u8]) -> bool {
        self.bytes.extend_from_slice(bytes);
        let mut found = false;
        while let Some((kind, body)) = next(&mut self.bytes, true) {
            found |= match kind {
                Some(b'C') => body.starts_with(b"COMMIT") || body.starts_with(b"ROLLBACK"),
                Some(b'E') => true,
                _ => false,
            };
        }
        found
    }
}

/// Takes the first message out of `bytes`, if it is complete.
fn next(bytes: &mut Vec<u8>, typed: bool) -> Option<(Option<u8>, Vec<u8>)> {
    let at = usize::from(typed);
    let length = u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?) as usize;
    let end = at + length.max(4);
    if bytes.len() < end {
        return None;
    }
    let message: Vec<u8> = bytes.drain(..end).collect();
    Some((typed.then(|| message[0]), message[at + 4..].to_vec()))
}
