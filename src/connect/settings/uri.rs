//! Connection URIs, read as libpq reads them (`conninfo_uri_parse` in fe-connect.c).
//!
//! This is not RFC 3986. There may be several hosts, the user ends at the first "@" before any "/", and the lists are joined
//! before they are decoded. As in `conninfo`, no error quotes a part of the URI that may contain a password.
//!
//! A password that is not percent-encoded is split, and a piece of it becomes a host, a port or a database. Messages and
//! the server's log show these. So a URI is refused if a piece of a password may be in such a place, even if libpq would
//! accept it. With %40, %2F and %3A every password can be written.

use percent_encoding::percent_decode_str;

use super::error::SettingsError;
use super::raw::{self, RawSettings};
use super::values;

/// Reads what follows the scheme.
///
/// # Errors
/// A URI that libpq would refuse, or a parameter that it does not know.
pub(super) fn parse(rest: &str) -> Result<RawSettings, SettingsError> {
    let mut raw = RawSettings::new();
    let authority = &rest[..rest.find('/').unwrap_or(rest.len())];
    let mut rest = rest;
    // There is a user if an "@" comes before the first "/". libpq looks no further than that.
    let first = rest.find(['@', '/']);
    if let Some(at) = first.filter(|i| rest[*i..].starts_with('@')) {
        let credentials = &rest[..at];
        rest = &rest[at + 1..];
        let (user, password) = match credentials.split_once(':') {
            Some((user, password)) => (user, password),
            None => (credentials, ""),
        };
        if !user.is_empty() {
            raw.push(("user", decode(user)?));
        }
        if !password.is_empty() {
            raw.push(("password", decode(password)?));
        }
    }
    let (hosts, ports, mut rest) = read_hosts(rest)?;
    if hosts.contains('@') || !ports.split(',').all(may_be_port) {
        return Err(in_pieces());
    }
    // The text after the first ":" may be the beginning of a password that a later "@" would end.
    let may_be_cut = outside_brackets(authority).contains(':');
    // The lists are decoded after they are joined, as in libpq. So "%2C" separates hosts as a comma does.
    if !hosts.is_empty() {
        raw.push(("host", decode(&hosts)?));
    }
    // If the URI has no port, PGPORT or the default applies.
    if !ports.is_empty() {
        raw.push(("port", decode(&ports)?));
    }
    if let Some(path) = rest.strip_prefix('/') {
        let end = path.find('?').unwrap_or(path.len());
        if may_be_cut && path[..end].contains('@') {
            return Err(in_pieces());
        }
        if end > 0 {
            raw.push(("dbname", decode(&path[..end])?));
        }
        rest = &path[end..];
    }
    if let Some(query) = rest.strip_prefix('?') {
        let read = read_query(&mut raw, query);
        // Its error may name a parameter.
        if read.is_err() && may_be_cut && query.contains('@') {
            return Err(in_pieces());
        }
        read?;
    }
    Ok(raw)
}

/// The error for a URI in which a piece of a password may be in the wrong place. It shows nothing of the URI.
fn in_pieces() -> SettingsError {
    SettingsError::new(
        "connection URI: the text between // and the next / is not user:password@host:port \
         (in a password, write @ as %40, / as %2F, : as %3A)",
    )
}

/// Whether this is a valid port after decoding. An empty one means the default.
fn may_be_port(text: &str) -> bool {
    decode(text).is_ok_and(|port| values::port(&port).is_ok())
}

/// The authority without the IPv6 addresses in it, whose colons do not separate anything.
fn outside_brackets(authority: &str) -> String {
    let mut depth = 0_u32;
    authority
        .chars()
        .filter(|c| {
            depth += u32::from(*c == '[');
            let outside = depth == 0;
            depth = depth.saturating_sub(u32::from(*c == ']'));
            outside
        })
        .collect()
}

/// The hosts and the ports of the comma-separated `host[:port]` pairs, each as one list, and the text after them.
fn read_hosts(text: &str) -> Result<(String, String, &str), SettingsError> {
    let (mut hosts, mut ports) = (String::new(), String::new());
    let mut rest = text;
    loop {
        if let Some(address) = rest.strip_prefix('[') {
            let Some(end) = address.find(']') else {
                return Err(SettingsError::new(
                    "connection URI: an IPv6 address has no closing \"]\"",
                ));
            };
            if end == 0 {
                return Err(SettingsError::new(
                    "connection URI: the IPv6 address between \"[\" and \"]\" is empty",
                ));
            }
            hosts.push_str(&address[..end]);
            rest = &address[end + 1..];
            if !rest.is_empty() && !rest.starts_with([':', '/', '?', ',']) {
                return Err(SettingsError::new(
                    "connection URI: only \":\", \"/\", \"?\" or \",\" may follow the \"]\" of an IPv6 address",
                ));
            }
        } else {
            let end = rest.find([':', '/', '?', ',']).unwrap_or(rest.len());
            hosts.push_str(&rest[..end]);
            rest = &rest[end..];
        }
        if let Some(port) = rest.strip_prefix(':') {
            let end = port.find(['/', '?', ',']).unwrap_or(port.len());
            ports.push_str(&port[..end]);
            rest = &port[end..];
        }
        let Some(next) = rest.strip_prefix(',') else {
            return Ok((hosts, ports, rest));
        };
        rest = next;
        hosts.push(',');
        ports.push(',');
    }
}

