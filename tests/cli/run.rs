//! `lease run`: the lease around a job.

use std::time::Duration;

use crate::support::job::{Journal, of_job, run, run_script};
use crate::support::{Lease, key, shared, until};
use crate::{claimed, column, database, literal};

#[test]
fn a_job_runs_under_a_lease_that_is_released_when_it_has_ended() {
    let key = key();
    let job = run_script(&[], &key, "echo ready; read end")
        .open_input()
        .on(shared())
        .spawn();
    job.wait_for_line("ready");
    assert_eq!(
        column(shared(), &key, "expires_at > clock_timestamp()"),
        "t"
    );
    job.close_input();
    job.wait().expect_code(1);
    assert_eq!(column(shared(), &key, "holder"), "");
    assert_eq!(
        column(shared(), &key, "expires_at <= clock_timestamp()"),
        "t"
    );
}

#[test]
fn the_job_knows_its_key_its_holder_and_its_fence() {
    let key = key();
    let job = run_script(
        &["--name", "web-3"],
        &key,
        "echo \"$LEASE_KEY $LEASE_HOLDER $FENCE\"; read end",
    )
    .open_input()
    .on(shared())
    .spawn();
    let said = job.wait_for_line(&key);
    let row = column(shared(), &key, "key || ' ' || holder || ' ' || fence");
    assert_eq!(said, row);
    assert!(row.contains(" web-3-"), "{row}");
}

#[test]
fn the_lease_is_held_at_every_moment_of_the_job_under_one_fence() {
    let key = key();
    let job = run(&["--ttl", "2s"], &key, &["sh", "-c", "echo ready; sleep 8"])
        .on(shared())
        .spawn();
    job.wait_for_line("ready");
    let process = of_job(&key).remove(0);
    let mut client = shared().client();
    let look = format!(
        "SELECT fence, expires_at > clock_timestamp() FROM public.lease WHERE key = {}",
        literal(&key)
    );
    let mut seen = Vec::new();
    // The job is looked at last: what was seen while it lived was true while it lived.
    loop {
        let row = client.query_one(&look, &[]).expect("a row");
        if !process.is_alive() {
            break;
        }
        seen.push((row.get::<_, i64>(0), row.get::<_, bool>(1)));
    }
    job.wait().expect_code(0);
    assert!(seen.len() > 50, "{} looks", seen.len());
    assert!(
        seen.iter().all(|look| *look == (seen[0].0, true)),
        "{seen:?}"
    );
}

#[test]
fn a_held_key_is_exit_75_or_as_asked_and_quiet_is_quiet() {
    let (key, journal) = (key(), Journal::new());
    let held = claimed(&key, &[]);
    let touch = format!("echo started >>{}", journal.path());
    let out = run_script(&[], &key, &touch)
        .on(shared())
        .output()
        .expect_code(75);
    assert_eq!(out.stdout, "");
    assert!(
        out.stderr.contains(&held.holder) && out.stderr.contains("expires in "),
        "{out}"
    );
    assert_eq!(out.stderr.lines().count(), 1, "{out}");
    let out = run_script(&["-E", "0"], &key, &touch).on(shared()).output();
    assert!(out.expect_code(0).stderr.contains(&held.holder));
    let out = run_script(&["-q", "-E", "200"], &key, &touch)
        .on(shared())
        .output()
        .expect_code(200);
    assert_eq!((out.stdout.as_str(), out.stderr.as_str()), ("", ""));
    assert!(journal.lines().is_empty(), "{journal:?}");
}

#[test]
fn a_nested_run_does_not_enter_the_lease_of_its_parent() {
    let key = key();
    let script = "\"$LEASE\" run \"$LEASE_KEY\" -- echo inner; echo \"nested: $?\"";
    let out = run_script(&[], &key, script)
        .knowing_lease()
        .on(shared())
        .output()
        .expect_code(0);
    assert_eq!(out.stdout, "nested: 75\n", "{out}");
}

#[test]
fn hold_at_least_keeps_a_second_replica_out_after_a_short_job() {
    let key = key();
    let options = ["--hold-at-least", "30s"];
    run(&options, &key, &["true"])
        .on(shared())
        .output()
        .expect_code(0);
    assert_eq!(column(shared(), &key, "holder"), "");
    let out = run(&options, &key, &["echo", "twice"])
        .on(shared())
        .output()
        .expect_code(75);
    assert_eq!(out.stdout, "");
    assert!(out.stderr.contains("--hold-at-least"), "{out}");
    assert_eq!(
        column(shared(), &key, "expires_at = acquired_at + interval '30 s'"),
        "t"
    );
}

