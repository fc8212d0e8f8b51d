//! Several servers behind one connection string.

use std::net::TcpListener;
use std::time::Duration;

use crate::support::{Lease, Server, key, until};
use crate::{claim, column, hosts};

#[test]
fn a_standby_is_exit_69_with_a_hint_and_its_status_works() {
    let primary = Server::start_plain();
    let key = key();
    claim(&primary.url(), &key, &[]);
    let standby = primary.standby(false);
    standby.catch_up_with(&primary);
    for verb in [
        &["claim", "other"][..],
        &["release", "--force", &key],
        &["run", "other", "true"],
    ] {
        let out = Lease::new(verb).on(&standby).output().expect_code(69);
        assert!(
            out.stderr.contains("target_session_attrs=read-write"),
            "{out:?}"
        );
    }
    let out = Lease::new(["status"]).on(&standby).output().expect_code(0);
    assert!(out.stdout.contains(&key), "{out:?}");
}

#[test]
fn the_primary_is_found_wherever_it_stands_in_the_list() {
    let primary = Server::start_plain();
    claim(&primary.url(), "table", &[]);
    let standby = primary.standby(false);
    standby.catch_up_with(&primary);
    for url in [hosts(&[&primary, &standby]), hosts(&[&standby, &primary])] {
        for attributes in [
            "",
            "?target_session_attrs=read-write",
            "?target_session_attrs=primary",
        ] {
            claim(&format!("{url}{attributes}"), &key(), &[]);
        }
    }
}

#[test]
fn a_frozen_first_host_costs_its_share_of_the_time_and_not_all_of_it() {
    let primary = Server::start_plain();
    let silent = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = silent.local_addr().expect("an address").port();
    let url = format!(
        "postgresql://postgres@127.0.0.1:{port},127.0.0.1:{}/postgres",
        primary.port()
    );
    claim(&url, &key(), &["--db-timeout", "20s"]);
}

#[test]
fn the_error_names_every_host_and_its_reason() {
    let silent = TcpListener::bind("127.0.0.1:0").expect("a port");
    let silent_port = silent.local_addr().expect("an address").port();
    let closed_port = {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        listener.local_addr().expect("an address").port()
    };
    let url =
        format!("postgresql://postgres@127.0.0.1:{silent_port},127.0.0.1:{closed_port}/postgres");
    let out = Lease::new(["claim", "-q", "k", "--db-timeout", "2s"])
        .url(url)
        .output()
        .expect_code(69);
    for port in [silent_port, closed_port] {
        assert!(out.stderr.contains(&port.to_string()), "{out:?}");
    }
    assert!(out.stderr.contains("refused"), "{out:?}");
    assert_eq!(out.stderr.lines().count(), 1, "{out:?}");
    assert!(out.took < Duration::from_secs(10), "{out:?}");
}

#[test]
fn a_job_survives_the_failover_to_a_synchronous_standby() {
    let primary = Server::builder().fsync(true).start();
    let key = key();
    Lease::new(["init"]).on(&primary).output().expect_code(0);
    let standby = primary.standby(true);
    let stop = crate::support::keeper::dir("stop").join("now");
    let job = format!("until test -e '{}'; do sleep 0.1; done", stop.display());
    let run = Lease::new([
        "run",
        "--ttl",
        "30s",
        "--heartbeat",
        "1s",
        &key,
        "--",
        "sh",
        "-c",
        &job,
    ])
    .url(format!(
        "{}?target_session_attrs=read-write",
        hosts(&[&primary, &standby])
    ))
    .spawn();
    until("the lease is claimed", || {
        !column(&primary, &key, "holder").is_empty()
    });
    let before = column(&primary, &key, "holder || fence");
    primary.crash();
    run.wait_for_line("cannot renew");
    standby.promote();
    standby.set("synchronous_standby_names", "");
    run.wait_for_line("is renewed again");
    assert_eq!(column(&standby, &key, "holder || fence"), before);
    std::fs::write(&stop, "").expect("a file");
    run.wait_within(Duration::from_secs(60)).expect_code(0);
    assert_eq!(
        column(&standby, &key, "holder"),
        "",
        "released on the new primary"
    );
    assert_eq!(
        column(&standby, &key, "fence::text || ''"),
        before[before.len() - 16..]
    );
}

#[test]
fn the_fence_grows_across_a_failover_that_lost_the_last_claims() {
    let primary = Server::start_plain();
    let key = key();
    let release = |url: &str, (holder, fence): &(String, i64)| {
        Lease::new([
            "release",
            "--holder",
            holder,
            "--fence",
            &fence.to_string(),
            &key,
        ])
        .url(url)
        .output()
        .expect_code(0);
    };
    release(&primary.url(), &claim(&primary.url(), &key, &[]));
    let standby = primary.standby(false);
    standby.catch_up_with(&primary);
    standby.fall_behind();
    let mut last = 0;
    for _ in 0..20 {
        let term = claim(&primary.url(), &key, &[]);
        assert!(term.1 > last);
        last = term.1;
        release(&primary.url(), &term);
    }
    primary.crash();
    standby.promote();
    let (_, fence) = claim(&standby.url(), &key, &[]);
    assert!(
        fence > last,
        "{fence} is not larger than {last}, which the standby never saw"
    );
}
