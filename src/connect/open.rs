//! Opens a connection: host after host, each within its share of the time.

use crate::clock::BootTime;
use crate::fault::Fault;
use crate::sql::quote;

use super::attempt::{Attempt, Connected, OnNotice};
use super::error::ConnectError;
use super::settings::{Host, Settings, Target};

/// What the connection is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Reading: any server, also a standby.
    Read,
    /// Writing: of several hosts, the one that accepts writes.
    Write,
}

/// Why no connection could be opened.
#[derive(Debug)]
pub struct OpenError {
    /// The kind of failure, of the host that decided it.
    pub fault: Fault,
    /// The text of a message: each host that was tried, with its reason. It never contains a password.
    pub message: String,
}

/// Opens a connection, before `by`. It ends by itself two seconds after `ends`, which is not before `by`.
///
/// Each address of each host gets its share of the time, and a thread of its own that is abandoned after that. So this call
/// returns at `by`, whatever hangs, with a reason for each host. A connection over TCP ends by itself even if it is
/// in use. So a server that hangs leaves no thread and no socket behind. A connection over a Unix
/// socket does not end by itself.
///
/// With several hosts, and `target_session_attrs=any` or `prefer-standby`, [`Access::Write`] looks for the host that
/// accepts writes. This costs one round trip. As in libpq, a refused login ends the search, and `application_name` in the
/// settings wins over the one given here.
///
/// `on_notice` receives what the server says besides its answers, on the thread that asks.
///
/// # Errors
/// No host could be used. The message names each one that was tried, with its reason.
pub fn open(
    settings: &Settings,
    application_name: &str,
    access: Access,
    (by, ends): (BootTime, BootTime),
    on_notice: Option<OnNotice>,
) -> Result<Connected, OpenError> {
    let attempt = Attempt::new(settings, application_name, ends, on_notice);
    let several = settings.hosts.len() > 1;
    let passes: &[Target] = match settings.target {
        Target::Any | Target::PreferStandby if several && access == Access::Write => {
            &[Target::ReadWrite]
        }
        Target::PreferStandby if several => &[Target::Standby, Target::Any],
        Target::PreferStandby | Target::Any => &[Target::Any],
        Target::ReadWrite => &[Target::ReadWrite],
        Target::ReadOnly => &[Target::ReadOnly],
        Target::Primary => &[Target::Primary],
        Target::Standby => &[Target::Standby],
    };
    let mut hosts: Vec<&Host> = settings.hosts.iter().collect();
    if settings.shuffle {
        fastrand::shuffle(&mut hosts);
    }
    let mut failures = Vec::new();
    for (pass, target) in passes.iter().enumerate() {
        failures.clear();
        for (at, host) in hosts.iter().enumerate() {
            let still_to_try = hosts.len() - at + (passes.len() - pass - 1) * hosts.len();
            let share = by.remaining() / u32::try_from(still_to_try).unwrap_or(u32::MAX);
            match attempt.host(host, *target, share) {
                Ok(connected) => return Ok(connected),
                Err(reasons) => failures.extend(reasons),
            }
            // libpq: "if a connection is established successfully, but authentication fails, the remaining hosts in the
            // list are not tried". So a wrong password is not hidden by the last host's "connection refused".
            if failures
                .last()
                .is_some_and(|(_, r)| r.fault == Fault::Login)
            {
                return Err(all(&failures, settings));
            }
        }
    }
    Err(all(&failures, settings))
}

/// All failures in one line. A refused login decides the kind. Otherwise a transient failure does, because a retry may
/// succeed then.
fn all(failures: &[(String, ConnectError)], settings: &Settings) -> OpenError {
    let fault = failures
        .iter()
        .map(|(_, r)| r.fault)
        .min_by_key(|f| (*f != Fault::Login, !f.is_transient()))
        .unwrap_or(Fault::Unreachable);
    let texts: Vec<String> = failures
        .iter()
        .map(|(host, r)| format!("{host}: {}{}", r.text, more(r, settings)))
        .collect();
    let mut message = texts.join("; ");
    if fault == Fault::Unreachable && !settings.is_named {
        message.push_str("; no database was named: set LEASE_DATABASE_URL, PGSERVICE or PGHOST");
    } else if fault == Fault::Unreachable && !settings.is_host_named {
        message.push_str("; no host was named: write host=NAME, or a URI with one");
    }
    OpenError { fault, message }
}

