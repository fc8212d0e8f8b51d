//! `lease init`.

use crate::database;
use crate::support::{Lease, shared};

#[test]
fn init_makes_the_table_once_and_is_harmless_afterwards() {
    let server = shared();
    let database = database(server);
    let init = || {
        Lease::new(["init"])
            .url(server.url_for("postgres", &database))
            .output()
            .expect_code(0)
    };
    assert_eq!(
        init().stderr,
        "lease: public.lease is ready\nlease: public.lease_history is ready\n"
    );
    server.psql_in(&database, "INSERT INTO public.lease (key, holder, expires_at) VALUES ('k', 'h', clock_timestamp() + '1h')");
    init();
    assert_eq!(
        server.psql_in(&database, "SELECT holder FROM public.lease"),
        "h"
    );
    let table =
        "SELECT relpersistence::text || '|' || (SELECT count(*) FROM pg_index WHERE indrelid = c.oid)
                   FROM pg_class c WHERE oid = 'public.lease'::regclass";
    assert_eq!(
        server.psql_in(&database, table),
        "p|1",
        "logged, and no index but the primary key"
    );
}

#[test]
fn print_needs_no_database_and_its_sql_makes_a_working_table() {
    let out = Lease::new(["init", "--print", "--table", "Jobs.My \"lease\""])
        .output()
        .expect_code(0);
    let server = shared();
    let database = database(server);
    server.psql_in(&database, "CREATE SCHEMA \"Jobs\"");
    server.psql_in(&database, &out.stdout);
    Lease::new(["--table", "Jobs.My \"lease\"", "claim", "k"])
        .url(server.url_for("postgres", &database))
        .output()
        .expect_code(0);
    assert_eq!(
        server.psql_in(
            &database,
            "SELECT count(*) FROM \"Jobs\".\"My \"\"lease\"\"\""
        ),
        "1"
    );
}

#[test]
fn a_missing_schema_and_a_missing_privilege_say_what_to_do() {
    let server = shared();
    let out = Lease::new(["init", "--table", "nowhere.lease"])
        .on(server)
        .output()
        .expect_code(69);
    assert!(out.stderr.contains("create the schema first"), "{out:?}");
    let database = database(server);
    let role = format!("poor_{}", crate::support::serial());
    server.psql_in(
        &database,
        &format!("CREATE ROLE {role} LOGIN; REVOKE CREATE ON SCHEMA public FROM PUBLIC"),
    );
    let url = server.url_for(&role, &database);
    let out = Lease::new(["claim", "k"])
        .url(&url)
        .output()
        .expect_code(69);
    assert!(
        out.stderr.contains("`lease init`") && out.stderr.contains("GRANT"),
        "{out:?}"
    );
    Lease::new(["init"])
        .url(server.url_for("postgres", &database))
        .output()
        .expect_code(0);
    server.psql_in(
        &database,
        &format!("GRANT SELECT, INSERT, UPDATE ON public.lease TO {role}"),
    );
    Lease::new(["claim", "k"]).url(&url).output().expect_code(0);
    // If the table exists, the right to create one is not needed.
    Lease::new(["init"]).url(&url).output().expect_code(0);
}

#[test]
fn fifty_first_claims_at_once_make_one_table_and_get_fifty_right_answers() {
    let server = shared();
    let database = database(server);
    let url = server.url_for("postgres", &database);
    let running: Vec<_> = (0..50)
        .map(|n| {
            let key = if n % 2 == 0 {
                "one".to_owned()
            } else {
                format!("key-{n}")
            };
            Lease::new(["claim", &key, "--db-timeout", "60s"])
                .url(&url)
                .spawn()
        })
        .collect();
    let mut codes: Vec<Option<i32>> = running.into_iter().map(|r| r.wait().code).collect();
    codes.sort_unstable();
    let granted = codes.iter().filter(|c| **c == Some(0)).count();
    let held = codes.iter().filter(|c| **c == Some(75)).count();
    assert_eq!((granted, held), (26, 24), "{codes:?}");
    assert_eq!(
        server.psql_in(&database, "SELECT count(*) FROM public.lease"),
        "26"
    );
}

