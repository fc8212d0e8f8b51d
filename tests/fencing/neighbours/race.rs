//! The one race in which the safe default is not enough, and what `lease` does about it, and a neighbour can do.
//!
//! A row is being deleted. The next claim has its fence already, and waits for that transaction to end. When it has ended, but
//! before the waiting claim looks again, a third holder comes and goes, and its row is deleted as well. Here the process of the
//! server that works on the waiting claim stands still for that time; on a busy machine the scheduler does the same, now and
//! then, and even where there was nothing to wait for.

use std::thread;

use nix::sys::signal::Signal;
use postgres::types::Type;
use postgres::{Client, NoTls};

use super::witness::judge;
use super::{Neighbour, Term, its_table_with_the_safe_default};
use crate::Resource;
use crate::page::recipe;
use crate::support::job::run_script;
use crate::support::proc::Process;
use crate::support::{Lease, Server, until};

const KEY: &str = "k";

/// A process of the server that stands still. Dropped, it goes on.
struct Stopped(Process);

impl Stopped {
    fn new(pid: i32) -> Self {
        let process = Process::find(pid).expect("a process of the server");
        process.signal(Signal::SIGSTOP);
        until("that process is stopped", || {
            Process::find(pid).is_some_and(|now| now.is_stopped())
        });
        Self(process)
    }
}

impl Drop for Stopped {
    fn drop(&mut self) {
        self.0.signal(Signal::SIGCONT);
    }
}

/// The fences in the order in which they were handed out: to the program whose row is being deleted, to `lease run` in the
/// meantime, and to the claim that has waited.
struct Fences {
    first: i64,
    between: i64,
    waited: i64,
}

impl Fences {
    /// The journal of these three, where the last of them belongs to `who`.
    fn journal(&self, who: &str) -> Vec<String> {
        let terms = [
            ("theirs", self.first),
            ("ours", self.between),
            (who, self.waited),
        ];
        let lines = |(who, fence)| [format!("in {who} {fence}"), format!("out {who} {fence}")];
        terms.into_iter().flat_map(lines).collect()
    }
}

/// Lets `claim` come while a row is being deleted, and wait until a third holder has come and gone.
fn behind_a_third_holder(claim: impl FnOnce(&str) -> i64 + Send) -> Fences {
    // A server that looks for a deadlock has all its locks locked, and must not be stopped then.
    let server = Server::builder().conf("deadlock_timeout = 1h").start();
    let url = server.url();
    its_table_with_the_safe_default(&url);
    let mut watch = server.client();
    thread::scope(|scope| {
        let mut first = Neighbour::connect(&url);
        let term = first.claim(KEY).expect("a free key");
        // Its time passes before it is done. `lease` would not even try to take a row that is held.
        first
            .0
            .batch_execute(
                "UPDATE lease SET acquired_at = acquired_at - interval '1 hour', expires_at = acquired_at",
            )
            .expect("a row");
        first.0.batch_execute("BEGIN").expect("begins");
        first.release(&term);

        let waiting = scope.spawn(|| claim(&url));
        let pid: i32 = until("the claim waits for the row", || {
            assert!(!waiting.is_finished(), "it did not wait");
            let blocked = "SELECT pid FROM pg_stat_activity WHERE $1 = ANY (pg_blocking_pids(pid))";
            let row = watch.query_opt(blocked, &[&term.backend]);
            row.expect("a server").map(|row| row.get(0))
        });
        let stopped = Stopped::new(pid);
        first.0.batch_execute("COMMIT").expect("commits");

        let between = run_script(&["--ttl", "5m", "--db-timeout", "1m"], KEY, "echo $FENCE")
            .url(&url)
            .output();
        let between = between.expect_code(0).stdout;
        let swept = watch.execute(
            "DELETE FROM lease WHERE expires_at <= clock_timestamp()",
            &[],
        );
        assert_eq!(swept.expect("a table"), 1, "the row of the third holder");

        drop(stopped);
        Fences {
            first: term.fence,
            between: between.trim().parse().expect("a fence"),
            waited: waiting.join().expect("the claim"),
        }
    })
}

