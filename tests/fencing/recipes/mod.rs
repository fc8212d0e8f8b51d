//! The recipes of lease-fencing(7), each against the thing that it is for: a holder writes twice, a newer one takes over,
//! and the older one's write is refused and changes nothing.

mod file;
mod redis;
mod sqlite;

use std::path::Path;
use std::process::{Command, Output, Stdio};

use pglease::fencing::SQLSTATE_STALE;

use crate::page::{readme, recipe};
use crate::support::{programs, shared};
use crate::{Resource, check, role, state};

/// Runs a recipe with a fence in its environment; `None` leaves FENCE unset.
fn run(script: &str, fence: Option<i64>, dir: &Path, environment: &[(&str, String)]) -> Output {
    let mut command = Command::new("sh");
    command
        .arg("-c")
        .arg(script)
        .current_dir(dir)
        .stdin(Stdio::null())
        .env_remove("FENCE");
    command.envs(environment.iter().map(|(name, value)| (name, value)));
    if let Some(fence) = fence {
        command.env("FENCE", fence.to_string());
    }
    command.output().expect("sh")
}

/// The sequence of events that every recipe must withstand, with the contents of the resource after each. `stale` is
/// the exit code of a stale fence.
fn stands(
    script: &str,
    stale: i32,
    dir: &Path,
    environment: &[(&str, String)],
    mut contents: impl FnMut() -> String,
) {
    let now = 1_796_098_343_884_123;
    let mut write = |fence: Option<i64>, passes: bool| {
        let before = contents();
        let output = run(script, fence, dir, environment);
        let said = format!(
            "fence {fence:?}: {}\n{}{}",
            output.status,
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        );
        assert_eq!(output.status.success(), passes, "{said}");
        if !passes {
            assert_eq!(
                contents(),
                before,
                "a refused write has changed something: {said}"
            );
            let code = output.status.code();
            if fence.is_some() {
                assert_eq!(code, Some(stale), "{said}");
                assert!(said.to_lowercase().contains("stale"), "{said}");
            } else {
                assert!(stale != 76 || code != Some(76), "{said}");
                assert!(!said.to_lowercase().contains("stale"), "{said}");
            }
        }
    };
    write(None, false);
    write(Some(now), true);
    // The same holder again, the next one, by one microsecond, and that one again.
    write(Some(now), true);
    write(Some(now + 1), true);
    write(Some(now), false);
    write(Some(7), false);
    write(None, false);
    write(Some(now + 1), true);
    write(Some(now + 60_000_000), true);
    write(Some(now + 1), false);
}

/// The variables by which libpq finds a test's database.
pub(crate) fn libpq(resource: &Resource) -> Vec<(&'static str, String)> {
    let database = resource.url.rsplit('/').next().expect("a database");
    vec![
        ("PGHOST", "127.0.0.1".to_owned()),
        ("PGPORT", shared().port().to_string()),
        ("PGUSER", "postgres".to_owned()),
        ("PGDATABASE", database.to_owned()),
        ("PGOPTIONS", "-c lc_messages=C".to_owned()),
    ]
}

fn dir() -> tempfile::TempDir {
    tempfile::tempdir().expect("a directory")
}

#[test]
fn the_function_in_a_transaction_with_the_write() {
    for script in [recipe("postgresql"), readme()] {
        let resource = Resource::new();
        let mut client = resource.connect();
        client
            .batch_execute("CREATE TABLE invoices (customer text, amount int, month text)")
            .expect("a table");
        stands(&script, 3, dir().path(), &libpq(&resource), || {
            let rows = client.query_one("SELECT count(*)::text FROM invoices", &[]);
            rows.expect("a table").get(0)
        });
        // What psql prints is mailed by cron.
        let output = run(
            &script,
            Some(1_896_098_343_884_123),
            dir().path(),
            &libpq(&resource),
        );
        assert!(
            output.status.success() && output.stdout.is_empty() && output.stderr.is_empty(),
            "{output:?}"
        );
        for (fence, told) in [
            ("", "\"\""),
            ("abc", "\"abc\""),
            ("99999999999999999999", "out of range"),
        ] {
            let script = format!("FENCE='{fence}'\n{script}");
            let output = run(&script, None, dir().path(), &libpq(&resource));
            assert_eq!(output.status.code(), Some(3), "{output:?}");
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            assert!(
                said.contains("type bigint") && said.contains(told),
                "{said}"
            );
        }
        // Another error has the code of a stale fence; what it says tells them apart.
        client.batch_execute("DROP TABLE invoices").expect("drops");
        let output = run(
            &script,
            Some(1_896_098_343_884_123),
            dir().path(),
            &libpq(&resource),
        );
        assert_eq!(output.status.code(), Some(3), "{output:?}");
        assert!(
            !String::from_utf8_lossy(&output.stderr).contains("stale"),
            "{output:?}"
        );
    }
}

