//! Host after host, address after address, each within its share of the time.

use postgres::Client;

use crate::clock::BootTime;
use crate::fault::Fault;
use crate::sql::quote;

use super::attempt::Attempt;
use super::reason::Reason;
use super::settings::{Host, Settings};
use super::values::Target;
use super::{Access, OpenError};

/// Opens a connection, before `by`.
///
/// Each host, and each address of one, gets its share of the time that is left: a thread of its own, which is left to
/// itself when the share is used up. So this call itself is over at `by`, with a reason for each host, whatever hangs. A
/// connection over TCP ends by itself two seconds after `by`, whatever it is used for then, so that no thread and no socket
/// is left behind by a server that hangs. A connection over a Unix socket does not.
///
/// With `target_session_attrs=any`, or `prefer-standby`, and several hosts, [`Access::Write`] looks for the one that
/// takes writes, which costs one round trip. As in libpq a refused login ends the search, and an explicit
/// `application_name` wins over the one given here.
///
/// # Errors
/// When no host could be used; the message names each that was tried, with its reason.
pub fn open(
    settings: &Settings,
    application_name: &str,
    access: Access,
    by: BootTime,
) -> Result<Client, OpenError> {
    let attempt = Attempt::new(settings, application_name, by);
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
                Ok(client) => return Ok(client),
                Err(reasons) => failures.extend(reasons),
            }
            // libpq: "if a connection is established successfully, but authentication fails, the remaining hosts in the
            // list are not tried". So a wrong password is not hidden behind the last host's "connection refused".
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

/// All failures in one line. The kind is that of a refused login if there is one; otherwise one that may pass by
/// itself, if there is one, since then it is worth coming back.
fn all(failures: &[(String, Reason)], settings: &Settings) -> OpenError {
    let fault = failures
        .iter()
        .map(|(_, r)| r.fault)
        .min_by_key(|f| (*f != Fault::Login, !f.is_transient()))
        .unwrap_or(Fault::Unreachable);
    let texts: Vec<String> = failures
        .iter()
        .map(|(place, r)| format!("{place}: {}{}", r.text, more(r, settings)))
        .collect();
    let mut message = texts.join("; ");
    if fault == Fault::Unreachable && !settings.is_named {
        message.push_str("; no database was named: set LEASE_DATABASE_URL, PGSERVICE or PGHOST");
    } else if fault == Fault::Unreachable && !settings.is_host_named {
        message.push_str("; no host was named: write host=NAME, or a URI with one");
    }
    OpenError { fault, message }
}

/// What the server's own words leave open about a refused login: who wanted in where, or what to do about it.
fn more(reason: &Reason, settings: &Settings) -> String {
    let (user, database) = (&settings.user, &settings.database);
    if reason.lacks_connect {
        return format!(
            " (GRANT CONNECT ON DATABASE {} TO {})",
            quote(database),
            quote(user)
        );
    }
    if reason.fault != Fault::Login {
        return String::new();
    }
    let unsaid: Vec<String> = [("user", user), ("database", database)]
        .iter()
        .filter(|(_, name)| !reason.text.contains(&format!("\"{name}\"")))
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
        let settings =
            Settings::resolve_in(Some("user=app dbname=orders host=/nowhere"), &none).unwrap();
        let combined = |failures: &[(String, Reason)]| all(failures, &settings);
        let at = |place: &str, fault, text: &str| (place.to_owned(), Reason::new(fault, text));
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
    fn what_the_server_has_named_is_not_named_again() {
        let settings = Settings::resolve_in(Some("user=app dbname=orders host=h"), &|_| None);
        let settings = settings.unwrap();
        let told = |text: &str| more(&Reason::new(Fault::Login, text), &settings);
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
    fn whoever_named_no_database_is_told_how() {
        let told = |given: Option<&str>, variable: Option<(&str, &str)>| {
            let variable = |name: &str| match variable {
                Some((set, value)) if set == name => Some(value.to_owned()),
                _ => (name == "PGUSER").then(|| "app".to_owned()),
            };
            let settings = Settings::resolve_in(given, &variable).unwrap();
            let reason = Reason::new(Fault::Unreachable, "no");
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
