//! With which encryption an address is tried, and when a second time with the other one. The rules are libpq's.

use super::error::{ConnectError, Stage};
use super::settings::SslMode;

/// The encryption of one attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    Plain,
    IfOffered,
    Required,
}

/// Why an attempt failed, and whether the connection was encrypted.
pub(super) type WayError = (ConnectError, bool);

/// Makes an attempt, and a second one where libpq does so for this `sslmode`.
pub(super) fn in_the_order_of<T>(
    mode: SslMode,
    once: impl Fn(Way) -> Result<T, WayError>,
) -> Result<T, ConnectError> {
    let tried = match mode {
        SslMode::Disable => once(Way::Plain),
        SslMode::Allow => once(Way::Plain).or_else(|(plain, _)| {
            if plain.stage != (Stage::Refused { not_now: false }) {
                return Err((plain, false));
            }
            once(Way::Required).map_err(|(tls, encrypted)| {
                let text = if tls.stage == Stage::NoTls {
                    plain
                } else {
                    both(plain, "with TLS", tls)
                };
                (text, encrypted)
            })
        }),
        SslMode::Prefer => once(Way::IfOffered).or_else(|(tls, encrypted)| {
            let again = tls.stage == Stage::Handshake
                || (encrypted && tls.stage == (Stage::Refused { not_now: false }));
            if !again {
                return Err((tls, encrypted));
            }
            once(Way::Plain)
                .map_err(|(plain, encrypted)| (both(tls, "without TLS", plain), encrypted))
        }),
        SslMode::Require | SslMode::VerifyCa | SslMode::VerifyFull => once(Way::Required),
    };
    tried.map_err(|(error, _)| error)
}

/// The errors of both attempts, unless they are equal.
fn both(first: ConnectError, way: &str, second: ConnectError) -> ConnectError {
    if first.text == second.text {
        return second;
    }
    ConnectError {
        text: format!("{}; {way}: {}", first.text, second.text),
        ..second
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fault::Fault;

    #[test]
    fn two_attempts_that_fail_alike_are_reported_once() {
        let error = |text: &str| ConnectError::new(Fault::Login, text);
        assert_eq!(both(error("a"), "with TLS", error("a")).text, "a");
        assert_eq!(
            both(error("a"), "with TLS", error("b")).text,
            "a; with TLS: b"
        );
    }
}
