//! Checks what a server sends, message by message, without keeping any.
//!
//! The `postgres` crate keeps a message until all of it has arrived, up to the two gigabytes that its length can say, and
//! it accepts notices without end. A peer that is not our server, by mistake or on purpose, must not be able to fill this
//! machine's memory. An announced length counts at once, so a limit on the whole is a limit on each message too.

use crate::connect::settings::AuthMethods;

use super::error::WireError;

/// The most bytes up to the end of the login.
const LOGIN: u64 = 1024 * 1024;
/// The most bytes in answer to one request. A lease's row is a few kilobytes, but the table may have many rows.
const ANSWER: u64 = 256 * 1024 * 1024;

/// The position in the stream of messages.
pub(super) struct Inbound {
    methods: Option<AuthMethods>,
    /// The message's type and length, and the code of an `Authentication` message.
    head: [u8; 9],
    /// How many bytes of `head` have arrived, and how many this message has.
    have: usize,
    want: usize,
    /// How many bytes of the message are still to come after the length.
    rest: u64,
    /// The length of all messages since the last request.
    total: u64,
    /// Whether there was an `Authentication` message.
    authenticating: bool,
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
            authenticating: false,
            logged_in: false,
        }
    }

    /// Whether the login is complete.
    pub(super) const fn is_logged_in(&self) -> bool {
        self.logged_in
    }

    /// Checks the next bytes.
    ///
    /// # Errors
    /// They are not PostgreSQL's protocol, they are too many, or they request an excluded method of authentication. Then
    /// they must not be used.
    pub(super) fn check(&mut self, mut bytes: &[u8]) -> Result<(), WireError> {
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

    /// The type and the length have arrived.
    fn begin(&mut self) -> Result<(), WireError> {
        let [kind, a, b, c, d, ..] = self.head;
        let length = u32::from_be_bytes([a, b, c, d]);
        // Authentication, Error, Notice, ParameterStatus, BackendKeyData, ReadyForQuery, NegotiateProtocolVersion.
        if length < 4 || (!self.logged_in && !b"RENSKZv".contains(&kind)) {
            return Err(WireError::NotPostgres);
        }
        self.rest = u64::from(length - 4);
        self.total += 1 + u64::from(length);
        if self.total > if self.logged_in { ANSWER } else { LOGIN } {
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
        let first = !self.authenticating;
        self.authenticating = true;
        match self.methods.and_then(|m| m.refuses(code, first)) {
            Some(method) => Err(WireError::AuthMethod(method)),
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

    /// The error, which must not depend on how the bytes are cut.
    fn verdict(methods: Option<&str>, bytes: &[u8]) -> Option<String> {
        let verdicts: Vec<Option<String>> = [1, 2, 7, bytes.len().max(1)]
            .into_iter()
            .map(|size| {
                let mut inbound = Inbound::new(methods.map(|m| AuthMethods::parse(m).unwrap()));
                bytes
                    .chunks(size)
                    .find_map(|c| inbound.check(c).err())
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
    fn a_peer_that_is_not_postgresql_is_recognised_by_its_first_bytes() {
        for garbage in [
            &b"HTTP/1.1 400 Bad Request"[..],
            b"\x15\x03\x01\x00\x02\x02\x50",
            b"R\0\0\0\x03",
            b"R\0\0\0\x04",
        ] {
            assert_eq!(
                verdict(None, garbage).as_deref(),
                Some("the peer is not a PostgreSQL server")
            );
        }
    }

    #[test]
    fn a_gigabyte_is_refused_before_it_arrives() {
        let too_much = Some("the peer sends more than a PostgreSQL server would".to_owned());
        assert_eq!(verdict(None, b"E\x40\0\0\0"), too_much);
        assert_eq!(
            verdict(None, &[login(), b"D\x40\0\0\0".to_vec()].concat()),
            too_much
        );
        // Many small messages count like a large one.
        assert_eq!(
            verdict(None, &message(b'N', &[0; 1000]).repeat(1100)),
            too_much
        );
    }

    #[test]
    fn a_method_of_authentication_is_checked_before_it_is_answered() {
        let scram = message(b'R', b"\0\0\0\x0aSCRAM-SHA-256\0\0");
        let cleartext = message(b'R', &[0, 0, 0, 3]);
        assert_eq!(
            verdict(Some("scram-sha-256"), &[scram.clone(), login()].concat()),
            None
        );
        assert_eq!(
            verdict(Some("scram-sha-256"), &cleartext).as_deref(),
            Some("require_auth: the server requested password authentication")
        );
        assert_eq!(
            verdict(Some("scram-sha-256"), &login()).as_deref(),
            Some("require_auth: the server did not request authentication")
        );
        assert_eq!(verdict(Some("!scram-sha-256"), &login()), None);
        assert!(verdict(Some("!scram-sha-256"), &scram).is_some());
    }
}
