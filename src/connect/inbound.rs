//! What a server sends, looked at on its way in: message by message, without keeping any.
//!
//! The `postgres` crate keeps a message until all of it has arrived, up to the two gigabytes that its length can say,
//! and notices without end. Whoever answers in the server's place, by mistake or on purpose, must not be able to fill
//! this machine's memory with that.

use super::values::AuthMethods;
use super::wire::WireError;

/// The most that one message may have, in bytes: before the login, and after it. A lease's row is a few kilobytes.
const MESSAGE_BEFORE_LOGIN: u32 = 64 * 1024;
const MESSAGE: u32 = 16 * 1024 * 1024;
/// The most that may come up to the end of the login, and then for one request (the table may have many rows).
const TOTAL_BEFORE_LOGIN: u64 = 1024 * 1024;
const TOTAL: u64 = 256 * 1024 * 1024;

/// Where in the stream of messages we are.
pub(super) struct Inbound {
    methods: Option<AuthMethods>,
    /// The type and length of the message that is coming in, and for `Authentication` its code.
    head: [u8; 9],
    /// How much of `head` is there, and how much of it this message has.
    have: usize,
    want: usize,
    /// How much of the message is still to come, once its head is there.
    rest: u64,
    total: u64,
    /// Whether the server has asked anything yet, and whether the login is over.
    asked: bool,
    logged_in: bool,
}

impl Inbound {
    pub(super) fn new(methods: Option<AuthMethods>) -> Self {
        Self {
            methods,
            head: [0; 9],
            have: 0,
            want: 5,
            rest: 0,
            total: 0,
            asked: false,
            logged_in: false,
        }
    }

    /// Whether the login is over.
    pub(super) const fn is_logged_in(&self) -> bool {
        self.logged_in
    }

    /// Looks at the next bytes.
    ///
    /// # Errors
    /// They are no message of PostgreSQL's, too long, or a demand that is refused. They must not be used then.
    pub(super) fn look_at(&mut self, mut bytes: &[u8]) -> Result<(), WireError> {
        while !bytes.is_empty() {
            if self.have < self.want {
                self.take(bytes[0]);
                bytes = &bytes[1..];
                if self.have == 5 && self.want == 5 {
                    self.begin()?;
                }
                if self.have == 9 {
                    self.authentication()?;
                }
            } else {
                let some = bytes
                    .len()
                    .min(usize::try_from(self.rest).unwrap_or(usize::MAX));
                self.rest -= some as u64;
                bytes = &bytes[some..];
            }
            if self.have == self.want && self.rest == 0 {
                self.end();
            }
        }
        Ok(())
    }

    fn take(&mut self, byte: u8) {
        if self.have >= 5 {
            self.rest -= 1;
        }
        self.head[self.have] = byte;
        self.have += 1;
    }

    /// The type and the length are there.
    fn begin(&mut self) -> Result<(), WireError> {
        let [kind, a, b, c, d, ..] = self.head;
        let length = u32::from_be_bytes([a, b, c, d]);
        // Authentication, Error, Notice, ParameterStatus, BackendKeyData, ReadyForQuery, NegotiateProtocolVersion.
        if length < 4 || (!self.logged_in && !b"RENSKZv".contains(&kind)) {
            return Err(WireError::NotPostgres);
        }
        self.rest = u64::from(length - 4);
        self.total += 1 + u64::from(length);
        let (message, total) = if self.logged_in {
            (MESSAGE, TOTAL)
        } else {
            (MESSAGE_BEFORE_LOGIN, TOTAL_BEFORE_LOGIN)
        };
        if length > message || self.total > total {
            return Err(WireError::TooMuch);
        }
        if kind == b'R' {
            if self.rest < 4 {
                return Err(WireError::NotPostgres);
            }
            self.want = 9;
        }
        Ok(())
    }

    fn authentication(&mut self) -> Result<(), WireError> {
        let [.., a, b, c, d] = self.head;
        let code = u32::from_be_bytes([a, b, c, d]);
        let first = !self.asked;
        self.asked = true;
        match self.methods.and_then(|m| m.refuses(code, first)) {
            Some(method) => Err(WireError::Method(method)),
            None => Ok(()),
        }
    }

    fn end(&mut self) {
        if self.head[0] == b'Z' {
            self.logged_in = true;
            self.total = 0;
        }
        self.have = 0;
        self.want = 5;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(kind: u8, body: &[u8]) -> Vec<u8> {
        let mut bytes = vec![kind];
        bytes.extend(u32::try_from(body.len() + 4).unwrap().to_be_bytes());
        bytes.extend(body);
        bytes
    }

    fn login() -> Vec<u8> {
        [
            message(b'R', &[0, 0, 0, 0]),
            message(b'S', b"a\0b\0"),
            message(b'K', &[0; 8]),
            message(b'Z', b"I"),
        ]
        .concat()
    }

    /// The verdict, which must not depend on how the bytes are cut.
    fn verdict(methods: Option<&str>, bytes: &[u8]) -> Option<String> {
        let verdicts: Vec<Option<String>> = [1, 2, 7, bytes.len().max(1)]
            .into_iter()
            .map(|size| {
                let mut inbound = Inbound::new(methods.map(|m| AuthMethods::parse(m).unwrap()));
                bytes
                    .chunks(size)
                    .find_map(|c| inbound.look_at(c).err())
                    .map(|e| e.to_string())
            })
            .collect();
        assert!(verdicts.windows(2).all(|w| w[0] == w[1]), "{verdicts:?}");
        verdicts[0].clone()
    }

    #[test]
    fn an_ordinary_conversation_passes() {
        let rows = message(b'D', &vec![7; 100_000]).repeat(20);
        assert_eq!(
            verdict(None, &[login(), rows, message(b'Z', b"I")].concat()),
            None
        );
    }

    #[test]
    fn what_is_no_postgres_is_known_by_its_first_bytes() {
        for garbage in [
            &b"HTTP/1.1 400 Bad Request"[..],
            b"\x15\x03\x01\x00\x02\x02\x50",
            b"R\0\0\0\x03",
            b"R\0\0\0\x04",
        ] {
            assert_eq!(
                verdict(None, garbage).as_deref(),
                Some("what answers there is no PostgreSQL server")
            );
        }
    }

    #[test]
    fn a_gigabyte_is_refused_before_it_comes() {
        let too_much = Some("the answer is too long to be one of a PostgreSQL server".to_owned());
        assert_eq!(verdict(None, b"E\x40\0\0\0"), too_much);
        assert_eq!(
            verdict(None, &[login(), b"D\x40\0\0\0".to_vec()].concat()),
            too_much
        );
        // Many small messages are no better than a large one.
        assert_eq!(
            verdict(None, &message(b'N', &[0; 1000]).repeat(1100)),
            too_much
        );
    }

    #[test]
    fn the_way_of_authentication_is_seen_before_it_is_answered() {
        let scram = message(b'R', b"\0\0\0\x0aSCRAM-SHA-256\0\0");
        let cleartext = message(b'R', &[0, 0, 0, 3]);
        assert_eq!(
            verdict(Some("scram-sha-256"), &[scram.clone(), login()].concat()),
            None
        );
        assert_eq!(
            verdict(Some("scram-sha-256"), &cleartext).as_deref(),
            Some("require_auth: the server asks for password")
        );
        assert_eq!(
            verdict(Some("scram-sha-256"), &login()).as_deref(),
            Some("require_auth: the server does not ask who is there")
        );
        assert_eq!(verdict(Some("!scram-sha-256"), &login()), None);
        assert!(verdict(Some("!scram-sha-256"), &scram).is_some());
    }
}
