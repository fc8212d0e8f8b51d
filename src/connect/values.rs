//! What the values of settings may be, and what they mean.

use std::time::Duration;

use super::SettingsError;
use super::keywords::nearest_of;

/// How much TLS is wanted (`sslmode`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum SslMode {
    /// Never.
    Disable,
    /// Only if the server refuses a plain connection.
    Allow,
    /// Unless the server has none.
    Prefer,
    /// Always; the certificate is checked only if there is a file of roots to check it with.
    Require,
    /// Always, with a certificate that a root vouches for.
    VerifyCa,
    /// The same, and the certificate must name the host.
    VerifyFull,
}

/// Which servers will do (`target_session_attrs`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Target {
    Any,
    ReadWrite,
    ReadOnly,
    Primary,
    Standby,
    PreferStandby,
}

/// Whether SCRAM is tied to the TLS connection (`channel_binding`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ChannelBinding {
    Disable,
    Prefer,
    Require,
}

/// Whether a client certificate is shown (`sslcertmode`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CertMode {
    Disable,
    Allow,
    Require,
}

/// The words that `sslmode` may be.
pub(super) const SSL_MODES: &[(&str, SslMode)] = &[
    ("disable", SslMode::Disable),
    ("allow", SslMode::Allow),
    ("prefer", SslMode::Prefer),
    ("require", SslMode::Require),
    ("verify-ca", SslMode::VerifyCa),
    ("verify-full", SslMode::VerifyFull),
];

/// The words that `target_session_attrs` may be.
pub(super) const TARGETS: &[(&str, Target)] = &[
    ("any", Target::Any),
    ("read-write", Target::ReadWrite),
    ("read-only", Target::ReadOnly),
    ("primary", Target::Primary),
    ("standby", Target::Standby),
    ("prefer-standby", Target::PreferStandby),
];

/// The words that `channel_binding` may be.
pub(super) const CHANNEL_BINDINGS: &[(&str, ChannelBinding)] = &[
    ("disable", ChannelBinding::Disable),
    ("prefer", ChannelBinding::Prefer),
    ("require", ChannelBinding::Require),
];

/// The words that `sslcertmode` may be.
pub(super) const CERT_MODES: &[(&str, CertMode)] = &[
    ("disable", CertMode::Disable),
    ("allow", CertMode::Allow),
    ("require", CertMode::Require),
];

/// The one of `allowed` that `value` names; libpq compares them letter for letter.
pub(super) fn choice<T: Copy>(
    name: &str,
    value: &str,
    allowed: &[(&str, T)],
) -> Result<T, SettingsError> {
    if let Some((_, meaning)) = allowed.iter().find(|(word, _)| *word == value) {
        return Ok(*meaning);
    }
    let words: Vec<&str> = allowed.iter().map(|(word, _)| *word).collect();
    let hint = nearest_of(value, words.iter().copied())
        .map(|w| format!(": did you mean {w}?"))
        .unwrap_or_default();
    Err(SettingsError::about(
        name,
        format!("{name}={value:?} is none of {}{hint}", words.join(", ")),
    ))
}

/// A whole number, as `strtol` reads it.
pub(super) fn integer(name: &str, value: &str) -> Result<i32, SettingsError> {
    value
        .trim_matches(|c: char| c.is_ascii_whitespace())
        .parse()
        .map_err(|_| SettingsError::about(name, format!("{name}={value:?} is no whole number")))
}

/// A number of seconds; zero and less mean that the system, or nobody, sets a limit.
pub(super) fn seconds(name: &str, value: &str) -> Result<Option<Duration>, SettingsError> {
    let n = integer(name, value)?;
    Ok(u64::try_from(n)
        .ok()
        .filter(|n| *n > 0)
        .map(Duration::from_secs))
}

/// One item of `port`; nothing means the default.
pub(super) fn port(value: &str) -> Result<u16, SettingsError> {
    if value.is_empty() {
        return Ok(5432);
    }
    // What stands where a port should be is not repeated: in `u:pa/ss@host` it is the beginning of a password.
    value
        .trim_matches(|c: char| c.is_ascii_whitespace())
        .parse()
        .ok()
        .filter(|p: &u16| *p > 0)
        .ok_or_else(|| SettingsError::about("port", "port is no number between 1 and 65535"))
}

