//! A whole machine stands still for longer than the ttl, another holder takes over and writes, and the first one wakes up.

use crate::Resource;
use crate::page::recipe;
use crate::recipes::libpq;
use crate::support::{Lease, until};

/// Writes again and again, as the page says, and ends when it is refused. Twice: if it was frozen within a transaction, the
/// server has ended that connection, and only the next try is told why.
fn job() -> String {
    let write = recipe("postgresql").replace("VALUES ('ACME', 100)", "VALUES (:fence)");
    format!("write() {{\n{write}}}\nwhile write || write; do echo wrote; sleep 0.05; done; exit 9")
}

fn run(resource: &Resource, ttl: &str, on_loss: &str, job: &str) -> Lease {
    let options = [
        "run",
        "k",
        "--ttl",
        ttl,
        "--on-loss",
        on_loss,
        "--wait",
        "1m",
        "--",
        "sh",
        "-c",
        job,
    ];
    libpq(resource)
        .into_iter()
        .fold(
            Lease::new(options).url(&resource.url),
            |lease, (name, value)| lease.env(name, value),
        )
        // A job that freezes with its transaction open must not keep its successor out.
        .env("PGOPTIONS", "-c idle_in_transaction_session_timeout=500")
}

/// Returns what the first run said and how it ended.
fn overtaken(on_loss: &str) -> crate::support::Output {
    let resource = Resource::new();
    let mut client = resource.connect();
    client
        .batch_execute(
            "CREATE TABLE invoices (fence bigint, at bigint GENERATED ALWAYS AS IDENTITY)",
        )
        .expect("a table");
    let first = run(&resource, "3s", on_loss, &job()).spawn();
    first.wait_for_line("wrote");
    first.freeze();

    let second = run(&resource, "1m", "stop", &job()).spawn();
    second.wait_for_line("wrote");
    let newest = |client: &mut postgres::Client| -> (i64, i64) {
        let row = client.query_one("SELECT max(fence), max(at) FILTER (WHERE fence < (SELECT max(fence) FROM invoices)) FROM invoices", &[]);
        let row = row.expect("rows");
        (row.get(0), row.get(1))
    };
    let before = newest(&mut client);

    first.thaw();
    let first = first.wait();
    // The second one goes on as if nothing had been.
    let count = |client: &mut postgres::Client| -> i64 {
        client
            .query_one(
                "SELECT count(*) FROM invoices WHERE fence = $1",
                &[&before.0],
            )
            .expect("rows")
            .get(0)
    };
    let so_far = count(&mut client);
    until("the second one writes on", || count(&mut client) > so_far);
    assert_eq!(
        newest(&mut client),
        before,
        "the first one has written after the second one: {first}"
    );
    first
}

#[test]
fn a_job_that_is_stopped_when_it_thaws_has_written_nothing() {
    let first = overtaken("stop").expect_code(76);
    assert!(
        first.stderr.contains("k could not be renewed in time"),
        "{first}"
    );
}

#[test]
fn a_job_that_runs_on_after_its_loss_is_refused_and_sees_why() {
    let first = overtaken("continue");
    assert!(
        first.stderr.contains("is stale: 'invoices' has seen fence"),
        "{first}"
    );
}

/// It has passed the check, holds the lock on its fence, and has yet to write.
const JOB_IN_TWO_HALVES: &str = r#"
{
    echo "BEGIN; SELECT public.lease_check_fence('invoices', $FENCE);"
    printf '%s\n' '\echo has passed'
    cat
    echo "INSERT INTO invoices VALUES ($FENCE); COMMIT;"
} | psql -Xq -v ON_ERROR_STOP=1
"#;

#[test]
fn a_job_that_stands_still_between_its_check_and_its_write_has_written_nothing() {
    let resource = Resource::new();
    let mut client = resource.connect();
    client
        .batch_execute("CREATE TABLE invoices (fence bigint)")
        .expect("a table");
    let first = run(&resource, "2s", "continue", JOB_IN_TWO_HALVES)
        .open_input()
        .spawn();
    first.wait_for_line("has passed");
    first.freeze();

    let second = run(&resource, "1m", "stop", &job()).spawn();
    second.wait_for_line("wrote");
    first.thaw();
    first.close_input();
    let first = first.wait();
    assert!(
        first.stderr.contains("idle-in-transaction timeout"),
        "{first}"
    );
    assert_ne!(first.code, Some(0), "{first}");
    let holders: i64 = client
        .query_one("SELECT count(DISTINCT fence) FROM invoices", &[])
        .expect("rows")
        .get(0);
    assert_eq!(holders, 1, "{first}");
}
