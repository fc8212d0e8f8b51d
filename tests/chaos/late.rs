//! A database that answers, but late.

use std::time::Duration;

use crate::support::job::Journal;
use crate::support::proxy::Proxy;
use crate::support::{Server, key, until};
use crate::{dead_in_time, deaf, nothing_left, until_it_ticks};

/// How late the answer comes. The server counts the ttl from before it.
const LATE: Duration = Duration::from_millis(1500);

#[test]
fn a_renewal_is_trusted_from_when_it_was_sent_and_not_from_when_its_answer_arrived() {
    let server = Server::start_plain();
    let proxy = Proxy::to(&server);
    let (key, journal) = (key(), Journal::new());
    let options = ["-v", "--ttl", "9s", "--heartbeat", "3s", "--grace", "500ms"];
    let job = deaf(&options, &key, &journal).url(proxy.url()).spawn();
    until_it_ticks(&journal);
    let mut client = server.client();
    let mut transaction = client.transaction().expect("a transaction");
    transaction
        .execute("SELECT FROM public.lease FOR UPDATE", &[])
        .expect("the row is locked");
    until("a renewal waits for the row", || {
        server.psql("SELECT count(*) FROM pg_locks WHERE NOT granted") == "1"
    });
    proxy.stall();
    transaction.commit().expect("the row is unlocked");
    std::thread::sleep(LATE);
    proxy.resume();
    job.wait_for_line("renew: answered");
    proxy.stall();
    job.wait_exit(crate::support::LIMIT);
    nothing_left(&job, &key);
    dead_in_time(&server, &key, &journal);
}
