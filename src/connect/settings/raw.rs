//! Settings as text, before anything is known about their values.

use super::error::SettingsError;
use super::keywords;
use super::suggest::nearest;

/// Text by keyword, in the order in which it was given. A later entry wins over an earlier one.
pub(super) type RawSettings = Vec<(&'static str, String)>;

/// Adds a value under its keyword. `requiressl` is the old way to write `sslmode`.
pub(super) fn add(raw: &mut RawSettings, name: &str, value: String) -> Result<(), SettingsError> {
    if name == "requiressl" {
        let mode = if value.starts_with('1') {
            "require"
        } else {
            "prefer"
        };
        raw.push(("sslmode", mode.to_owned()));
        return Ok(());
    }
    let Some(keyword) = keywords::find(name) else {
        return Err(unknown(name));
    };
    raw.push((keyword.name, value));
    Ok(())
}

/// The error for a name that libpq does not know.
///
/// The name is shown only if it looks like one. After a stray space or quote, a piece of a password may be where a name
/// should be.
pub(super) fn unknown(name: &str) -> SettingsError {
    let is_name = !name.is_empty()
        && name.len() <= 40
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    if !is_name {
        return SettingsError::new(
            "connection string: the text before a \"=\" is not the name of a setting",
        );
    }
    let synonym = SYNONYMS.iter().find(|(word, _)| *word == name);
    let meant = synonym
        .map(|(_, keyword)| *keyword)
        .or_else(|| nearest(name, keywords::KEYWORDS.iter().map(|k| k.name)));
    SettingsError::new(match meant {
        Some(meant) => format!("unknown setting {name}: did you mean {meant}?"),
        None => format!("unknown setting {name}: it is not libpq's, remove it"),
    })
}

/// Words of other drivers whose spelling is too far from libpq's word.
const SYNONYMS: &[(&str, &str)] = &[
    ("database", "dbname"),
    ("username", "user"),
    ("pass", "password"),
    ("passwd", "password"),
    ("server", "host"),
    ("timeout", "connect_timeout"),
    ("ssl", "sslmode"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_setting_is_refused_with_the_keyword_that_was_meant() {
        for (given, meant) in [
            ("sslmod", "sslmode"),
            ("hots", "host"),
            ("prot", "port"),
            ("database", "dbname"),
            ("keepalive_count", "keepalives_count"),
            ("target_sessions_attrs", "target_session_attrs"),
            ("SSLMODE", "sslmode"),
            ("pasword", "password"),
            ("ApplicationName", "application_name"),
        ] {
            let text = unknown(given).to_string();
            assert_eq!(
                text,
                format!("unknown setting {given}: did you mean {meant}?")
            );
        }
    }

    #[test]
    fn a_parameter_of_another_tool_is_to_be_removed() {
        for given in [
            "schema",
            "pgbouncer",
            "connection_limit",
            "pool_timeout",
            "socket_timeout",
            "sslaccept",
            "pool",
            "search_path",
            "currentSchema",
            "supa",
        ] {
            let text = unknown(given).to_string();
            assert_eq!(
                text,
                format!("unknown setting {given}: it is not libpq's, remove it")
            );
        }
    }
}
