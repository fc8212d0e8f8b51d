//! The methods by which a server may authenticate the client (`require_auth`).

use super::error::SettingsError;

/// The methods of authentication, by libpq's words.
const METHODS: [&str; 6] = ["none", "password", "md5", "gss", "sspi", "scram-sha-256"];

/// The methods that are acceptable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::connect) struct AuthMethods([bool; METHODS.len()]);

impl AuthMethods {
    /// Reads a list of methods. All of them are required, or all of them are excluded by a `!`.
    pub(in crate::connect) fn parse(value: &str) -> Result<Self, SettingsError> {
        let excluded = value.trim_start().starts_with('!');
        let mut allowed = [excluded; METHODS.len()];
        for item in value.split(',').map(str::trim) {
            let word = item.strip_prefix('!');
            if word.is_some() != excluded {
                return Err(SettingsError::about(
                    "require_auth",
                    "require_auth: methods with and without \"!\" cannot be mixed",
                ));
            }
            let word = word.unwrap_or(item);
            let Some(at) = METHODS.iter().position(|m| *m == word) else {
                return Err(SettingsError::about(
                    "require_auth",
                    format!("require_auth={word:?} is not one of {}", METHODS.join(", ")),
                ));
            };
            if allowed[at] != excluded {
                return Err(SettingsError::about(
                    "require_auth",
                    format!("require_auth: {word} is given more than once"),
                ));
            }
            allowed[at] = !excluded;
        }
        Ok(Self(allowed))
    }

    /// The method that a server asks for in an `Authentication*` message with this code, if it is not acceptable.
    /// `first` says whether this is the first such message. The codes are those of the frontend/backend protocol,
    /// "Message Formats".
    pub(in crate::connect) fn refuses(self, code: u32, first: bool) -> Option<&'static str> {
        let at = match code {
            // Later on, this code ends an exchange that was accepted when it began.
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
    fn require_auth_lists_required_or_excluded_methods() {
        let wanted = AuthMethods::parse("scram-sha-256,md5").unwrap();
        assert_eq!(wanted.refuses(10, true), None);
        assert_eq!(wanted.refuses(0, false), None);
        assert_eq!(wanted.refuses(5, true), None);
        assert_eq!(wanted.refuses(3, true), Some("password"));
        assert_eq!(wanted.refuses(0, true), Some("none"));
        let excluded = AuthMethods::parse("!password, !md5").unwrap();
        assert_eq!(excluded.refuses(3, true), Some("password"));
        assert_eq!(excluded.refuses(0, true), None);
        for bad in ["", "scram", "md5,!password", "md5,md5", "!md5,!md5"] {
            assert!(AuthMethods::parse(bad).is_err(), "{bad}");
        }
    }
}
