//! No order of two transactions lets an older writer follow a newer one.

use std::sync::atomic::{AtomicI64, AtomicU32, Ordering};
use std::thread;

use pglease::fencing::SQLSTATE_STALE;
use postgres::{Client, IsolationLevel};

use crate::{Resource, check, once_it_waits, state};

const LEVELS: [IsolationLevel; 3] = [
    IsolationLevel::ReadCommitted,
    IsolationLevel::RepeatableRead,
    IsolationLevel::Serializable,
];

#[test]
fn a_newer_holder_waits_for_an_older_writer_and_an_older_one_is_refused_behind_a_newer() {
    let resource = Resource::new();
    for level in LEVELS {
        // What is remembered beforehand: nothing, an older fence, the first one's own, the smaller of the two.
        for before in [None, Some(1), Some(0), Some(7)] {
            for (first_fence, second_fence) in [(7, 8), (8, 7)] {
                let name = format!("{level:?} {before:?} {first_fence}");
                let before = if before == Some(0) {
                    Some(first_fence)
                } else {
                    before
                };
                let mut first = resource.connect();
                if let Some(fence) = before {
                    check(&mut first, &name, fence).expect("passes");
                }
                first.batch_execute("BEGIN").expect("begins");
                check(&mut first, &name, first_fence).expect("passes");
                if before == Some(8) {
                    // Refused at once: what it waits for could not change the answer.
                    assert_eq!(
                        state(check(&mut resource.connect(), &name, 7)),
                        SQLSTATE_STALE
                    );
                    continue;
                }
                let second = |client: &mut Client| {
                    let mut open = client
                        .build_transaction()
                        .isolation_level(level)
                        .start()
                        .expect("begins");
                    open.execute("SELECT count(*) FROM public.lease_fence", &[])
                        .expect("takes its snapshot");
                    state(check(&mut open, &name, second_fence).and_then(|()| open.commit()))
                };
                let got = once_it_waits(&resource, second, || {
                    first.batch_execute("COMMIT").expect("commits");
                });
                let verdict = if second_fence > first_fence {
                    ""
                } else {
                    SQLSTATE_STALE
                };
                // Its snapshot is older than what the first one has written.
                let retries = !matches!(level, IsolationLevel::ReadCommitted);
                assert_eq!(got, if retries { "40001" } else { verdict }, "{name}");
                // The retry, with a new snapshot.
                assert_eq!(
                    state(check(&mut resource.connect(), &name, second_fence)),
                    verdict,
                    "{name}"
                );
                assert_eq!(resource.remembered(&name), Some(8), "{name}");
            }
        }
    }
}

#[test]
fn a_new_holder_works_on_what_the_one_before_it_has_written() {
    let resource = Resource::new();
    let mut admin = resource.connect();
    admin
        .batch_execute("CREATE TABLE part (n bigint); CREATE TABLE total (n bigint)")
        .expect("two tables");
    for level in LEVELS {
        let name = format!("{level:?}");
        admin
            .batch_execute("TRUNCATE part, total")
            .expect("two tables");
        check(&mut admin, &name, 7).expect("passes");
        // Not the first transaction of its term: nothing is changed in the row of the fence.
        let mut first = resource.connect();
        first.batch_execute("BEGIN").expect("begins");
        check(&mut first, &name, 7).expect("passes");
        first
            .batch_execute("INSERT INTO part VALUES (100)")
            .expect("a table");
        let sum = |client: &mut Client| {
            let mut open = client.build_transaction().isolation_level(level).start()?;
            check(&mut open, &name, 8)?;
            open.batch_execute("INSERT INTO total SELECT sum(n) FROM part")?;
            open.commit()
        };
        let second = |client: &mut Client| state(sum(client));
        let got = once_it_waits(&resource, second, || {
            first.batch_execute("COMMIT").expect("commits");
        });
        if !got.is_empty() {
            assert_eq!(got, "40001", "{name}");
            sum(&mut resource.connect()).expect("the second time");
        }
        let total = admin.query_one("SELECT n FROM total", &[]).expect("a row");
        assert_eq!(total.get::<_, Option<i64>>(0), Some(100), "{name}");
    }
}

