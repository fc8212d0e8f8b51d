//! Installing, again, over an older and a newer version, from many at once, and removing.

use std::thread;

use pglease::fencing::{self, SQLSTATE_STALE};
use pglease::sql::quote;

use crate::{Resource, check, install, role, state, told, try_install};

#[test]
fn installing_again_keeps_what_is_remembered_and_who_may_call() {
    let resource = Resource::new();
    let mut client = resource.connect();
    let role = role(&mut client);
    client
        .batch_execute(&format!(
            "GRANT EXECUTE ON FUNCTION public.lease_check_fence(text, bigint) TO {role}, PUBLIC"
        ))
        .expect("grants");
    check(&mut client, "r", 7).expect("passes");
    install(&mut client, "public");
    assert_eq!(resource.remembered("r"), Some(7));
    assert_eq!(state(check(&mut resource.connect_as(&role), "r", 8)), "");
    let other = crate::role(&mut client);
    assert_eq!(
        state(check(&mut resource.connect_as(&other), "r", 8)),
        "",
        "PUBLIC still may"
    );
}

#[test]
fn an_older_version_is_brought_up_to_date_and_a_newer_one_is_left_alone() {
    let resource = Resource::new();
    let mut client = resource.connect();
    check(&mut client, "r", 7).expect("passes");
    let other_version = |client: &mut postgres::Client, version: u32| {
        client
            .batch_execute(&format!(
                "CREATE OR REPLACE FUNCTION public.lease_check_fence(resource text, fence bigint) RETURNS void
                     LANGUAGE sql AS '';
                 COMMENT ON FUNCTION public.lease_check_fence(text, bigint) IS 'lease fencing {version}: whatever'"
            ))
            .expect("another version");
    };
    other_version(&mut client, fencing::VERSION - 1);
    assert_eq!(state(check(&mut client, "r", 6)), "");
    install(&mut client, "public");
    assert_eq!(state(check(&mut client, "r", 6)), SQLSTATE_STALE);

    other_version(&mut client, fencing::VERSION + 1);
    let error = try_install(&mut client, "public").expect_err("a newer version");
    assert!(
        told(&error).starts_with("55000: a newer lease_check_fence is installed"),
        "{}",
        told(&error)
    );
    assert_eq!(
        state(check(&mut client, "r", 6)),
        "",
        "the newer one is still there"
    );
}

