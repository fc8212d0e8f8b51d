//! Values of settings: which ones are valid, and what they mean.

use std::time::Duration;

use super::error::SettingsError;
use super::suggest::nearest;

/// Whether the connection is encrypted, and how much of the server's certificate is checked (`sslmode`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::connect) enum SslMode {
    /// Never encrypted.
    Disable,
    /// Encrypted only if the server refuses a plain connection.
    Allow,
    /// Encrypted if the server has TLS.
    Prefer,
    /// Always encrypted. The certificate is checked only if there is a file of root certificates.
    Require,
    /// Always encrypted, and the certificate must be from a trusted authority.
    VerifyCa,
    /// The same, and the certificate must be for the host.
    VerifyFull,
}

impl SslMode {
    pub(super) const VALUES: &[(&str, Self)] = &[
        ("disable", Self::Disable),
        ("allow", Self::Allow),
        ("prefer", Self::Prefer),
        ("require", Self::Require),
        ("verify-ca", Self::VerifyCa),
        ("verify-full", Self::VerifyFull),
    ];
}

/// Which servers are acceptable (`target_session_attrs`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::connect) enum Target {
    Any,
    ReadWrite,
    ReadOnly,
    Primary,
    Standby,
    PreferStandby,
}

impl Target {
    pub(super) const VALUES: &[(&str, Self)] = &[
        ("any", Self::Any),
        ("read-write", Self::ReadWrite),
        ("read-only", Self::ReadOnly),
        ("primary", Self::Primary),
        ("standby", Self::Standby),
        ("prefer-standby", Self::PreferStandby),
    ];
}

/// Whether SCRAM is bound to the TLS connection (`channel_binding`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::connect) enum ChannelBinding {
    Disable,
    Prefer,
    Require,
}

impl ChannelBinding {
    pub(super) const VALUES: &[(&str, Self)] = &[
        ("disable", Self::Disable),
        ("prefer", Self::Prefer),
        ("require", Self::Require),
    ];
}

/// Whether a client certificate is sent (`sslcertmode`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::connect) enum CertMode {
    Disable,
    Allow,
    Require,
}

impl CertMode {
    pub(super) const VALUES: &[(&str, Self)] = &[
        ("disable", Self::Disable),
        ("allow", Self::Allow),
        ("require", Self::Require),
    ];
}

/// The meaning of `value` among `valid`. Like libpq, this tells capital letters apart.
pub(super) fn choice<T: Copy>(
    name: &str,
    value: &str,
    valid: &[(&str, T)],
) -> Result<T, SettingsError> {
    if let Some((_, meaning)) = valid.iter().find(|(word, _)| *word == value) {
        return Ok(*meaning);
    }
    let words: Vec<&str> = valid.iter().map(|(word, _)| *word).collect();
    let hint = nearest(value, words.iter().copied())
        .map(|w| format!(": did you mean {w}?"))
        .unwrap_or_default();
    Err(SettingsError::about(
        name,
        format!("{name}={value:?} is not one of {}{hint}", words.join(", ")),
    ))
}

/// A whole number, as `strtol` reads it.
pub(super) fn integer(name: &str, value: &str) -> Result<i32, SettingsError> {
    let number = value
        .trim_matches(|c: char| c.is_ascii_whitespace())
        .parse();
    number
        .map_err(|_| SettingsError::about(name, format!("{name}={value:?} is not a whole number")))
}

/// A number of seconds. Zero or less means that there is no limit, or the system's.
pub(super) fn seconds(name: &str, value: &str) -> Result<Option<Duration>, SettingsError> {
    let seconds = u64::try_from(integer(name, value)?).ok();
    Ok(seconds.filter(|n| *n > 0).map(Duration::from_secs))
}

/// One item of `port`. An empty one means the default.
pub(super) fn port(value: &str) -> Result<u16, SettingsError> {
    if value.is_empty() {
        return Ok(5432);
    }
    let number = value
        .trim_matches(|c: char| c.is_ascii_whitespace())
        .parse();
    number.ok().filter(|p| *p > 0).ok_or_else(|| {
        SettingsError::about(
            "port",
            format!("port={value:?} is not a number between 1 and 65535"),
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_invalid_number_or_word_is_shown_with_what_would_be_right() {
        assert_eq!(port("").unwrap(), 5432);
        assert_eq!(port(" 6 ").unwrap(), 6);
        for bad in ["65536", "0", "-1", "x", "pa"] {
            let text = port(bad).unwrap_err().to_string();
            assert_eq!(
                text,
                format!("port={bad:?} is not a number between 1 and 65535")
            );
        }
        assert_eq!(seconds("connect_timeout", "-1").unwrap(), None);
        assert_eq!(
            seconds("connect_timeout", "3").unwrap(),
            Some(Duration::from_secs(3))
        );
        assert_eq!(
            choice("sslmode", "verify_full", SslMode::VALUES)
                .unwrap_err()
                .to_string(),
            "sslmode=\"verify_full\" is not one of disable, allow, prefer, require, verify-ca, verify-full: \
             did you mean verify-full?"
        );
        assert!(choice("sslmode", "Require", SslMode::VALUES).is_err());
    }
}
