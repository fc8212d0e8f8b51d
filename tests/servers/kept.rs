//! The connection of a claim stays open for a moment, for the release of a job that ends at once.

use std::time::Duration;

use crate::column;
use crate::support::job::run_script;
use crate::support::proxy::{AtCommit, Proxy};
use crate::support::{Lease, Running, Server, key, until};

/// Long enough that the connection is kept for as long as one is kept at all.
const ONE_WAY: Duration = Duration::from_millis(30);

fn slow(server: &Server) -> Proxy {
    Lease::new(["init"]).on(server).output().expect_code(0);
    let proxy = Proxy::to(server);
    proxy.delay(ONE_WAY);
    proxy
}

/// A job that runs until its input is closed.
fn start(proxy: &Proxy, key: &str) -> Running {
    let run = run_script(&[], key, "echo ready; read end; true")
        .open_input()
        .url(proxy.url())
        .spawn();
    run.wait_for_line("ready");
    run
}

fn is_free(server: &Server, key: &str) {
    assert_eq!(column(server, key, "holder"), "");
}

#[test]
fn a_job_that_ends_at_once_is_released_through_the_connection_of_its_claim() {
    let server = Server::start_plain();
    let proxy = slow(&server);
    // A machine that is busy at this moment takes longer for `true` than the connection is kept.
    until("a run needs one connection only", || {
        let (before, key) = (proxy.accepted(), key());
        run_script(&[], &key, "true")
            .url(proxy.url())
            .output()
            .expect_code(0);
        is_free(&server, &key);
        proxy.accepted() - before == 1
    });
}

#[test]
fn a_release_goes_on_with_another_connection_if_the_kept_one_breaks() {
    let server = Server::start_plain();
    let proxy = slow(&server);
    until("the connection breaks while it is kept", || {
        let key = key();
        let run = start(&proxy, &key);
        let was_kept = proxy.open() == 1;
        proxy.cut();
        run.close_input();
        run.wait().expect_code(0);
        is_free(&server, &key);
        was_kept
    });
}

#[test]
fn a_release_whose_answer_is_lost_on_the_kept_connection_is_settled_by_another_one() {
    let server = Server::start_plain();
    let proxy = slow(&server);
    for what in [AtCommit::CutAnswer, AtCommit::CutRequest] {
        until("the answer is lost on the kept connection", || {
            let (before, key) = (proxy.accepted(), key());
            let run = start(&proxy, &key);
            proxy.at_next_commits(1, what);
            run.close_input();
            run.wait().expect_code(0);
            is_free(&server, &key);
            // One for the claim and the first try of the release, one for the second.
            proxy.accepted() - before == 2
        });
    }
}

#[test]
fn a_job_that_takes_longer_than_a_connection_runs_without_one() {
    let server = Server::start_plain();
    let proxy = slow(&server);
    let key = key();
    let run = start(&proxy, &key);
    until("the connection is closed", || proxy.open() == 0);
    run.close_input();
    run.wait().expect_code(0);
    is_free(&server, &key);
    assert_eq!(proxy.accepted(), 2);
}
