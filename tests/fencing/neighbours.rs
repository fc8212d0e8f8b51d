//! Another program that shares the table, with statements of its own through a pool of connections: it releases by DELETE.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Condvar, Mutex};
use std::thread;
use std::time::Duration;

use pglease::lease::{Claim, Holder, Key, Release};
use pglease::timing::Ttl;
use postgres::Client;

use crate::page::recipe;
use crate::support::{LIMIT, Lease, lock, serial};
use crate::{Resource, leases, report};

const KEYS: usize = 4;

/// Few connections for many: none of them belongs to anybody between two statements.
struct Pool {
    free: Mutex<Vec<Client>>,
    back: Condvar,
}

impl Pool {
    fn with<T>(&self, work: impl FnOnce(&mut Client) -> T) -> T {
        let mut free = lock(&self.free);
        let mut client = loop {
            match free.pop() {
                Some(client) => break client,
                None => free = self.back.wait(free).expect("the pool"),
            }
        };
        drop(free);
        let answer = work(&mut client);
        lock(&self.free).push(client);
        self.back.notify_one();
        answer
    }
}

const CLAIM: &str = "
    INSERT INTO lease (key, holder, expires_at) VALUES ($1, $2, clock_timestamp() + interval '5 minutes')
    ON CONFLICT (key) DO UPDATE
       SET holder = EXCLUDED.holder, fence = lease.fence + 1,
           acquired_at = clock_timestamp(), expires_at = EXCLUDED.expires_at
     WHERE lease.expires_at <= clock_timestamp()
    RETURNING fence";

const RENEW: &str = "
    UPDATE lease SET expires_at = clock_timestamp() + interval '5 minutes'
     WHERE key = $1 AND holder = $2 AND fence = $3 AND expires_at > clock_timestamp()";

const RELEASE: &str = "DELETE FROM lease WHERE key = $1 AND holder = $2 AND fence = $3";

/// What is known of one key by those who hold it.
#[derive(Default)]
struct Held {
    /// The number of the holder who is in, or 0.
    by: AtomicU64,
    /// The largest fence so far, and how often the other program got a smaller one.
    largest: Mutex<i64>,
    back: AtomicU32,
}

impl Held {
    fn enter(&self, fence: i64, ours: bool) -> u64 {
        let me = serial();
        assert_eq!(self.by.swap(me, Ordering::SeqCst), 0, "two holders at once");
        let mut largest = lock(&self.largest);
        if ours {
            assert!(fence > *largest, "lease was given {fence} after {largest}");
        } else if fence <= *largest {
            self.back.fetch_add(1, Ordering::SeqCst);
        }
        *largest = fence.max(*largest);
        me
    }

    fn leave(&self, me: u64) {
        assert_eq!(self.by.swap(0, Ordering::SeqCst), me, "two holders at once");
    }
}

/// Both side by side, so many claims each. Returns how often the other program's fence went back.
fn side_by_side(resource: &Resource, claims: u32) -> u32 {
    let store = leases(resource);
    let pool = Pool {
        free: Mutex::new((0..2).map(|_| resource.connect()).collect()),
        back: Condvar::new(),
    };
    let held: [Held; KEYS] = Default::default();
    let (ours, theirs) = (AtomicU32::new(0), AtomicU32::new(0));
    let ttl = Ttl::new(Duration::from_secs(300)).expect("a ttl");
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while ours.load(Ordering::SeqCst) < claims {
                    let at = fastrand::usize(..KEYS);
                    let key: Key = format!("k{at}").parse().expect("a key");
                    let holder = Holder::fresh("ours").expect("a holder");
                    let sent = store
                        .claim(&key, &holder, ttl, LIMIT, None)
                        .expect("an answer");
                    if let Claim::Granted(grant) = sent.answer {
                        let me = held[at].enter(grant.lease.fence.get(), true);
                        thread::yield_now();
                        held[at].leave(me);
                        let released = store.release(&grant.lease, Duration::ZERO, LIMIT);
                        assert_eq!(released.expect("an answer"), Release::Released);
                        ours.fetch_add(1, Ordering::SeqCst);
                    }
                }
            });
            scope.spawn(|| {
                while theirs.load(Ordering::SeqCst) < claims {
                    let at = fastrand::usize(..KEYS);
                    let (key, holder) = (format!("k{at}"), format!("theirs-{}", serial()));
                    let row = pool.with(|client| client.query_opt(CLAIM, &[&key, &holder]));
                    let Some(row) = row.expect("an answer") else {
                        continue;
                    };
                    let fence: i64 = row.get(0);
                    let me = held[at].enter(fence, false);
                    let renewed =
                        pool.with(|client| client.execute(RENEW, &[&key, &holder, &fence]));
                    assert_eq!(renewed.expect("an answer"), 1);
                    held[at].leave(me);
                    let released =
                        pool.with(|client| client.execute(RELEASE, &[&key, &holder, &fence]));
                    assert_eq!(released.expect("an answer"), 1);
                    theirs.fetch_add(1, Ordering::SeqCst);
                }
            });
        }
    });
    held.iter()
        .map(|held| held.back.load(Ordering::SeqCst))
        .sum()
}

fn shared_table() -> Resource {
    let resource = Resource::bare();
    resource
        .connect()
        .batch_execute(&recipe("shared-table"))
        .expect("a table");
    resource
}

#[test]
fn with_a_program_that_deletes_rows_there_are_never_two_holders_and_our_fence_only_grows() {
    let back = side_by_side(&shared_table(), 200);
    report(&format!(
        "the other program's fence went back {back} times, with a default of 1"
    ));
    assert!(
        back > 0,
        "the other program was never in danger, so nothing was tested"
    );
}

#[test]
fn with_the_safe_default_that_programs_fence_grows_too_but_for_a_rare_race() {
    let resource = shared_table();
    resource
        .connect()
        .batch_execute(&recipe("shared-table-default"))
        .expect("alters");
    let back = side_by_side(&resource, 1_000);
    report(&format!(
        "the other program's fence went back {back} times, with the safe default"
    ));
    assert!(back <= 100, "{back} of 1,000");
}

#[test]
fn lease_run_takes_turns_with_such_a_program() {
    let resource = shared_table();
    let mut client = resource.connect();
    let mut largest = 0;
    for round in 0..5 {
        let holder = format!("theirs-{round}");
        let fence: i64 = client
            .query_one(CLAIM, &[&"k", &holder])
            .expect("free")
            .get(0);
        let run = || {
            Lease::new(["run", "k", "--", "sh", "-c", "echo $FENCE"])
                .url(&resource.url)
                .output()
        };
        run().expect_code(75);
        assert_eq!(
            client
                .execute(RELEASE, &[&"k", &holder, &fence])
                .expect("an answer"),
            1
        );
        let ours: i64 = run().expect_code(0).stdout.trim().parse().expect("a fence");
        assert!(ours > largest, "{ours} after {largest}");
        largest = ours;
    }
}
