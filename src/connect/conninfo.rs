//! Connection strings, read as libpq reads them: `key=value` words, or a URI (in `uri`).
//!
//! The rules are those of PostgreSQL's documentation ("Connection Strings") and, where it is silent, of
//! `conninfo_parse` in fe-connect.c. What comes out is text by keyword; what the text means is
//! decided elsewhere. No error quotes any part of a string that may hold a password.

use super::SettingsError;
use super::keywords;
use super::uri;

/// Text by keyword, in the order in which it was given; a later entry wins over an earlier one.
pub(super) type Words = Vec<(&'static str, String)>;

/// Reads a URI, a `key=value` string, or the bare name of a database, as `psql -d` does.
///
/// # Errors
/// A string that libpq would refuse, or a word that it does not know.
pub(super) fn parse(given: &str) -> Result<Words, SettingsError> {
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
            "connection string: the scheme {scheme:?} is unknown (write postgresql:// or postgres://)"
        )));
    }
    if given.contains('=') {
        return parse_words(given);
    }
    if given.trim().is_empty() {
        return Ok(Words::new());
    }
    // A URL that lost its scheme. libpq would take all of it for the name of a database, and the server repeats that
    // name, with the password in it, in its answer.
    if given.contains('@') {
        return Err(SettingsError::new(
            "connection string: a URL has to begin with postgresql:// (a database whose name contains \"@\" is given as dbname=...)",
        ));
    }
    Ok(vec![("dbname", given.to_owned())])
}

/// C's `isspace` in the "C" locale, which is not Rust's: it includes the vertical tab.
const fn is_space(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\n' | '\u{b}' | '\u{c}' | '\r')
}

fn parse_words(given: &str) -> Result<Words, SettingsError> {
    let mut words = Words::new();
    let mut rest = given.trim_start_matches(is_space);
    while !rest.is_empty() {
        let end = rest.find(|c| c == '=' || is_space(c)).unwrap_or(rest.len());
        let name = &rest[..end];
        let Some(value) = rest[end..].trim_start_matches(is_space).strip_prefix('=') else {
            // The word may be a piece of a password that holds a space, so it is not repeated.
            return Err(SettingsError::new(
                "connection string: a word has no \"=\" after it (quote values that contain spaces: password='a b')",
            ));
        };
        let (value, after) = read_value(value.trim_start_matches(is_space))?;
        store(&mut words, name, value)?;
        rest = after.trim_start_matches(is_space);
    }
    Ok(words)
}

/// One value and what stands behind it: quoted, or up to the next space; a backslash takes the next character as it is.
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

/// Keeps a value under its keyword. `requiressl` is the old way of saying `sslmode`.
pub(super) fn store(words: &mut Words, name: &str, value: String) -> Result<(), SettingsError> {
    if name == "requiressl" {
        words.push((
            "sslmode",
            if value.starts_with('1') {
                "require"
            } else {
                "prefer"
            }
            .to_owned(),
        ));
        return Ok(());
    }
    let Some(keyword) = keywords::find(name) else {
        return Err(unknown(name));
    };
    words.push((keyword.name, value));
    Ok(())
}

/// Refuses a word by its name, but only if it looks like one: with a stray space or quote, a piece of a password
/// stands where a word should be.
pub(super) fn unknown(name: &str) -> SettingsError {
    if name.is_empty()
        || name.len() > 40
        || !name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    {
        return SettingsError::new("connection string: what stands before a \"=\" is no setting");
    }
    match keywords::nearest(name).or(SYNONYMS.iter().find(|(s, _)| *s == name).map(|(_, k)| *k)) {
        Some(meant) => SettingsError::new(format!("{name} is no setting: did you mean {meant}?")),
        None => SettingsError::new(format!("{name} is no setting that libpq knows")),
    }
}

/// Words of other drivers that are too far from libpq's own to be found by their spelling.
const SYNONYMS: &[(&str, &str)] = &[
    ("database", "dbname"),
    ("username", "user"),
    ("pass", "password"),
    ("passwd", "password"),
    ("server", "host"),
    ("timeout", "connect_timeout"),
    ("schema", "options"),
    ("search_path", "options"),
    ("ssl", "sslmode"),
];

#[cfg(test)]
mod tests {
    use super::*;

    fn read(given: &str) -> Vec<(&'static str, String)> {
        parse(given).unwrap_or_else(|e| panic!("{given}: {e}"))
    }

    fn check(given: &str, expected: &[(&str, &str)]) {
        let words = read(given);
        let words: Vec<(&str, &str)> = words.iter().map(|(k, v)| (*k, v.as_str())).collect();
        assert_eq!(words, expected, "{given}");
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
        // An empty value takes the word behind it, in libpq as well.
        check("password= user=u", &[("password", "user=u")]);
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

    #[test]
    fn an_unknown_word_is_refused_with_the_nearest_known_one() {
        assert_eq!(
            parse("hots=h").unwrap_err().to_string(),
            "hots is no setting: did you mean host?"
        );
        assert_eq!(
            parse("postgresql://h?database=d").unwrap_err().to_string(),
            "database is no setting: did you mean dbname?"
        );
        assert_eq!(
            parse("frobnicate=1").unwrap_err().to_string(),
            "frobnicate is no setting that libpq knows"
        );
    }
}