fn read_query(raw: &mut RawSettings, query: &str) -> Result<(), SettingsError> {
    let mut rest = Some(query);
    // libpq accepts an empty query and a trailing "&".
    while let Some(text) = rest.filter(|t| !t.is_empty()) {
        let (pair, after) = match text.split_once('&') {
            Some((pair, after)) => (pair, Some(after)),
            None => (text, None),
        };
        rest = after;
        let Some((name, value)) = pair.split_once('=') else {
            return Err(SettingsError::new(
                "connection URI: a query parameter has no \"=\" (in a value, write \"&\" as %26)",
            ));
        };
        if value.contains('=') {
            return Err(SettingsError::new(
                "connection URI: a query parameter has more than one \"=\" (in a value, write \"=\" as %3D)",
            ));
        }
        let (name, value) = (decode(name)?, decode(value)?);
        // JDBC's way to require TLS.
        if name == "ssl" && value == "true" {
            raw.push(("sslmode", "require".to_owned()));
        } else {
            raw::add(raw, &name, value)?;
        }
    }
    Ok(())
}

/// Percent-decoding. Spaces around a value are not part of it (libpq 17).
fn decode(text: &str) -> Result<String, SettingsError> {
    let text = text.trim_matches(' ');
    // The library leaves a "%" alone that does not encode anything. libpq refuses it.
    for encoded in text.split('%').skip(1) {
        match encoded.as_bytes() {
            [b'0', b'0', ..] => {
                return Err(SettingsError::new(
                    "connection URI: a value cannot contain %00",
                ));
            }
            [a, b, ..] if a.is_ascii_hexdigit() && b.is_ascii_hexdigit() => {}
            _ => {
                return Err(SettingsError::new(
                    "connection URI: a \"%\" is not followed by two hexadecimal digits (write \"%\" itself as %25)",
                ));
            }
        }
    }
    let decoded = percent_decode_str(text).decode_utf8();
    decoded
        .map(Into::into)
        .map_err(|_| SettingsError::new("connection URI: a percent-encoded value is not UTF-8"))
}

#[cfg(test)]
mod tests {
    use super::super::conninfo;

    fn check(given: &str, expected: &[(&str, &str)]) {
        let raw = conninfo::parse(given).unwrap_or_else(|e| panic!("{given}: {e}"));
        let pairs: Vec<(&str, &str)> = raw.iter().map(|(k, v)| (*k, v.as_str())).collect();
        assert_eq!(pairs, expected, "{given}");
    }

    #[test]
    fn uris_are_read_as_libpq_reads_them() {
        check("postgresql://", &[]);
        check(
            "postgres://u:p@h:6/d",
            &[
                ("user", "u"),
                ("password", "p"),
                ("host", "h"),
                ("port", "6"),
                ("dbname", "d"),
            ],
        );
        check(
            "postgresql:///d?host=/run/pg&port=6",
            &[("dbname", "d"), ("host", "/run/pg"), ("port", "6")],
        );
        check(
            "postgresql://%2Frun%2Fpg/d",
            &[("host", "/run/pg"), ("dbname", "d")],
        );
        check(
            "postgresql://[::1]:6,[fe80::2],c/d",
            &[("host", "::1,fe80::2,c"), ("port", "6,,"), ("dbname", "d")],
        );
        check(
            "postgresql://a,b:7?target_session_attrs=read-write",
            &[
                ("host", "a,b"),
                ("port", ",7"),
                ("target_session_attrs", "read-write"),
            ],
        );
        check(
            "postgresql://u%40x:p%2F%3a@h",
            &[("user", "u@x"), ("password", "p/:"), ("host", "h")],
        );
        check(
            "postgresql://u:a:b@h",
            &[("user", "u"), ("password", "a:b"), ("host", "h")],
        );
        check("postgresql://:p@h", &[("password", "p"), ("host", "h")]);
        check("postgresql://u@/d", &[("user", "u"), ("dbname", "d")]);
        check("postgresql://h/", &[("host", "h")]);
        check("postgresql://h?", &[("host", "h")]);
        check(
            "postgresql://h/d?ssl=true",
            &[("host", "h"), ("dbname", "d"), ("sslmode", "require")],
        );
        check("postgresql://h/a%20b", &[("host", "h"), ("dbname", "a b")]);
        check(
            "postgresql://h?dbname=x&user=y&",
            &[("host", "h"), ("dbname", "x"), ("user", "y")],
        );
        // The "@" after the "/" belongs to the database name.
        check("postgresql://h/d@e", &[("host", "h"), ("dbname", "d@e")]);
        check(
            "postgresql://u@[::1]/d@e",
            &[("user", "u"), ("host", "::1"), ("dbname", "d@e")],
        );
        check(
            "postgresql://h:6/d%40e",
            &[("host", "h"), ("port", "6"), ("dbname", "d@e")],
        );
        check(
            "postgresql://h:6/d?user=a@b&host=@lease",
            &[
                ("host", "h"),
                ("port", "6"),
                ("dbname", "d"),
                ("user", "a@b"),
                ("host", "@lease"),
            ],
        );
    }

    #[test]
    fn a_password_that_is_not_percent_encoded_is_refused_and_no_piece_of_it_is_shown() {
        for given in [
            "postgresql://u:hunter/2@localhost:1/d",
            "postgresql://u:hunter@2@localhost:1/d",
            "postgresql://u:hu:nt@er/2@localhost:1/d",
            "postgresql://u:1234/hunter@localhost:1/d",
            "postgresql://u:1234567/hunter@localhost:1/d",
            "postgresql://u:1234/a?hunter=2@localhost/d",
            "postgresql://u:hunter,2/x@localhost/d",
            "postgresql://u:p@hunter:2@localhost/d",
            "postgresql://u@server:hunter@server.example/d",
            "postgresql://u:hunter@@localhost/d",
        ] {
            let Err(error) = conninfo::parse(given) else {
                panic!("{given} was taken")
            };
            let text = error.to_string();
            assert!(text.contains("in a password, write @ as %40"), "{text}");
            assert!(!text.contains("hunter") && !text.contains("1234"), "{text}");
        }
    }
}