#[test]
fn the_printed_sql_without_the_lease_table() {
    let resource = Resource::bare();
    let database = resource.url.rsplit('/').next().expect("a database");
    let script = recipe("postgresql-print")
        .replace("lease init", &format!("{} init", programs::lease()))
        .replace(" invoices", &format!(" {database}"));
    for _ in 0..2 {
        let output = run(&script, None, dir().path(), &libpq(&resource));
        assert!(
            output.status.success() && output.stdout.is_empty() && output.stderr.is_empty(),
            "{output:?}"
        );
    }
    let mut client = resource.connect();
    check(&mut client, "r", 2).expect("passes");
    let leases = client.query_one("SELECT to_regclass('public.lease') IS NULL", &[]);
    assert!(leases.expect("a row").get::<_, bool>(0));
    client
        .batch_execute(
            "COMMENT ON FUNCTION public.lease_check_fence(text, bigint) IS 'something else'",
        )
        .expect("a function");
    let output = run(&script, None, dir().path(), &libpq(&resource));
    assert_eq!(output.status.code(), Some(3), "{output:?}");
}

#[test]
fn the_grants_are_enough_and_forgetting_is_possible() {
    let resource = Resource::new();
    let mut admin = resource.connect();
    let role = role(&mut admin);
    admin
        .batch_execute("REVOKE ALL ON SCHEMA public FROM PUBLIC")
        .expect("revokes");
    let grants = recipe("postgresql-grant").replace(" app;", &format!(" {role};"));
    admin.batch_execute(&grants).expect("grants");
    let mut client = resource.connect_as(&role);
    assert_eq!(state(check(&mut client, "invoices", i64::MAX)), "");
    assert_eq!(state(check(&mut client, "invoices", 7)), SQLSTATE_STALE);
    admin
        .batch_execute(&recipe("postgresql-forget"))
        .expect("deletes");
    assert_eq!(state(check(&mut client, "invoices", 7)), "");
}

#[test]
fn a_sql_table_without_the_function() {
    let resource = Resource::bare();
    let mut client = resource.connect();
    client
        .batch_execute(
            "CREATE TABLE report (id int PRIMARY KEY, body text, last_fence bigint NOT NULL);
             INSERT INTO report VALUES (1, 'old', 0)",
        )
        .expect("a table");
    let script = recipe("sql");
    stands(&script, 76, dir().path(), &libpq(&resource), || {
        let row = client.query_one("SELECT body || last_fence FROM report", &[]);
        row.expect("a table").get(0)
    });
    // What the page says about `<`: the second write of one holder would be refused.
    let strict = script.replace("<= :'fence'", "< :'fence'");
    let later = Some(1_896_098_343_884_123);
    assert!(
        run(&strict, later, dir().path(), &libpq(&resource))
            .status
            .success()
    );
    assert!(
        !run(&strict, later, dir().path(), &libpq(&resource))
            .status
            .success()
    );
}

#[test]
fn a_sql_table_that_cannot_be_read_calls_no_fence_stale() {
    let resource = Resource::bare();
    let script = recipe("sql");
    let fails = |fence: &str, port: Option<&str>| {
        let mut environment = libpq(&resource);
        environment.extend(port.map(|port| ("PGPORT", port.to_owned())));
        let script = format!("FENCE={fence}\n{script}");
        let output = run(&script, None, dir().path(), &environment);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.stdout.is_empty(), "{output:?}");
        (output.status.code(), said)
    };
    for (fence, port, code) in [
        ("5", Some("1"), 2),
        ("''", None, 1),
        // The table does not exist yet.
        ("5", None, 3),
    ] {
        let (ended, said) = fails(fence, port);
        assert_eq!(ended, Some(code), "{said}");
        assert!(!said.contains("stale"), "{said}");
    }
    resource
        .connect()
        .batch_execute("CREATE TABLE report (id int, body text, last_fence bigint)")
        .expect("a table");
    // It is a value, never a piece of the statement.
    for fence in ["last_fence", "5.4", "5--", "NULL", "-5", "0", "' 5'"] {
        let (ended, said) = fails(fence, None);
        assert_eq!(ended, Some(1), "{said}");
        assert!(said.starts_with("no fence: "), "{said}");
    }
    let (ended, said) = fails("5", None);
    assert_eq!(ended, Some(76), "{said}");
    assert!(said.contains("stale, or no such row"), "{said}");
}

/// The table of programs with statements of their own, and the default that the page tells them to use.
#[test]
fn a_table_that_others_have_made_gets_a_fence_that_survives_its_row() {
    let resource = Resource::bare();
    let mut client = resource.connect();
    client
        .batch_execute(&recipe("shared-table"))
        .expect("a table");
    let mut claim_and_delete = || -> i64 {
        let row = client.query_one(
            "INSERT INTO lease (key, holder, expires_at) VALUES ('k', 'h', clock_timestamp() + '1 minute') RETURNING fence",
            &[],
        );
        let fence = row.expect("a row").get(0);
        client.execute("DELETE FROM lease", &[]).expect("deletes");
        fence
    };
    assert_eq!([claim_and_delete(), claim_and_delete()], [1, 1]);
    resource
        .connect()
        .batch_execute(&recipe("shared-table-default"))
        .expect("alters");
    let (first, second) = (claim_and_delete(), claim_and_delete());
    assert!(1 < first && first < second, "{first} {second}");
}
