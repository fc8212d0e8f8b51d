//! Names without an address, and packets without an answer: they cost their share of the time, and no more.

use std::net::UdpSocket;
use std::time::Duration;

use crate::support::mounts::instead_of;
use crate::support::{Lease, Network, Output, Server, key, skip};

/// What a run may take on a busy machine; far from what a resolver or the kernel would wait for by itself.
const SLACK: Duration = Duration::from_secs(20);

/// Files are asked for names, then DNS, whatever this machine asks beside.
const SWITCH: (&str, &str) = ("/etc/nsswitch.conf", "hosts: files dns\n");

/// A server with a lease table, so that a claim is one operation, that programs in a [`Network`] reach too.
fn server() -> Server {
    let server = Server::builder().for_networks().start();
    Lease::new(["init"]).on(&server).output().expect_code(0);
    server
}

/// A nameserver that takes questions and answers none. Its address is its own, so that every test may have one.
fn silent_nameserver() -> Option<UdpSocket> {
    let part = || fastrand::u8(1..255);
    let address = format!("127.{}.{}.{}:53", part(), part(), part());
    UdpSocket::bind(address).ok()
}

/// Words that make a command ask this nameserver, for minutes if need be.
fn asking(nameserver: &UdpSocket) -> Option<Vec<String>> {
    let address = nameserver.local_addr().expect("an address").ip();
    let conf = format!("nameserver {address}\noptions timeout:30 attempts:5\n");
    instead_of(&[SWITCH, ("/etc/resolv.conf", &conf)])
}

#[track_caller]
fn was_asked(nameserver: &UdpSocket) {
    nameserver.set_nonblocking(true).expect("a socket");
    nameserver.recv(&mut [0; 512]).expect("a question");
}

/// It ended soon, with one line on stderr that contains all of this.
#[track_caller]
fn gave_up(out: Output, parts: &[&str]) {
    let out = out.expect_code(69);
    assert!(out.took < SLACK, "{out}");
    assert_eq!(out.stderr.lines().count(), 1, "{out}");
    for part in parts {
        assert!(out.stderr.contains(part), "{part:?}: {out}");
    }
}

#[test]
fn a_name_that_is_not_resolved_costs_the_time_limit_and_is_named() {
    let Some(nameserver) = silent_nameserver() else {
        return skip("the right to use port 53");
    };
    let Some(wrapper) = asking(&nameserver) else {
        return skip("mount namespaces");
    };
    for verb in [
        &["claim", "k"][..],
        &["run", "k", "--", "echo", "started"],
        &["status"],
    ] {
        let out = Lease::new([verb[0], "--db-timeout", "1s"])
            .args(&verb[1..])
            .url("postgresql://app@db.example/app")
            .wrapped(&wrapper)
            .output();
        assert_eq!(out.stdout, "", "{out}");
        gave_up(out, &["db.example: cannot resolve the name: no answer"]);
    }
    was_asked(&nameserver);
}

#[test]
fn after_a_name_that_is_not_resolved_the_next_host_has_its_share() {
    let Some(nameserver) = silent_nameserver() else {
        return skip("the right to use port 53");
    };
    let Some(wrapper) = asking(&nameserver) else {
        return skip("mount namespaces");
    };
    let server = server();
    let url = format!(
        "postgresql://postgres@db.example,127.0.0.1:{}/postgres",
        server.port()
    );
    Lease::new(["claim", "--db-timeout", "6s", &key()])
        .url(url)
        .wrapped(&wrapper)
        .output()
        .expect_code(0);
    was_asked(&nameserver);
}

#[test]
fn a_host_whose_packets_are_lost_costs_the_time_limit_and_is_named() {
    let Some(network) = Network::new() else {
        return skip("network namespaces");
    };
    let (hole, host) = (network.black_hole(), network.host());
    let claim = |hosts: &str| {
        Lease::new(["claim", "--db-timeout", "1s", "k"])
            .url(format!("postgresql://app@{hosts}/app"))
            .wrapped(network.wrapper())
            .output()
    };
    gave_up(claim(hole), &[&format!("{hole}:5432: no answer within")]);
    // One that is lost with its network, and beside it another one.
    network.drop_packets();
    let (first, second) = (
        format!("{host}:5432: no answer within"),
        format!("{hole}:5433: no answer within"),
    );
    gave_up(
        claim(&format!("{host}:5432,{hole}:5433")),
        &[&first, &second],
    );
}

#[test]
fn after_a_host_whose_packets_are_lost_the_next_one_has_its_share() {
    let Some(network) = Network::new() else {
        return skip("network namespaces");
    };
    let server = server();
    let url = format!(
        "postgresql://postgres@{}:5432,{}:{}/postgres",
        network.black_hole(),
        network.host(),
        server.port()
    );
    let out = Lease::new(["claim", "--db-timeout", "6s", &key()])
        .url(url)
        .wrapped(network.wrapper())
        .output()
        .expect_code(0);
    // The first one was not refused, so it was waited for.
    assert!(out.took > Duration::from_secs(2), "{out}");
}

#[test]
fn a_name_whose_first_address_loses_packets_is_reached_at_its_second() {
    let Some(network) = Network::new() else {
        return skip("network namespaces");
    };
    let (hole, host) = (network.black_hole(), network.host());
    let names = format!("{hole} db.example\n{host} db.example\n");
    let Some(wrapper) = instead_of(&[SWITCH, ("/etc/hosts", &names)]) else {
        return skip("mount namespaces");
    };
    let server = server();
    let inside = |program: Lease| program.wrapped(&wrapper).wrapped(network.wrapper());
    is_first(hole, &inside(Lease::program("getent")));
    let url = format!(
        "postgresql://postgres@db.example:{}/postgres",
        server.port()
    );
    let claim = Lease::new(["claim", "--db-timeout", "6s", &key()]).url(&url);
    let out = inside(claim).output().expect_code(0);
    assert!(out.took > Duration::from_secs(2), "{out}");
    // Both are named once neither answers.
    network.drop_packets();
    let claim = Lease::new(["claim", "--db-timeout", "2s", "k"]).url(&url);
    gave_up(
        inside(claim).output(),
        &[
            &format!("db.example ({hole}):{}: no answer", server.port()),
            &format!("db.example ({host}):{}: no answer", server.port()),
        ],
    );
}

#[test]
fn a_name_whose_first_address_refuses_is_reached_at_its_second() {
    let names = "127.0.0.1 db.example\n127.0.0.2 db.example\n";
    let Some(wrapper) = instead_of(&[SWITCH, ("/etc/hosts", names)]) else {
        return skip("mount namespaces");
    };
    let server = Server::builder()
        .conf("listen_addresses = '127.0.0.2'")
        .hba("host all all samehost trust")
        .start();
    is_first("127.0.0.1", &Lease::program("getent").wrapped(&wrapper));
    let port = server.port();
    let claim = |address: &str| {
        Lease::new(["claim", &key()])
            .url(format!("postgresql://postgres@{address}:{port}/postgres"))
            .wrapped(&wrapper)
            .output()
    };
    let refused = claim("127.0.0.1").expect_code(69);
    assert!(refused.stderr.contains("connection refused"), "{refused}");
    claim("db.example").expect_code(0);
}

/// The order in which the C library hands out the addresses of a name is its own; a test of a dead first one has to
/// have one.
#[track_caller]
fn is_first(address: &str, getent: &Lease) {
    let out = getent
        .clone()
        .args(["ahosts", "db.example"])
        .output()
        .expect_code(0);
    assert!(out.stdout.starts_with(&format!("{address} ")), "{out}");
}