#[test]
fn no_heartbeat_touches_the_row_after_its_release() {
    let server = shared();
    let database = database(server);
    let url = server.url_for("postgres", &database);
    Lease::new(["init"]).url(&url).output().expect_code(0);
    server.psql_in(
        &database,
        "CREATE TABLE seen (at bigserial, key text, holder text, fence bigint); \
         CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql SET search_path = public AS \
         $$ BEGIN INSERT INTO seen (key, holder, fence) VALUES (NEW.key, NEW.holder, NEW.fence); RETURN NEW; END $$; \
         CREATE TRIGGER note AFTER INSERT OR UPDATE ON public.lease FOR EACH ROW EXECUTE FUNCTION note();",
    );
    // 200 runs in 8 rows; the jobs end shortly before, at and after their first heartbeat. On a busy machine so short
    // a lease is lost now and then, which is another matter.
    let ended_well = std::thread::scope(|scope| {
        let lanes: Vec<_> = (0..8)
            .map(|lane| {
                let (key, url) = (format!("{}-{lane}", key()), &url);
                scope.spawn(move || {
                    let ends_well = |round: &u32| {
                        let nap = format!("0.{:03}", 80 + 2 * round);
                        let out = run(&["--ttl", "300ms", "--wait", "30s"], &key, &["sleep", &nap])
                            .url(url)
                            .output();
                        // A release that the busy machine did not get done in time keeps the job's code, and is told.
                        out.code == Some(0) && !out.stderr.contains("cannot release")
                    };
                    (0..25).filter(ends_well).count()
                })
            })
            .collect();
        lanes
            .into_iter()
            .map(|lane| lane.join().expect("a lane"))
            .sum::<usize>()
    });
    assert!(ended_well > 20, "{ended_well} of 200 runs ended well");
    let terms = "(SELECT fence, key, max(at) FILTER (WHERE holder = '') AS release, \
                 max(at) FILTER (WHERE holder <> '') AS kept FROM seen GROUP BY key, fence) AS terms";
    let late = format!("SELECT * FROM {terms} WHERE kept > release");
    assert_eq!(server.psql_in(&database, &late), "");
    let released = format!("SELECT count(*) FROM {terms} WHERE release IS NOT NULL");
    let released: usize = server
        .psql_in(&database, &released)
        .parse()
        .expect("a count");
    assert!(released >= ended_well, "{released} of {ended_well}");
    let renewed = server.psql_in(&database, "SELECT count(*) > 400 FROM seen");
    assert_eq!(renewed, "t", "heartbeats were among the writes");
}

#[test]
fn no_connection_is_held_while_a_job_runs() {
    let server = shared();
    let database = database(server);
    let job = run(
        &["--ttl", "6s"],
        &key(),
        &["sh", "-c", "echo ready; sleep 12"],
    )
    .url(server.url_for("postgres", &database))
    .spawn();
    job.wait_for_line("ready");
    let open = || {
        let sql = format!("SELECT count(*) FROM pg_stat_activity WHERE datname = '{database}'");
        server.psql(&sql) != "0"
    };
    until("the claim's connection is gone", || !open());
    let samples: Vec<bool> = (0..4)
        .map(|_| {
            // Spread over a heartbeat and more: no fact to wait for, samples are what this is about.
            std::thread::sleep(Duration::from_millis(2300));
            open()
        })
        .collect();
    assert!(
        samples.iter().filter(|open| **open).count() <= 1,
        "{samples:?}"
    );
    assert!(job.exit().is_none(), "the job ran all the while");
    job.wait().expect_code(0);
}

#[test]
fn a_run_that_could_not_reach_the_database_starts_nothing() {
    let (key, journal) = (key(), Journal::new());
    let script = format!("echo started >>{}", journal.path());
    let out = run_script(&["-q", "--db-timeout", "1s"], &key, &script)
        .url("postgres://app@127.0.0.1:1/app")
        .output()
        .expect_code(69);
    assert_eq!(out.stderr.lines().count(), 1, "{out}");
    assert!(journal.lines().is_empty(), "{journal:?}");
}

#[test]
fn a_run_that_cannot_renew_a_late_grant_starts_nothing_and_says_what_happened_to_the_lease() {
    let server = shared();
    let database = database(server);
    let role = format!("late_{}", crate::support::serial());
    Lease::new(["claim", "--ttl", "2s", "k"])
        .url(server.url_for("postgres", &database))
        .output()
        .expect_code(0);
    let sql = |text: &str| server.psql_in(&database, text);
    sql(&format!("CREATE ROLE {role} LOGIN"));
    sql(&format!(
        "GRANT SELECT, INSERT, UPDATE ON public.lease TO {role}"
    ));
    until("the first term is over", || {
        sql("SELECT expires_at < clock_timestamp() FROM public.lease") == "t"
    });
    let mut owner =
        postgres::Client::connect(&server.url_for("postgres", &database), postgres::NoTls)
            .expect("a connection");
    let mut lock = owner.transaction().expect("a transaction");
    lock.execute("SELECT FROM public.lease FOR UPDATE", &[])
        .expect("the row is locked");
    let late = run(&["--ttl", "3s"], "k", &["echo", "started"])
        .url(server.url_for(&role, &database))
        .spawn();
    until("the claim waits", || {
        sql(
            "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND application_name = 'lease k'",
        ) == "1"
    });
    // Past the first heartbeat; then the claim is granted, and the renewal after it refused.
    lock.execute("SELECT pg_sleep(1.5)", &[])
        .expect("time passes");
    lock.execute(&format!("REVOKE UPDATE ON public.lease FROM {role}"), &[])
        .expect("the right is taken away");
    lock.commit().expect("the row is unlocked");
    let out = late.wait().expect_code(69);
    assert_eq!(out.stdout, "");
    assert!(out.stderr.contains("the job was not started"), "{out:?}");
    assert!(out.stderr.contains("lease: cannot release k: "), "{out:?}");
}