#[test]
fn a_snapshot_from_before_a_newer_holder_never_lets_an_older_one_commit() {
    let resource = Resource::new();
    for level in LEVELS {
        let name = &format!("{level:?}");
        check(&mut resource.connect(), name, 7).expect("passes");
        let mut client = resource.connect();
        let mut open = client
            .build_transaction()
            .isolation_level(level)
            .start()
            .expect("begins");
        open.execute("SELECT count(*) FROM public.lease_fence", &[])
            .expect("takes its snapshot");
        check(&mut resource.connect(), name, 8).expect("passes");
        let got = state(check(&mut open, name, 7));
        let expected = if matches!(level, IsolationLevel::ReadCommitted) {
            SQLSTATE_STALE
        } else {
            "40001"
        };
        assert_eq!(got, expected, "{level:?}");
    }
}

#[test]
fn one_holder_writes_through_several_connections_at_once_and_several_times_in_a_transaction() {
    let resource = Resource::new();
    check(&mut resource.connect(), "r", 7).expect("passes");
    let mut clients: Vec<Client> = (0..3).map(|_| resource.connect()).collect();
    for client in &mut clients {
        client
            .batch_execute("BEGIN; SET LOCAL lock_timeout = '10s'")
            .expect("begins");
    }
    for _ in 0..2 {
        for client in &mut clients {
            assert_eq!(state(check(client, "r", 7)), "", "nobody waits for another");
        }
    }
    for client in &mut clients {
        client.batch_execute("COMMIT").expect("commits");
    }
}

#[test]
fn two_that_raise_the_fence_at_once_are_no_deadlock() {
    let resource = Resource::new();
    let rounds = 100;
    for threads in [[0, 0], [0, 1]] {
        thread::scope(|scope| {
            for step in threads {
                let resource = &resource;
                scope.spawn(move || {
                    let mut client = resource.connect();
                    for round in 0..rounds {
                        let got = state(check(&mut client, "r", 1 + 2 * round + step));
                        assert!(["", SQLSTATE_STALE].contains(&got.as_str()), "{got}");
                    }
                });
            }
        });
        resource
            .connect()
            .batch_execute("DELETE FROM public.lease_fence")
            .expect("a table");
    }
}

/// Many writers do read, wait and write on a plain counter, each below a fence of its own. Without a check that lasts until
/// COMMIT, counts are lost or an older fence's write follows a newer one's.
#[test]
fn under_a_stampede_no_older_write_follows_a_newer_one() {
    for level in LEVELS {
        let resource = Resource::new();
        resource
            .connect()
            .batch_execute(
                "CREATE TABLE public.counter (n bigint, fence bigint); INSERT INTO public.counter VALUES (0, 0);
                 CREATE TABLE public.history (at bigint, fence bigint)",
            )
            .expect("tables");
        let next_fence = AtomicI64::new(1);
        let written = AtomicI64::new(0);
        let refused = AtomicU32::new(0);
        thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    let mut client = resource.connect();
                    for _ in 0..25 {
                        let fence = next_fence.fetch_add(1, Ordering::SeqCst);
                        loop {
                            match &*state(write(&mut client, level, fence)) {
                                "" => {
                                    written.fetch_add(1, Ordering::SeqCst);
                                    break;
                                }
                                SQLSTATE_STALE => {
                                    refused.fetch_add(1, Ordering::SeqCst);
                                    break;
                                }
                                "40001" => {}
                                other => panic!("{level:?}: {other}"),
                            }
                        }
                    }
                });
            }
        });
        let mut client = resource.connect();
        let counted: i64 = client
            .query_one("SELECT n FROM public.counter", &[])
            .expect("a row")
            .get(0);
        assert_eq!(
            counted,
            written.load(Ordering::SeqCst),
            "{level:?}: counts were lost"
        );
        let fences: Vec<i64> = client
            .query("SELECT fence FROM public.history ORDER BY at", &[])
            .expect("rows")
            .iter()
            .map(|row| row.get(0))
            .collect();
        assert!(fences.is_sorted(), "{level:?}: {fences:?}");
        assert!(!fences.is_empty() && refused.load(Ordering::SeqCst) + fences.len() as u32 == 200);
    }
}

/// Reads the counter, waits a little, and writes it back, the way that loses counts when two do it at once.
fn write(client: &mut Client, level: IsolationLevel, fence: i64) -> Result<(), postgres::Error> {
    let mut open = client.build_transaction().isolation_level(level).start()?;
    check(&mut open, "counter", fence)?;
    let read: i64 = open.query_one("SELECT n FROM public.counter", &[])?.get(0);
    open.execute("SELECT pg_sleep(0.001 * random())", &[])?;
    open.execute(
        "UPDATE public.counter SET n = $1, fence = $2",
        &[&(read + 1), &fence],
    )?;
    open.execute(
        "INSERT INTO public.history VALUES ($1, $2)",
        &[&(read + 1), &fence],
    )?;
    open.commit()
}