#[test]
fn the_default_is_evaluated_before_a_claim_waits_for_a_row_that_is_being_deleted() {
    let fences = behind_a_third_holder(|url| {
        let term = Neighbour::connect(url).claim(KEY);
        term.expect("nobody has it any more").fence
    });
    let Fences {
        first,
        between,
        waited,
    } = fences;
    assert!(
        first < waited && waited < between,
        "read between the two: {first} {waited} {between}"
    );
    let seen = judge(&fences.journal("theirs")).expect("no two holders");
    assert_eq!(seen.back, 1, "this is what is counted: {seen:?}");
}

#[test]
fn lease_reads_the_clock_again_when_it_has_waited_for_a_row_that_is_being_deleted() {
    let fences = behind_a_third_holder(|url| {
        let words = [
            "claim",
            "--ttl",
            "1h",
            "--db-timeout",
            "5m",
            "--format",
            "json",
        ];
        let out = Lease::new(words).arg(KEY).url(url).output().expect_code(0);
        let term: serde_json::Value = serde_json::from_str(&out.stdout).expect("one object");
        let fence = term["fence"].as_i64().expect("a fence");
        let mut client = Client::connect(url, NoTls).expect("a connection");
        let row = client.query_one("SELECT fence FROM lease WHERE key = $1", &[&KEY]);
        assert_eq!(row.expect("its row").get::<_, i64>(0), fence);
        fence
    });
    judge(&fences.journal("ours")).unwrap_or_else(|why| panic!("{why}"));
}

impl Neighbour {
    /// A claim and the page's statement after it, in one transaction. Returns the fence that this statement answers.
    fn claim_and_read_the_clock_again(&mut self) -> i64 {
        self.0.batch_execute("BEGIN").expect("begins");
        let term = self.claim(KEY).expect("nobody has it any more");
        let rows = self.0.query_typed(
            &recipe("shared-table-fence"),
            &[
                (&term.key, Type::TEXT),
                (&term.holder, Type::TEXT),
                (&term.fence, Type::INT8),
            ],
        );
        let rows = rows.expect("an answer");
        assert_eq!(rows.len(), 1, "the row that was just claimed");
        self.0.batch_execute("COMMIT").expect("commits");
        let fence = rows[0].get(0);
        self.renew(&Term { fence, ..term });
        fence
    }
}

#[test]
fn a_neighbour_that_reads_the_clock_again_once_its_row_exists_gets_the_newest_fence_of_all() {
    let fences = behind_a_third_holder(|url| {
        let mut neighbour = Neighbour::connect(url);
        neighbour.claim_and_read_the_clock_again()
    });
    let seen = judge(&fences.journal("theirs")).expect("no two holders");
    assert_eq!(seen.back, 0, "{seen:?}");
}

#[test]
fn a_neighbour_that_reads_the_clock_again_begins_its_term_with_that_reading() {
    let resource = Resource::bare();
    its_table_with_the_safe_default(&resource.url);
    let mut neighbour = Neighbour::connect(&resource.url);
    let fence = neighbour.claim_and_read_the_clock_again();
    let began = "SELECT (extract(epoch FROM acquired_at) * 1000000)::bigint FROM lease";
    let began = neighbour.0.query_one(began, &[]).expect("its row");
    assert_eq!(began.get::<_, i64>(0), fence);
}

#[test]
fn a_neighbour_that_reads_the_clock_again_never_lowers_a_fence() {
    let resource = Resource::bare();
    its_table_with_the_safe_default(&resource.url);
    let mut neighbour = Neighbour::connect(&resource.url);
    let ahead = 1 << 60;
    neighbour
        .0
        .execute(
            "INSERT INTO lease (key, holder, fence, expires_at) VALUES ($1, 'gone', $2, clock_timestamp())",
            &[&KEY, &ahead],
        )
        .expect("a row");
    assert_eq!(neighbour.claim_and_read_the_clock_again(), ahead + 1);
}