/// The ways in which a server may ask who is there (`require_auth`), by the words that libpq has for them.
const METHODS: [&str; 6] = ["none", "password", "md5", "gss", "sspi", "scram-sha-256"];

/// The ways of authentication that are acceptable (`require_auth`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct AuthMethods([bool; METHODS.len()]);

impl AuthMethods {
    /// Reads a list of words, all of them wanted or all of them, behind a `!`, unwanted.
    pub(super) fn parse(value: &str) -> Result<Self, SettingsError> {
        let unwanted = value.trim_start().starts_with('!');
        let mut allowed = [unwanted; METHODS.len()];
        for item in value.split(',').map(str::trim) {
            let word = item.strip_prefix('!');
            if word.is_some() != unwanted {
                return Err(SettingsError::about(
                    "require_auth",
                    "require_auth: methods with and without \"!\" can't be mixed",
                ));
            }
            let word = word.unwrap_or(item);
            let Some(at) = METHODS.iter().position(|m| *m == word) else {
                return Err(SettingsError::about(
                    "require_auth",
                    format!("require_auth={word:?} is none of {}", METHODS.join(", ")),
                ));
            };
            if allowed[at] != unwanted {
                return Err(SettingsError::about(
                    "require_auth",
                    format!("require_auth: {word} is given more than once"),
                ));
            }
            allowed[at] = !unwanted;
        }
        Ok(Self(allowed))
    }

    /// Whether a server may ask in the way that an authentication message of this code stands for; the name of the way
    /// if not. Codes are those of the frontend/backend protocol, "Message Formats", `Authentication*`.
    pub(super) fn refuses(self, code: u32, first: bool) -> Option<&'static str> {
        let at = match code {
            // The end of an exchange that was allowed to begin, or a server that asked nothing at all.
            0 if first => 0,
            3 => 1,
            5 => 2,
            7 | 8 => 3,
            9 => 4,
            10..=12 => 5,
            _ => return None,
        };
        (!self.0[at]).then_some(METHODS[at])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn require_auth_names_what_is_wanted_or_what_is_not() {
        let wanted = AuthMethods::parse("scram-sha-256,md5").unwrap();
        assert_eq!(wanted.refuses(10, true), None);
        assert_eq!(wanted.refuses(0, false), None);
        assert_eq!(wanted.refuses(5, true), None);
        assert_eq!(wanted.refuses(3, true), Some("password"));
        assert_eq!(wanted.refuses(0, true), Some("none"));
        let unwanted = AuthMethods::parse("!password, !md5").unwrap();
        assert_eq!(unwanted.refuses(3, true), Some("password"));
        assert_eq!(unwanted.refuses(0, true), None);
        for bad in ["", "scram", "md5,!password", "md5,md5", "!md5,!md5"] {
            assert!(AuthMethods::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn numbers_and_choices_say_what_would_be_right() {
        assert_eq!(port("").unwrap(), 5432);
        assert_eq!(port(" 6 ").unwrap(), 6);
        for bad in ["65536", "0", "-1", "x", "pa"] {
            let text = port(bad).unwrap_err().to_string();
            assert!(
                text.starts_with("port is no number between 1 and 65535"),
                "{text}"
            );
        }
        assert_eq!(seconds("connect_timeout", "-1").unwrap(), None);
        assert_eq!(
            seconds("connect_timeout", "3").unwrap(),
            Some(Duration::from_secs(3))
        );
        assert_eq!(
            choice("sslmode", "verify_full", SSL_MODES)
                .unwrap_err()
                .to_string(),
            "sslmode=\"verify_full\" is none of disable, allow, prefer, require, verify-ca, verify-full: \
             did you mean verify-full?"
        );
        assert!(choice("sslmode", "Require", SSL_MODES).is_err());
    }
}