/// What the server's message about a refused login does not say: the user and the database, or what to do.
fn more(error: &ConnectError, settings: &Settings) -> String {
    let (user, database) = (&settings.user, &settings.database);
    if error.lacks_connect {
        return format!(
            " (GRANT CONNECT ON DATABASE {} TO {})",
            quote(database),
            quote(user)
        );
    }
    if error.fault != Fault::Login {
        return String::new();
    }
    let unsaid: Vec<String> = [("user", user), ("database", database)]
        .iter()
        .filter(|(_, name)| !error.text.contains(&format!("\"{name}\"")))
        .map(|(what, name)| format!("{what} {name:?}"))
        .collect();
    if unsaid.is_empty() {
        String::new()
    } else {
        format!(" ({})", unsaid.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_message_names_every_host_and_the_kind_is_the_one_that_matters() {
        let none = |_: &str| None;
        let settings = Settings::read(Some("user=app dbname=orders host=/nowhere"), &none).unwrap();
        let combined = |failures: &[(String, ConnectError)]| all(failures, &settings);
        let at =
            |place: &str, fault, text: &str| (place.to_owned(), ConnectError::new(fault, text));
        let error = combined(&[
            at("10.0.0.5:5432", Fault::Unreachable, "connection refused"),
            at(
                "10.0.0.6:5432",
                Fault::Down,
                "the database system is starting up",
            ),
        ]);
        assert_eq!(
            error.message,
            "10.0.0.5:5432: connection refused; 10.0.0.6:5432: the database system is starting up"
        );
        assert_eq!(error.fault, Fault::Unreachable);
        let error = combined(&[
            at("a:1", Fault::Refused, "TLS: no"),
            at("b:1", Fault::Login, "password authentication failed"),
        ]);
        assert_eq!(error.fault, Fault::Login);
        assert_eq!(
            error.message,
            "a:1: TLS: no; b:1: password authentication failed (user \"app\", database \"orders\")"
        );
        let error = combined(&[
            at("a:1", Fault::Refused, "TLS: no"),
            at("b:1", Fault::ReadOnly, "a standby"),
        ]);
        assert_eq!(error.fault, Fault::ReadOnly);
    }

    #[test]
    fn what_the_server_names_is_not_named_again() {
        let settings = Settings::read(Some("user=app dbname=orders host=h"), &|_| None);
        let settings = settings.unwrap();
        let told = |text: &str| more(&ConnectError::new(Fault::Login, text), &settings);
        assert_eq!(
            told("password authentication failed for user \"app\""),
            " (database \"orders\")"
        );
        assert_eq!(
            told("database \"orders\" does not exist"),
            " (user \"app\")"
        );
        assert_eq!(told("user \"app\", database \"orders\""), "");
    }

    #[test]
    fn an_error_without_a_named_database_says_how_to_name_one() {
        let told = |given: Option<&str>, variable: Option<(&str, &str)>| {
            let variable = |name: &str| match variable {
                Some((set, value)) if set == name => Some(value.to_owned()),
                _ => (name == "PGUSER").then(|| "app".to_owned()),
            };
            let settings = Settings::read(given, &variable).unwrap();
            let reason = ConnectError::new(Fault::Unreachable, "no");
            all(&[("there".to_owned(), reason)], &settings).message
        };
        let hint = "there: no; no database was named: set LEASE_DATABASE_URL, PGSERVICE or PGHOST";
        assert_eq!(told(None, None), hint);
        assert_eq!(told(Some(""), None), hint);
        assert_eq!(told(None, Some(("PGPORT", "6"))), hint);
        let hint = "there: no; no host was named: write host=NAME, or a URI with one";
        assert_eq!(told(Some("localhost"), None), hint);
        assert_eq!(told(None, Some(("PGDATABASE", "localhost"))), hint);
        assert_eq!(told(Some("postgres:///orders"), None), hint);
        assert_eq!(told(Some("port=6543"), None), hint);
        assert_eq!(told(Some("orders"), Some(("PGHOST", "h"))), "there: no");
        assert_eq!(told(Some("postgres://h/orders"), None), "there: no");
        assert_eq!(told(None, Some(("PGHOST", "h"))), "there: no");
    }
}
