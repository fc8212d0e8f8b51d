//! Connection strings, read as libpq reads them: `key=value` pairs, or a URI (in `uri`).
//!
//! The rules are those of PostgreSQL's documentation ("Connection Strings"). Where it says nothing, they are those of
//! `conninfo_parse` in fe-connect.c. The result is text by keyword. No error quotes a part of the string that may contain
//! a password.

use super::error::SettingsError;
use super::raw::{self, RawSettings};
use super::uri;

/// Reads a URI, a `key=value` string, or the bare name of a database, as `psql -d` does.
///
/// # Errors
/// A string that libpq would refuse, or a keyword that it does not know.
pub(super) fn parse(given: &str) -> Result<RawSettings, SettingsError> {
    if let Some(rest) = given
        .strip_prefix("postgresql://")
        .or_else(|| given.strip_prefix("postgres://"))
    {
        return uri::parse(rest);
    }
    if let Some((scheme, _)) = given.split_once("://")
        && scheme
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || c == '+' || c == '-' || c == '.')
    {
        return Err(SettingsError::new(format!(
            "connection string: unknown scheme {scheme:?} (write postgresql:// or postgres://)"
        )));
    }
    if given.contains('=') {
        return parse_pairs(given);
    }
    if given.trim().is_empty() {
        return Ok(RawSettings::new());
    }
    // This is a URI without its scheme. libpq would take all of it as the name of a database, and the server would repeat
    // that name, with the password in it, in its answer.
    if given.contains('@') {
        return Err(SettingsError::new(
            "connection string: a URI must begin with postgresql:// (write dbname=... for a database with \"@\" in its name)",
        ));
    }
    Ok(vec![("dbname", given.to_owned())])
}

/// C's `isspace` in the "C" locale, which is not Rust's: it includes the vertical tab.
const fn is_space(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\n' | '\u{b}' | '\u{c}' | '\r')
}

fn parse_pairs(given: &str) -> Result<RawSettings, SettingsError> {
    let mut raw = RawSettings::new();
    let mut rest = given.trim_start_matches(is_space);
    while !rest.is_empty() {
        let end = rest.find(|c| c == '=' || is_space(c)).unwrap_or(rest.len());
        let name = &rest[..end];
        let Some(value) = rest[end..].trim_start_matches(is_space).strip_prefix('=') else {
            // The name may be a piece of a password with a space in it, so it is not shown.
            return Err(SettingsError::new(
                "connection string: a setting has no \"=\" (quote a value that contains spaces: password='a b')",
            ));
        };
        let (value, after) = read_value(value.trim_start_matches(is_space))?;
        raw::add(&mut raw, name, value)?;
        rest = after.trim_start_matches(is_space);
    }
    Ok(raw)
}

/// One value, and the text after it. The value is quoted, or ends at a space. A backslash escapes the next character.
fn read_value(text: &str) -> Result<(String, &str), SettingsError> {
    let quoted = text.starts_with('\'');
    let mut value = String::new();
    let mut chars = text.char_indices().skip(usize::from(quoted));
    while let Some((at, c)) = chars.next() {
        match c {
            '\\' => value.extend(chars.next().map(|(_, escaped)| escaped)),
            '\'' if quoted => return Ok((value, &text[at + 1..])),
            _ if !quoted && is_space(c) => return Ok((value, &text[at..])),
            _ => value.push(c),
        }
    }
    if quoted {
        return Err(SettingsError::new(
            "connection string: a quoted value has no closing \"'\"",
        ));
    }
    Ok((value, ""))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(given: &str) -> Vec<(&'static str, String)> {
        parse(given).unwrap_or_else(|e| panic!("{given}: {e}"))
    }

    fn check(given: &str, expected: &[(&str, &str)]) {
        let raw = read(given);
        let pairs: Vec<(&str, &str)> = raw.iter().map(|(k, v)| (*k, v.as_str())).collect();
        assert_eq!(pairs, expected, "{given}");
    }

    #[test]
    fn key_value_strings_are_read_as_libpq_reads_them() {
        check("", &[]);
        check("  host = a  port=5 ", &[("host", "a"), ("port", "5")]);
        check(
            r"password='it\'s \\ here' user=u",
            &[("password", r"it's \ here"), ("user", "u")],
        );
        check(r"password=a\ b\'c", &[("password", "a b'c")]);
        check("password='' user=u", &[("password", ""), ("user", "u")]);
        check("host='a'port='5'", &[("host", "a"), ("port", "5")]);
        check("host=a host=b", &[("host", "a"), ("host", "b")]);
        check(
            "host=a\tport=5\nuser=u",
            &[("host", "a"), ("port", "5"), ("user", "u")],
        );
        check("options='-c geqo=off'", &[("options", "-c geqo=off")]);
        check("requiressl=1", &[("sslmode", "require")]);
        check("mydb", &[("dbname", "mydb")]);
        check(r"password=trailing\", &[("password", "trailing")]);
        // An empty value takes the text after it, in libpq as well.
        check("password= user=u", &[("password", "user=u")]);
    }

    #[test]
    fn a_parameter_of_another_tool_in_a_uri_is_to_be_removed() {
        for (given, name) in [
            ("postgres://h/d?schema=public&pgbouncer=true", "schema"),
            ("postgres://h/d?pgbouncer=true&schema=public", "pgbouncer"),
        ] {
            let text = parse(given).unwrap_err().to_string();
            assert_eq!(
                text,
                format!("unknown setting {name}: it is not libpq's, remove it")
            );
        }
    }

    #[test]
    fn what_libpq_refuses_is_refused_without_repeating_a_password() {
        for given in [
            "user=u secret",
            "password='secret",
            "=secret",
            "password=a secret=x'y",
            "postgresql://u:secret%zz@h",
            "postgresql://u:secret%00@h",
            "postgresql://[::1",
            "postgresql://[]",
            "postgresql://[::1]secret",
            "postgresql://h?password=secret=x",
            "postgresql://h?secret",
            "mysql://u:secret@h",
            "u:secret@h/d",
            "postgres:/u:secret@h",
            "hots=h password=secret",
            "postgresql://h/d?sslmod=require&password=secret",
        ] {
            let Err(error) = parse(given) else {
                panic!("{given} was taken")
            };
            let text = error.to_string();
            assert!(
                !text.contains("secret@") && !text.contains("u:secret"),
                "{text}"
            );
            assert!(
                given.contains("secret=x'y") || !text.contains("secret"),
                "{text}"
            );
        }
    }
}
