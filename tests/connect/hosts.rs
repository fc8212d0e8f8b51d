//! Several hosts: the right one is found wherever it is in the list, and the others cost no more than their share.

use std::net::TcpListener;
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use pglease::connect::Access;
use pglease::fault::Fault;

use crate::both::{Given, connect, connect_within};
use crate::support::Server;
use crate::{NOBODY, PATIENCE};

/// A primary, a standby for reading, and a standby that does not accept connections.
static SERVERS: LazyLock<(Server, Server, Server)> = LazyLock::new(|| {
    let primary = Server::builder()
        .hba("host all pw 127.0.0.1/32 scram-sha-256")
        .start();
    primary.psql(
        "create role app login; create role pw login password 'secret'; create role careful login",
    );
    primary.psql("alter role careful set default_transaction_read_only = on");
    let standby = primary.standby(false);
    let closed = primary.closed_standby();
    (primary, standby, closed)
});

fn at(ports: &[u16], more: &str) -> Given {
    let hosts = vec!["127.0.0.1"; ports.len()].join(",");
    let ports: Vec<String> = ports.iter().map(ToString::to_string).collect();
    Given::new(
        Some(&format!(
            "host={hosts} port={} dbname=postgres user=app {more}",
            ports.join(",")
        )),
        &[("HOME", "/nonexistent")],
    )
}

/// A port that accepts connections and never answers.
fn frozen() -> (TcpListener, u16) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    (listener, port)
}

/// The port that a connection ended up at.
fn port_of(said: &str) -> u16 {
    said.split([':', ' ']).nth(2).unwrap().parse().unwrap()
}

#[test]
fn every_kind_of_server_is_found_where_psql_finds_it() {
    let (primary, standby) = (SERVERS.0.port(), SERVERS.1.port());
    let closed = SERVERS.2.port();
    for (target, wanted) in [
        ("any", None),
        ("read-write", Some(primary)),
        ("primary", Some(primary)),
        ("read-only", Some(standby)),
        ("standby", Some(standby)),
        ("prefer-standby", Some(standby)),
    ] {
        for ports in [[primary, standby], [standby, primary]] {
            let said = at(&ports, &format!("target_session_attrs={target}"))
                .compare()
                .unwrap();
            assert_eq!(
                port_of(&said),
                wanted.unwrap_or(ports[0]),
                "{target} {ports:?}"
            );
        }
        let alone = at(&[primary], &format!("target_session_attrs={target}")).compare();
        assert_eq!(
            alone.is_ok(),
            !["read-only", "standby"].contains(&target),
            "{target}: {alone:?}"
        );
        let said = at(
            &[closed, NOBODY, standby, primary],
            &format!("target_session_attrs={target}"),
        );
        assert_eq!(
            port_of(&said.compare().unwrap()),
            wanted.unwrap_or(standby),
            "{target}"
        );
    }
}

#[test]
fn a_writer_gets_the_primary_wherever_it_is_in_the_list() {
    let (primary, standby) = (SERVERS.0.port(), SERVERS.1.port());
    for (ports, more) in [
        ([standby, primary], ""),
        ([primary, standby], ""),
        ([standby, primary], "target_session_attrs=prefer-standby"),
        ([standby, primary], "load_balance_hosts=random"),
    ] {
        let said = connect_within(&at(&ports, more), Access::Write, PATIENCE).unwrap();
        assert_eq!(port_of(&said), primary, "{ports:?} {more}");
    }
    let (fault, message) =
        connect_within(&at(&[standby, standby], ""), Access::Write, PATIENCE).unwrap_err();
    assert_eq!(fault, Fault::ReadOnly);
    let each = format!("127.0.0.1:{standby}: it is a standby and does not accept writes");
    assert_eq!(message, format!("{each}; {each}"));
    // An explicit target_session_attrs is not overruled.
    let said = connect_within(
        &at(&[primary, standby], "target_session_attrs=standby"),
        Access::Write,
        PATIENCE,
    );
    assert_eq!(port_of(&said.unwrap()), standby);
    // A single server is not checked. The statement fails on a standby.
    assert!(connect_within(&at(&[standby], ""), Access::Write, PATIENCE).is_ok());
}

