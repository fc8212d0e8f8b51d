//! Links on which everything takes long: a lease is kept as long as a renewal fits before the job must stop.

use std::time::Duration;

use crate::support::{LIMIT, Lease, Proxy, Running, Server, key, until_within};

/// Half of a round trip of 300 ms.
const ONE_WAY: Duration = Duration::from_millis(150);

/// A run of a job that ends with its standard input.
fn run(proxy: &Proxy, options: &[&str], key: &str) -> Running {
    let run = Lease::new(["run", "-v"])
        .args(options)
        .args([key, "sh", "-c", "echo started; exec cat"])
        .url(proxy.url())
        .open_input()
        .spawn();
    run.wait_for_line("started");
    run
}

/// A server with a table.
fn server() -> Server {
    let server = Server::start_plain();
    Lease::new(["init"]).on(&server).output().expect_code(0);
    server
}

#[track_caller]
fn wait_for_renewals(run: &Running, key: &str, count: usize) {
    let renewed = format!("renewed {key} until");
    until_within(&format!("{count} renewals"), LIMIT * 2, || {
        let text = run.stderr();
        assert!(run.exit().is_none(), "it ended: {text}");
        text.matches(&renewed).count() >= count
    });
}

fn ends_well(run: Running) -> String {
    run.close_input();
    run.wait().expect_code(0).stderr
}

#[test]
fn a_heartbeat_that_is_shorter_than_a_renewal_takes_does_not_lose_the_lease() {
    let (server, key) = (server(), key());
    let proxy = Proxy::to(&server);
    proxy.delay(ONE_WAY);
    let run = run(&proxy, &["--ttl", "20s", "--heartbeat", "1s"], &key);
    let told = run.wait_for_line("longer than the heartbeat of 1s");
    assert!(
        told.starts_with("lease: claiming ")
            && told.contains("; renewals may be too slow (give a longer --ttl or --heartbeat)"),
        "{told}"
    );
    // Past the time after which a run without a renewal stops its job.
    wait_for_renewals(&run, &key, 12);
    assert!(!ends_well(run).contains("cannot renew"));
}

#[test]
fn a_renewal_that_takes_a_third_of_the_ttl_is_in_time_again_and_again() {
    let (server, key) = (server(), key());
    let proxy = Proxy::to(&server);
    proxy.delay(ONE_WAY);
    let run = run(&proxy, &["--ttl", "5s"], &key);
    wait_for_renewals(&run, &key, 6);
    ends_well(run);
}

#[test]
fn a_link_that_becomes_slow_while_the_job_runs_does_not_lose_the_lease() {
    let (server, key) = (server(), key());
    let proxy = Proxy::to(&server);
    let run = run(&proxy, &["--ttl", "20s", "--heartbeat", "1s"], &key);
    wait_for_renewals(&run, &key, 1);
    proxy.delay(ONE_WAY);
    run.wait_for_line(&format!("cannot renew {key}"));
    run.wait_for_line(&format!("{key} is renewed again"));
    wait_for_renewals(&run, &key, 12);
    let told = ends_well(run);
    assert_eq!(told.matches("is renewed again").count(), 1, "{told}");
    assert!(!told.contains("longer than the heartbeat"), "{told}");
}

#[test]
fn a_connection_on_which_nothing_arrives_leaves_time_for_another_one() {
    let (server, key) = (server(), key());
    let proxy = Proxy::to(&server);
    // A claim that is slow, so that it can't be for want of time that the first try is given up.
    proxy.delay(Duration::from_millis(20));
    let run = run(&proxy, &["--ttl", "12s"], &key);
    for _ in 0..2 {
        let before = run.stderr().matches("renew: failed after").count();
        proxy.stall();
        until_within("a try is given up", LIMIT, || {
            assert!(run.exit().is_none(), "{}", run.stderr());
            run.stderr().matches("renew: failed after").count() > before
        });
        let renewals = run.stderr().matches("renewed ").count();
        proxy.resume();
        wait_for_renewals(&run, &key, renewals + 1);
    }
    ends_well(run);
}