#[test]
fn with_fencing_installs_the_check_and_print_shows_the_same() {
    let server = shared();
    let printed = Lease::new(["init", "--print", "--with-fencing"])
        .output()
        .expect_code(0);
    for by_hand in [false, true] {
        let database = database(server);
        let url = server.url_for("postgres", &database);
        if by_hand {
            server.psql_in(&database, &printed.stdout);
        } else {
            let init = || {
                Lease::new(["init", "--with-fencing"])
                    .url(&url)
                    .output()
                    .expect_code(0)
            };
            assert!(
                init()
                    .stderr
                    .contains("GRANT EXECUTE ON FUNCTION public.lease_check_fence")
            );
            init();
        }
        Lease::new(["claim", "k"]).url(&url).output().expect_code(0);
        server.psql_in(&database, "SELECT lease_check_fence('r', 8)");
        let stale = server.try_psql_in(&database, "SELECT lease_check_fence('r', 7)");
        let stale = stale.expect_err("a smaller fence is refused");
        assert_eq!(stale.code().map(|c| c.code()), Some("LF001"));
    }
}

/// A migration may run with a schema in its search path where others can create things.
#[test]
fn the_printed_sql_means_the_same_under_any_search_path() {
    let server = shared();
    let database = database(server);
    let printed = Lease::new(["init", "--print"]).output().expect_code(0);
    server.psql_in(
        &database,
        &format!(
            "CREATE SCHEMA evil;
             CREATE FUNCTION evil.times(numeric, int) RETURNS numeric LANGUAGE sql AS 'SELECT 42::numeric';
             CREATE OPERATOR evil.* (LEFTARG = numeric, RIGHTARG = int, FUNCTION = evil.times);
             CREATE FUNCTION evil.later(timestamptz, timestamptz) RETURNS boolean LANGUAGE sql AS 'SELECT false';
             CREATE OPERATOR evil.> (LEFTARG = timestamptz, RIGHTARG = timestamptz, FUNCTION = evil.later);
             CREATE FUNCTION evil.clock_timestamp() RETURNS timestamptz LANGUAGE sql AS $$SELECT 'epoch'::timestamptz$$;
             CREATE DOMAIN evil.text AS pg_catalog.text CHECK (false);
             CREATE DOMAIN evil.timestamptz AS pg_catalog.timestamptz CHECK (false);
             SET search_path = evil, pg_catalog;
             {}",
            printed.stdout
        ),
    );
    let url = server.url_for("postgres", &database);
    Lease::new(["claim", "k"]).url(&url).output().expect_code(0);
    let fence = server.psql_in(
        &database,
        "INSERT INTO public.lease (key, holder, expires_at) VALUES ('l', 'h', clock_timestamp() + '1h') RETURNING fence > 1000000000000000",
    );
    assert_eq!(fence, "t");
    let said = Lease::new(["init"])
        .url(&url)
        .output()
        .expect_code(0)
        .stderr;
    assert_eq!(
        said,
        "lease: public.lease is ready\nlease: public.lease_history is ready\n"
    );
}

#[test]
fn what_stands_in_the_way_of_the_check_is_told_by_its_name_and_the_leases_go_on() {
    let server = shared();
    let database = database(server);
    let role = format!("deploy_{}", crate::support::serial());
    server.psql_in(&database, &format!("CREATE ROLE {role} LOGIN"));
    Lease::new(["init"])
        .url(server.url_for("postgres", &database))
        .output()
        .expect_code(0);
    let init = |code: i32| {
        Lease::new(["init", "--with-fencing"])
            .url(server.url_for(&role, &database))
            .output()
            .expect_code(code)
            .stderr
    };
    let said = init(69);
    assert!(
        said.contains("cannot install public.lease_check_fence: permission denied for schema public (run it as a role"),
        "{said}"
    );
    server.psql_in(
        &database,
        &format!(
            "GRANT CREATE ON SCHEMA public TO {role}; CREATE TABLE public.lease_fence (x int)"
        ),
    );
    let said = init(69);
    assert!(
        said.contains("cannot install public.lease_check_fence: public.lease_fence exists already, and belongs to postgres (Find out who made it."),
        "{said}"
    );
    server.psql_in(&database, "DROP TABLE public.lease_fence");
    // It may not read the leases. That does not matter.
    let said = init(0);
    assert!(
        said.contains("public.lease_check_fence is ready")
            && said
                .contains("cannot check whether the default of the fence in public.lease is safe"),
        "{said}"
    );
}