/// What is there is never called ready only because of its name.
#[test]
fn what_is_not_its_own_table_or_function_is_left_alone() {
    let whole = "CREATE TABLE lease_fence
        (resource text PRIMARY KEY, fence bigint NOT NULL, since timestamptz NOT NULL DEFAULT now());";
    let with = |more: &str| format!("{whole} {more}");
    let (columns, theirs) = ("its columns are not", "was not installed by lease");
    for (other, why) in [
        ("CREATE TABLE lease_fence (x int)".to_owned(), columns),
        (whole.replace("text", "varchar(5)"), columns),
        (whole.replace("bigint NOT NULL", "bigint"), columns),
        (with("ALTER TABLE lease_fence ADD more text NOT NULL"), columns),
        (
            whole.replace("text PRIMARY KEY", "text UNIQUE"),
            columns,
        ),
        (whole.replace(" DEFAULT now()", ""), columns),
        (
            with("ALTER TABLE lease_fence DROP CONSTRAINT lease_fence_pkey"),
            "resource is not its primary key",
        ),
        (
            whole.replace("TABLE", "UNLOGGED TABLE"),
            "it is unlogged, and so empty after a crash",
        ),
        (
            with("CREATE RULE r AS ON INSERT TO lease_fence DO INSTEAD NOTHING"),
            "it has rules",
        ),
        (
            with("CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN NEW.fence := 1; RETURN NEW; END';
                  CREATE TRIGGER t BEFORE INSERT ON lease_fence FOR EACH ROW EXECUTE FUNCTION f()"),
            "it has triggers",
        ),
        (
            with("ALTER TABLE lease_fence ENABLE ROW LEVEL SECURITY"),
            "it has row level security",
        ),
        (
            with("CREATE TABLE child () INHERITS (lease_fence)"),
            "it has a parent or children",
        ),
        (
            "CREATE VIEW lease_fence AS SELECT 'r'::text AS resource, 1::bigint AS fence, now() AS since".to_owned(),
            "it is not an ordinary table",
        ),
        ("CREATE SEQUENCE lease_fence".to_owned(), "it is not an ordinary table"),
        (
            "CREATE FUNCTION lease_check_fence(text, bigint) RETURNS void LANGUAGE sql AS ''".to_owned(),
            theirs,
        ),
        (
            "CREATE FUNCTION lease_check_fence(a text, b bigint) RETURNS int LANGUAGE sql AS 'SELECT 1'".to_owned(),
            theirs,
        ),
        // PostgreSQL takes it for a call with a small constant.
        (
            "CREATE FUNCTION lease_check_fence(text, int) RETURNS void LANGUAGE sql AS ''".to_owned(),
            "a call could mean it",
        ),
    ] {
        let resource = Resource::bare();
        let mut client = resource.connect();
        client.batch_execute(&other).expect(&other);
        let told = told(&try_install(&mut client, "public").expect_err(&other));
        assert!(
            told.starts_with("55000: ") && told.contains(" exists") && told.contains(why),
            "{other}: {told}"
        );
    }
}

#[test]
fn installing_means_the_same_under_any_setting() {
    let ddl = fencing::ddl(&quote("public"));
    for setting in [
        "quote_all_identifiers = on",
        "standard_conforming_strings = off",
        "check_function_bodies = off",
        "plpgsql.variable_conflict = use_variable",
        "plpgsql.extra_errors = 'all'",
        "default_transaction_isolation = serializable",
        "default_table_access_method = heap",
        "default_with_oids = off",
        "DateStyle = 'German'",
    ] {
        let resource = Resource::bare();
        let mut client = resource.connect();
        client
            .batch_execute(&format!("LOAD 'plpgsql'; SET {setting}; {ddl} {ddl}"))
            .unwrap_or_else(|e| panic!("{setting}: {}", told(&e)));
        assert_eq!(state(check(&mut client, "r", 2)), "", "{setting}");
        assert_eq!(
            state(check(&mut client, "r", 1)),
            SQLSTATE_STALE,
            "{setting}"
        );
    }
}

/// As `psql` does it with a printed script, and a migration tool in a transaction of its own.
#[test]
fn it_is_all_or_nothing_without_a_transaction_and_leaves_a_migration_its_search_path() {
    let resource = Resource::new();
    let mut client = resource.connect();
    let ddl = fencing::ddl(&quote("public"));
    client
        .batch_execute(&format!(
            "CREATE OR REPLACE FUNCTION public.lease_check_fence(resource text, fence bigint) RETURNS void
                 LANGUAGE sql AS '';
             COMMENT ON FUNCTION public.lease_check_fence(text, bigint) IS 'lease fencing {}: newer'",
            fencing::VERSION + 1
        ))
        .expect("another version");
    client.batch_execute(&ddl).expect_err("a newer version");
    let remark =
        "SELECT obj_description('public.lease_check_fence(text,bigint)'::regprocedure, 'pg_proc')";
    let remark: String = client.query_one(remark, &[]).expect("one").get(0);
    assert!(remark.ends_with("newer"), "{remark}");
    check(&mut client, "r", 2).expect("the newer one, which checks nothing");
    check(&mut client, "r", 1).expect("the newer one, which checks nothing");

    let mut client = Resource::bare().connect();
    client
        .batch_execute(&format!(
            "CREATE SCHEMA app; CREATE TABLE app.schema_migrations (version int); SET search_path = app;
             BEGIN; {ddl} INSERT INTO schema_migrations VALUES (42); COMMIT"
        ))
        .expect("a migration");
    assert_eq!(state(check(&mut client, "r", 2)), "");
}

#[test]
fn many_that_install_at_once_do_not_fail() {
    let resource = Resource::bare();
    thread::scope(|scope| {
        for _ in 0..10 {
            scope.spawn(|| install(&mut resource.connect(), "public"));
        }
    });
    assert_eq!(state(check(&mut resource.connect(), "r", 1)), "");
}

#[test]
fn a_schema_of_any_name_will_do() {
    let mut client = Resource::bare().connect();
    for schema in ["jobs", "My \"Jobs\"", "it's", "a$lease$b", "{s}", "select"] {
        client
            .batch_execute(&format!("CREATE SCHEMA {}", quote(schema)))
            .expect("a schema");
        install(&mut client, schema);
        install(&mut client, schema);
        let call = format!("SELECT {}.lease_check_fence('r', $1)", quote(schema));
        assert_eq!(client.execute(&call, &[&2_i64]).expect("passes"), 1);
        assert_eq!(
            state(client.execute(&call, &[&1_i64]).map(|_| ())),
            SQLSTATE_STALE,
            "{schema}"
        );
        client
            .batch_execute(&fencing::drop_ddl(&quote(schema)))
            .expect("removed");
        client
            .batch_execute(&format!("DROP SCHEMA {}", quote(schema)))
            .expect("nothing is left in it");
    }
}

#[test]
fn removing_leaves_nothing_and_can_be_repeated() {
    let mut client = Resource::new().connect();
    for _ in 0..2 {
        client
            .batch_execute(&fencing::drop_ddl("\"public\""))
            .expect("removed");
    }
    let left = "SELECT FROM pg_depend AS d JOIN pg_namespace AS n ON d.refobjid = n.oid WHERE n.nspname = 'public'";
    assert_eq!(client.query(left, &[]).expect("the catalog").len(), 0);
}
