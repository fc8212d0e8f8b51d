//! Standbys follow, fall behind and take over.

use std::sync::mpsc;
use std::time::Duration;

use crate::support::{LIMIT, Server, stays};

#[test]
fn a_synchronous_standby_has_every_commit_and_takes_over() {
    let primary = Server::start_plain();
    let standby = primary.standby(true);
    assert!(standby.is_standby());
    primary.psql("CREATE TABLE t AS SELECT 1 AS x");
    primary.crash();
    standby.promote();
    assert_eq!(standby.psql("SELECT x FROM t"), "1");
    standby.psql("INSERT INTO t VALUES (2)");
}

#[test]
fn a_commit_waits_for_a_synchronous_standby_that_is_away() {
    let primary = Server::start_plain();
    let standby = primary.standby(true);
    standby.stop();
    let mut client = primary.client();
    let (sender, answers) = mpsc::channel();
    std::thread::spawn(move || sender.send(client.batch_execute("CREATE TABLE t ()").is_ok()));
    stays("no answer", Duration::from_millis(300), || {
        answers.try_recv().is_err()
    });
    standby.start();
    assert_eq!(answers.recv_timeout(LIMIT), Ok(true));
}

#[test]
fn an_asynchronous_standby_can_miss_the_last_commits() {
    let primary = Server::start_plain();
    let standby = primary.standby(false);
    primary.psql("CREATE TABLE t AS SELECT 1 AS x");
    standby.catch_up_with(&primary);
    standby.fall_behind();
    primary.psql("INSERT INTO t VALUES (2)");
    primary.crash();
    standby.promote();
    assert_eq!(standby.psql("SELECT x FROM t"), "1");
}