#[test]
fn a_table_of_that_name_that_can_hold_no_leases_is_refused_with_the_reason() {
    let server = shared();
    let cases = [
        (
            "CREATE TABLE public.lease AS SELECT 'k'::text AS key, 'h'::text AS holder, 1::bigint AS fence, now() AS acquired_at, now() AS expires_at",
            "key is not its primary key",
        ),
        (
            "CREATE TABLE public.lease (key text PRIMARY KEY, holder text, fence integer, acquired_at timestamptz, expires_at timestamptz)",
            "fence is integer, not bigint",
        ),
        (
            "CREATE TABLE public.lease (id integer)",
            "it has no column key text",
        ),
        (
            "CREATE VIEW public.lease AS SELECT 'k'::text AS key",
            "it is not a table",
        ),
    ];
    for (sql, reason) in cases {
        let database = database(server);
        server.psql_in(&database, sql);
        let out = Lease::new(["init"])
            .url(server.url_for("postgres", &database))
            .output()
            .expect_code(69);
        assert!(out.stderr.contains(reason), "{sql}: {out:?}");
        assert_eq!(out.stderr.lines().count(), 1, "{sql}: {out:?}");
    }
}

#[test]
fn the_printed_sql_leaves_the_transaction_to_its_caller() {
    let server = shared();
    let database = database(server);
    let printed = Lease::new(["init", "--print"])
        .output()
        .expect_code(0)
        .stdout;
    let migration = format!("BEGIN; CREATE TABLE other (a int); {printed} SELECT 1/0; COMMIT");
    server
        .try_psql_in(&database, &migration)
        .expect_err("the migration fails");
    assert_eq!(
        server.psql_in(
            &database,
            "SELECT to_regclass('other') IS NULL AND to_regclass('public.lease') IS NULL"
        ),
        "t",
        "and leaves nothing behind"
    );
}

#[test]
fn a_schema_that_may_not_be_used_is_part_of_the_advice() {
    let server = shared();
    let database = database(server);
    let role = format!("outsider_{}", crate::support::serial());
    server.psql_in(
        &database,
        &format!("CREATE SCHEMA ops; CREATE ROLE {role} LOGIN"),
    );
    let url = |user: &str| server.url_for(user, &database);
    Lease::new(["init", "--table", "ops.l"])
        .url(url("postgres"))
        .output()
        .expect_code(0);
    let claim = || {
        Lease::new(["claim", "--table", "ops.l", "k"])
            .url(url(&role))
            .output()
    };
    let out = claim().expect_code(69);
    let advice = out
        .stderr
        .split_once('(')
        .expect("advice")
        .1
        .trim_end()
        .trim_end_matches(')');
    server.psql_in(&database, advice);
    claim().expect_code(0);
}

#[test]
fn init_notes_the_version_of_the_table_and_leaves_another_comment_alone() {
    let server = shared();
    let comment = "SELECT obj_description('public.lease'::regclass)";
    let database = database(server);
    let url = server.url_for("postgres", &database);
    let init = || Lease::new(["init"]).url(&url).output().expect_code(0);
    Lease::new(["claim", "k"]).url(&url).output().expect_code(0);
    let noted = server.psql_in(&database, comment);
    assert_eq!(noted, "lease table, version 1");
    // One that an older program made gets it from its owner; the init of another role does no harm.
    server.psql_in(&database, "COMMENT ON TABLE public.lease IS NULL");
    let role = format!("no_owner_{}", crate::support::serial());
    server.psql(&format!("CREATE ROLE {role} LOGIN"));
    let stranger = server.url_for(&role, &database);
    Lease::new(["init"]).url(&stranger).output().expect_code(0);
    assert_eq!(server.psql_in(&database, comment), "");
    init();
    assert_eq!(server.psql_in(&database, comment), noted);
    server.psql_in(&database, "COMMENT ON TABLE public.lease IS 'our locks'");
    init();
    assert_eq!(server.psql_in(&database, comment), "our locks");
    server.psql_in(
        &database,
        "COMMENT ON TABLE public.lease IS 'lease table, version 7'",
    );
    let told = init().stderr;
    assert!(told.contains("public.lease has version 7"), "{told}");
    assert!(told.contains("install a newer lease"), "{told}");
}