#[test]
fn an_error_for_a_role_with_read_only_transactions_says_so() {
    let ports = [SERVERS.0.port()];
    let given = at(&ports, "user=careful target_session_attrs=read-write");
    assert!(
        given
            .compare()
            .unwrap_err()
            .contains("its transactions are read-only")
    );
    let settings = given.resolve().unwrap();
    assert_eq!(
        connect(&settings, Access::Write).err().map(|e| e.fault),
        Some(Fault::ReadOnly)
    );
}

#[test]
fn a_frozen_host_costs_its_share_and_no_more() {
    let (_listener, frozen) = frozen();
    let primary = SERVERS.0.port();
    let began = Instant::now();
    let limit = Duration::from_secs(40);
    let said = connect_within(
        &at(&[frozen, primary], "connect_timeout=2"),
        Access::Write,
        limit,
    )
    .expect("the primary");
    assert_eq!(port_of(&said), primary);
    assert!(began.elapsed() < limit, "{:?}", began.elapsed());
}

#[test]
fn the_time_is_shared_between_the_hosts_and_each_is_named() {
    let (_one, first) = frozen();
    let (_two, second) = frozen();
    let nobody = NOBODY;
    let began = Instant::now();
    let (fault, message) = connect_within(
        &at(&[first, nobody, second], ""),
        Access::Read,
        Duration::from_secs(3),
    )
    .unwrap_err();
    // The first host gets a third of three seconds. The last one gets what the second one did not need.
    let (_, share) = message
        .split_once(&format!("127.0.0.1:{first}: no answer within "))
        .expect(&message);
    let share: f64 = share.split_once(" s; ").expect(&message).0.parse().unwrap();
    assert!(share > 0.0 && share < 1.1, "{message}");
    assert!(
        message.contains(&format!("127.0.0.1:{nobody}: connection refused; ")),
        "{message}"
    );
    assert!(
        message.contains(&format!("127.0.0.1:{second}: no answer within ")),
        "{message}"
    );
    assert_eq!(fault, Fault::Timeout);
    assert!(began.elapsed() < Duration::from_secs(60));
}

#[test]
fn connect_timeout_bounds_a_single_host_too() {
    let (_listener, port) = frozen();
    // As in libpq, two seconds is the least.
    let (fault, message) =
        connect_within(&at(&[port], "connect_timeout=1"), Access::Read, PATIENCE).unwrap_err();
    assert_eq!(
        (fault, message),
        (
            Fault::Timeout,
            format!("127.0.0.1:{port}: no answer within 2.0 s")
        )
    );
}

#[test]
fn a_wrong_password_is_not_hidden_behind_another_hosts_error() {
    let (primary, nobody) = (SERVERS.0.port(), NOBODY);
    let login = format!(
        "127.0.0.1:{primary}: password authentication failed for user \"pw\" (database \"postgres\")"
    );
    let wrong = "user=pw password=no";
    let (fault, message) =
        connect_within(&at(&[primary, nobody], wrong), Access::Read, PATIENCE).unwrap_err();
    assert_eq!((fault, &message), (Fault::Login, &login));
    let (fault, message) =
        connect_within(&at(&[nobody, primary], wrong), Access::Read, PATIENCE).unwrap_err();
    assert_eq!(
        (fault, message),
        (
            Fault::Login,
            format!("127.0.0.1:{nobody}: connection refused; {login}")
        )
    );
}

#[test]
fn a_server_that_takes_no_connections_is_passed_over() {
    let (primary, closed) = (SERVERS.0.port(), SERVERS.2.port());
    let said = at(&[closed, primary], "").compare().unwrap();
    assert_eq!(port_of(&said), primary);
    let (fault, message) = connect_within(&at(&[closed], ""), Access::Read, PATIENCE).unwrap_err();
    assert_eq!(fault, Fault::Down);
    assert!(
        message.contains("not accepting connections") || message.contains("starting up"),
        "{message}"
    );
}

#[test]
fn an_unknown_name_is_the_failure_of_one_host_only() {
    let primary = SERVERS.0.port();
    let given = Given::new(
        Some(&format!(
            "host=no.such.host.invalid,127.0.0.1 port={primary} dbname=postgres user=app"
        )),
        &[("HOME", "/nonexistent")],
    );
    assert_eq!(port_of(&given.compare().unwrap()), primary);
}
