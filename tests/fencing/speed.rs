//! What a call costs: rows, pages, time.

use std::time::Instant;

use postgres::Client;

use crate::install;
use crate::support::{Server, until};

const CALLS: i64 = 3_000;

/// Updates, HOT updates, and the bytes of the table itself.
fn numbers(client: &mut Client) -> (i64, i64, i64) {
    let row = client
        .query_one(
            "SELECT n_tup_upd, n_tup_hot_upd, pg_relation_size(relid)
               FROM pg_stat_user_tables WHERE relname = 'lease_fence'",
            &[],
        )
        .expect("statistics");
    (row.get(0), row.get(1), row.get(2))
}

fn place(client: &mut Client) -> String {
    let row = client.query_one(
        "SELECT string_agg(ctid::text, ' ') FROM public.lease_fence",
        &[],
    );
    row.expect("one row").get(0)
}

fn call(client: &mut Client, what: &str, fences: impl Iterator<Item = i64>) {
    let started = Instant::now();
    let call = client
        .prepare("SELECT public.lease_check_fence('r', $1)")
        .expect("a statement");
    for fence in fences {
        client.execute(&call, &[&fence]).expect("passes");
    }
    let (_, _, size) = numbers(client);
    crate::report(&format!(
        "{CALLS} calls with {what}: {:.1?}, {size} bytes",
        started.elapsed()
    ));
}

/// On a server of its own: a transaction that stands open anywhere keeps dead row versions from being tidied away.
#[test]
fn thousands_of_calls_are_hot_updates_or_none_and_the_table_does_not_grow() {
    let server = Server::start_plain();
    let mut client = server.client();
    install(&mut client, "public");

    call(&mut client, "a rising fence", 1..=CALLS + 1);
    until("the statistics have arrived", || {
        numbers(&mut server.client()).0 == CALLS
    });
    let (_, hot, size) = numbers(&mut client);
    assert!(hot >= CALLS - CALLS / 100, "{hot} HOT updates");
    assert!(size <= 16 * 1024, "{size} bytes");

    let before = place(&mut client);
    call(
        &mut client,
        "the same fence",
        std::iter::repeat_n(CALLS + 1, CALLS as usize),
    );
    assert_eq!(place(&mut client), before, "one row, where it was");
    assert_eq!(numbers(&mut client).2, size);
}
