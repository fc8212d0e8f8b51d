//! Connection URIs, read as libpq reads them (`conninfo_uri_parse` in fe-connect.c).
//!
//! It is not RFC 3986: there may be several hosts, a user ends at the first "@" before any "/", and the lists are joined
//! before they are decoded. As in `conninfo`, no error quotes any part of the URI that may hold a password.
//!
//! A password that is not percent-encoded falls to pieces, and a piece ends up as a host, a port or a database, which
//! messages and the server's log do name. So a URI is refused as a whole where a piece of a password may stand in such a
//! place, also where libpq would go on with it; written with %40, %2F and %3A every one of them can be said.

use super::SettingsError;
use super::conninfo::{Words, store};
use super::values;

/// Reads what follows the scheme.
///
/// # Errors
/// A URI that libpq would refuse, or a parameter that it does not know.
pub(super) fn parse(rest: &str) -> Result<Words, SettingsError> {
    let mut words = Words::new();
    let authority = &rest[..rest.find('/').unwrap_or(rest.len())];
    let mut rest = rest;
    // A user is there if an "@" comes before the first "/"; libpq looks no further than that.
    let first = rest.find(['@', '/']);
    if let Some(at) = first.filter(|i| rest[*i..].starts_with('@')) {
        let credentials = &rest[..at];
        rest = &rest[at + 1..];
        let (user, password) = match credentials.split_once(':') {
            Some((user, password)) => (user, password),
            None => (credentials, ""),
        };
        if !user.is_empty() {
            words.push(("user", decode(user)?));
        }
        if !password.is_empty() {
            words.push(("password", decode(password)?));
        }
    }
    let (hosts, ports, mut rest) = read_places(rest)?;
    if hosts.contains('@') || !ports.split(',').all(may_be_port) {
        return Err(in_pieces());
    }
    // What follows the first ":" may be the beginning of a password, which an "@" further on would end.
    let may_be_cut = outside_brackets(authority).contains(':');
    // Decoding comes after the joining, as in libpq: a "%2C" separates hosts just as a comma does.
    if !hosts.is_empty() {
        words.push(("host", decode(&hosts)?));
    }
    // A URI that names no port at all leaves the variable and the default their say.
    if !ports.is_empty() {
        words.push(("port", decode(&ports)?));
    }
    if let Some(path) = rest.strip_prefix('/') {
        let end = path.find('?').unwrap_or(path.len());
        if may_be_cut && path[..end].contains('@') {
            return Err(in_pieces());
        }
        if end > 0 {
            words.push(("dbname", decode(&path[..end])?));
        }
        rest = &path[end..];
    }
    if let Some(query) = rest.strip_prefix('?') {
        let read = read_query(&mut words, query);
        // Its error may name a parameter.
        if read.is_err() && may_be_cut && query.contains('@') {
            return Err(in_pieces());
        }
        read?;
    }
    Ok(words)
}

/// The refusal of a URI in which pieces of a password may stand in other places. It repeats nothing of it.
fn in_pieces() -> SettingsError {
    SettingsError::new(
        "connection URI: what stands between // and the next / can't be read as user:password@host:port; \
         in a password write @ as %40, / as %2F, : as %3A",
    )
}

/// Whether this is what `values::port` takes, once it is decoded; an empty one is the default.
fn may_be_port(text: &str) -> bool {
    decode(text).is_ok_and(|port| values::port(&port).is_ok())
}

/// The authority without the IPv6 address in it: its colons separate nothing.
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

/// The comma-separated `host[:port]` pairs, joined into one list of each kind, and what follows them.
fn read_places(text: &str) -> Result<(String, String, &str), SettingsError> {
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
                    "connection URI: after the \"]\" of an IPv6 address comes \":\", \"/\", \"?\" or \",\"",
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

fn read_query(words: &mut Words, query: &str) -> Result<(), SettingsError> {
    let mut rest = Some(query);
    // libpq takes an empty query and a trailing "&" as the end.
    while let Some(text) = rest.filter(|t| !t.is_empty()) {
        let (pair, after) = match text.split_once('&') {
            Some((pair, after)) => (pair, Some(after)),
            None => (text, None),
        };
        rest = after;
        let Some((name, value)) = pair.split_once('=') else {
            return Err(SettingsError::new(
                "connection URI: a query parameter has no \"=\" (a \"&\" in a value is written %26)",
            ));
        };
        if value.contains('=') {
            return Err(SettingsError::new(
                "connection URI: a query parameter has more than one \"=\" (in a value it is written %3D)",
            ));
        }
        let (name, value) = (decode(name)?, decode(value)?);
        // JDBC's way of asking for TLS.
        if name == "ssl" && value == "true" {
            words.push(("sslmode", "require".to_owned()));
        } else {
            store(words, &name, value)?;
        }
    }
    Ok(())
}

/// Percent-decoding. A value may have spaces around it, which are no part of it (libpq 17).
fn decode(text: &str) -> Result<String, SettingsError> {
    let bytes = text.trim_matches(' ').as_bytes();
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut i = 0;
    while i < bytes.len() {
        if bytes[i] != b'%' {
            decoded.push(bytes[i]);
            i += 1;
            continue;
        }
        let digit = |at: usize| bytes.get(at).and_then(|b| char::from(*b).to_digit(16));
        match (digit(i + 1), digit(i + 2)) {
            (Some(0), Some(0)) => {
                return Err(SettingsError::new(
                    "connection URI: %00 can't be part of a value",
                ));
            }
            (Some(high), Some(low)) => decoded.push(u8::try_from(high * 16 + low).unwrap_or(b'?')),
            _ => {
                return Err(SettingsError::new(
                    "connection URI: a \"%\" is not followed by two hexadecimal digits (a \"%\" itself is written %25)",
                ));
            }
        }
        i += 3;
    }
    String::from_utf8(decoded)
        .map_err(|_| SettingsError::new("connection URI: a percent-encoded value is not UTF-8"))
}

#[cfg(test)]
mod tests {
    use super::super::conninfo;

    fn check(given: &str, expected: &[(&str, &str)]) {
        let words = conninfo::parse(given).unwrap_or_else(|e| panic!("{given}: {e}"));
        let words: Vec<(&str, &str)> = words.iter().map(|(k, v)| (*k, v.as_str())).collect();
        assert_eq!(words, expected, "{given}");
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
        // The "@" behind the "/" belongs to the database name.
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
    fn a_password_that_is_not_percent_encoded_is_refused_and_no_piece_of_it_repeated() {
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
            assert!(text.contains("in a password write @ as %40"), "{text}");
            assert!(!text.contains("hunter") && !text.contains("1234"), "{text}");
        }
    }
}
