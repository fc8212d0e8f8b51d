//! An operation that was given up, or whose machine stands still, between its statement and its COMMIT.

use postgres::Client;

use crate::support::proxy::Proxy;
use crate::support::{Lease, Running, Server, until};

/// A claim whose statement has been carried out, and whose answer stays on the way: it stands before its COMMIT, with
/// the row locked.
fn before_its_commit(server: &Server, proxy: &Proxy, args: &[&str]) -> Running {
    Lease::new(["claim", "--ttl", "2s", "k"])
        .on(server)
        .output()
        .expect_code(0);
    until("it expires", || {
        server.psql("SELECT expires_at < clock_timestamp() FROM public.lease") == "t"
    });
    let mut client: Client = server.client();
    let mut transaction = client.transaction().expect("a transaction");
    transaction
        .execute("SELECT FROM public.lease FOR UPDATE", &[])
        .expect("the row is locked");
    let claim = Lease::new(args).arg("k").url(proxy.url()).spawn();
    until("the claim waits for the row", || {
        server.psql("SELECT count(*) FROM pg_locks WHERE NOT granted") == "1"
    });
    proxy.stall();
    transaction.commit().expect("the row is unlocked");
    until("the statement is carried out", || {
        server.psql(
            "SELECT count(*) FROM pg_stat_activity WHERE state = 'idle in transaction' AND application_name = 'lease k'",
        ) == "1"
    });
    claim
}

#[test]
fn a_claim_that_was_given_up_is_not_committed_when_its_answer_arrives_at_last() {
    let server = Server::builder().conf("log_statement = all").start();
    let proxy = Proxy::to(&server);
    let claim = before_its_commit(
        &server,
        &proxy,
        &["claim", "--wait", "forever", "--db-timeout", "8s"],
    );
    let commits = || server.log().matches("statement: COMMIT").count();
    let before = commits();
    claim.wait_for_line("waiting: cannot claim k");
    proxy.resume();
    claim.wait().expect_code(0);
    assert_eq!(commits() - before, 1, "of the claim that was asked again");
}

#[test]
fn a_claimant_that_stands_still_before_its_commit_keeps_others_out_for_a_third_of_its_ttl_at_most()
{
    let server = Server::start_plain();
    let proxy = Proxy::to(&server);
    let first = before_its_commit(
        &server,
        &proxy,
        &["claim", "--ttl", "12s", "--db-timeout", "1m"],
    );
    let second = Lease::new(["claim", "--holder", "second", "--db-timeout", "30s", "k"])
        .on(&server)
        .output()
        .expect_code(0);
    assert!(
        first.exit().is_none(),
        "the first one still waits: {second}"
    );
}
