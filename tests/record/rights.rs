//! Who may do what to the history, and whose code runs with whose rights.

use crate::{Database, Term};

/// Whether a role is refused a statement for want of a right.
#[track_caller]
fn is_refused(here: &Database, role: &str, sql: &str) -> bool {
    let sql = format!("SET ROLE {role}; {sql}");
    let done = here.server.try_psql_in(&here.name, &sql);
    done.is_err_and(|error| error.code().is_some_and(|code| code.code() == "42501"))
}

/// A role of the server that can log in and has the documented grants.
fn job_role(here: &Database, role: &str) {
    here.sql(&format!(
        "CREATE ROLE {role} LOGIN; GRANT SELECT, INSERT, UPDATE ON public.lease TO {role}"
    ));
}

#[test]
fn a_role_with_the_documented_grants_is_recorded_and_cannot_touch_the_history() {
    let here = Database::ready();
    let role = "record_job";
    job_role(&here, role);
    let call = |args: &[&str]| here.lease_as(role, args).output();
    call(&["run", "k", "--", "sh", "-c", "exit 6"]).expect_code(6);
    let out = call(&["claim", "--format", "json", "k"]).expect_code(0);
    let term = Term::read(&out.stdout);
    call(&[&["renew"], &term.named()[..]].concat()).expect_code(0);
    call(&[&["release"], &term.named()[..]].concat()).expect_code(0);
    assert_eq!(here.terms("k"), ["released code 6", "released"]);
    for sql in [
        "SELECT FROM public.lease_history",
        "INSERT INTO public.lease_history (key, fence, holder, acquired_at) VALUES ('k', 1, 'x', now())",
        "UPDATE public.lease_history SET exit_code = 0",
        "DELETE FROM public.lease_history",
        "TRUNCATE public.lease_history",
        "TRUNCATE public.lease",
        "DROP TABLE public.lease_history",
        "ALTER TABLE public.lease DISABLE TRIGGER ALL",
        "CREATE TRIGGER mine AFTER INSERT ON public.lease FOR EACH ROW EXECUTE FUNCTION public.lease_history()",
        // A table of its own, where it could let anything happen.
        "CREATE TEMP TABLE lease (LIKE public.lease);
         CREATE TRIGGER mine AFTER INSERT ON lease FOR EACH ROW EXECUTE FUNCTION public.lease_history()",
        "CREATE OR REPLACE FUNCTION public.lease_history() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN END'",
    ] {
        assert!(is_refused(&here, role, sql), "{sql}");
    }
    call(&["history"]).expect_code(69);
    here.sql(&format!("GRANT SELECT ON public.lease_history TO {role}"));
    let out = call(&["history"]).expect_code(0);
    assert_eq!(out.stdout.lines().count(), 3, "{out}");
    let forge = "UPDATE public.lease_history SET exit_code = 0";
    assert!(is_refused(&here, role, forge));
}

#[test]
fn init_revokes_rights_to_write_the_history_and_keeps_the_right_to_read_it() {
    let here = Database::ready();
    here.sql(
        "CREATE ROLE record_grantee; GRANT ALL ON public.lease_history TO record_grantee;
         GRANT UPDATE (exit_code) ON public.lease_history TO PUBLIC;
         GRANT EXECUTE ON FUNCTION public.lease_history() TO record_grantee, PUBLIC",
    );
    here.lease(&["init"]).output().expect_code(0);
    let rights = "SELECT string_agg(privilege, ' ') FROM unnest(ARRAY['SELECT', 'INSERT', 'UPDATE', 'DELETE',
                      'TRUNCATE', 'REFERENCES', 'TRIGGER']) AS privilege
                   WHERE has_table_privilege('record_grantee', 'public.lease_history', privilege)
                      OR has_any_column_privilege('record_grantee', 'public.lease_history', 'UPDATE')";
    assert_eq!(here.sql(rights), "SELECT");
    let execute =
        "SELECT has_function_privilege('record_grantee', 'public.lease_history()', 'EXECUTE')";
    assert_eq!(here.sql(execute), "f");
}

#[test]
fn what_a_role_has_first_in_its_search_path_is_not_run_by_the_function() {
    let here = Database::ready();
    job_role(&here, "record_evil");
    // Each of these would leave a trace, and would run with the owner's rights.
    here.sql(
        "CREATE SCHEMA evil AUTHORIZATION record_evil; SET ROLE record_evil;
         CREATE SEQUENCE evil.calls;
         CREATE FUNCTION evil.clock_timestamp() RETURNS timestamptz LANGUAGE sql VOLATILE AS
            'SELECT to_timestamp(nextval(''evil.calls''))';
         CREATE FUNCTION evil.octet_length(text) RETURNS int LANGUAGE sql VOLATILE AS
            'SELECT nextval(''evil.calls'')::int';
         CREATE FUNCTION evil.current_setting(text, boolean) RETURNS text LANGUAGE sql VOLATILE AS
            'SELECT nextval(''evil.calls'')::text';
         CREATE FUNCTION evil.equal(text, text) RETURNS boolean LANGUAGE sql VOLATILE AS
            'SELECT nextval(''evil.calls'') > 0';
         CREATE OPERATOR evil.= (LEFTARG = text, RIGHTARG = text, FUNCTION = evil.equal);
         CREATE OPERATOR evil.<> (LEFTARG = text, RIGHTARG = text, FUNCTION = evil.equal);
         CREATE TABLE evil.lease_history (LIKE public.lease);
         RESET ROLE;
         ALTER ROLE record_evil SET search_path = evil, pg_temp, pg_catalog",
    );
    let mut client = postgres::Client::connect(&here.url_for("record_evil"), postgres::NoTls)
        .expect("a connection");
    client
        .batch_execute(
            "CREATE TEMP TABLE lease_history (key text, fence int, holder text);
             CREATE TEMP TABLE lease (key text, fence int, holder text);
             SET plpgsql.variable_conflict = error; SET plpgsql.extra_errors = 'all';
             SET standard_conforming_strings = off; SET DateStyle = 'German'; SET IntervalStyle = 'sql_standard';
             INSERT INTO public.lease (key, holder, expires_at)
             VALUES ('k', 'mine', pg_catalog.now() OPERATOR(pg_catalog.+) pg_catalog.interval '1h');
             UPDATE public.lease SET holder = '' WHERE holder OPERATOR(pg_catalog.=) 'mine'",
        )
        .expect("it works");
    here.lease_as("record_evil", &["run", "j", "--", "false"])
        .output()
        .expect_code(1);
    assert_eq!(here.terms("k"), ["released"]);
    assert_eq!(here.terms("j"), ["released code 1"]);
    assert_eq!(here.sql("SELECT is_called FROM evil.calls"), "f");
}

#[test]
fn what_a_superuser_installs_belongs_to_the_owner_of_the_table_and_has_no_more_rights() {
    let here = Database::empty();
    here.lease(&["init", "--no-history"])
        .output()
        .expect_code(0);
    here.sql(
        "CREATE ROLE record_owner LOGIN; ALTER TABLE public.lease OWNER TO record_owner;
         GRANT CREATE ON SCHEMA public TO record_owner",
    );
    let init = |role: &str| here.lease_as(role, &["init"]).output().expect_code(0);
    let owners = "SELECT string_agg(DISTINCT owner::regrole::text, ' ') FROM (
            SELECT relowner FROM pg_class WHERE relname LIKE 'lease%'
            UNION SELECT proowner FROM pg_proc WHERE proname = 'lease_history') AS o (owner)";
    for role in ["postgres", "record_owner", "postgres"] {
        let out = init(role);
        assert!(out.stderr.contains("lease_history is ready"), "{out}");
        assert_eq!(here.sql(owners), "record_owner");
        here.lease_as("record_owner", &["run", "k", "--", "false"])
            .output()
            .expect_code(1);
    }
    assert_eq!(here.terms("k").len(), 3);
}

#[test]
fn an_init_by_another_role_says_who_can_install_the_history() {
    let here = Database::empty();
    here.lease(&["init", "--no-history"])
        .output()
        .expect_code(0);
    job_role(&here, "record_other");
    let out = here
        .lease_as("record_other", &["init"])
        .output()
        .expect_code(0);
    assert!(
        out.stderr
            .contains("only postgres, the owner of public.lease, can install its history"),
        "{out}"
    );
    let ask = ["init", "--keep-history", "30days"];
    let out = here.lease_as("record_other", &ask).output();
    assert!(out.code != Some(0), "{out}");
    assert_eq!(here.sql("SELECT to_regclass('public.lease_history')"), "");
}

#[test]
fn something_else_of_that_name_is_left_alone_and_named_and_the_leases_go_on() {
    for (makes, told) in [
        (
            "CREATE TABLE public.lease_history (id int)",
            "its columns are others",
        ),
        (
            "CREATE VIEW public.lease_history AS SELECT 1 AS key",
            "it is not an ordinary table",
        ),
        (
            "CREATE FUNCTION public.lease_history() RETURNS int LANGUAGE sql AS 'SELECT 1'",
            "the function public.lease_history() exists already, and was not installed by lease",
        ),
        (
            "CREATE ROLE record_stranger; CREATE TABLE public.lease_history (id int);
             ALTER TABLE public.lease_history OWNER TO record_stranger",
            "exists already, and belongs to record_stranger",
        ),
    ] {
        let here = Database::empty();
        here.sql(makes);
        let all =
            "SELECT string_agg(oid || relkind::text || relowner, ' ' ORDER BY oid) FROM pg_class
                    WHERE relname LIKE 'lease_history%'";
        let before = here.sql(all);
        let out = here.run("k", "exit 3").output().expect_code(3);
        assert_eq!(out.stderr.lines().count(), 1, "{out}");
        assert!(out.stderr.contains(told), "{out}");
        let out = here.run("k", "exit 3").output().expect_code(3);
        assert_eq!(out.stderr, "");
        let out = here.lease(&["init"]).output().expect_code(0);
        assert!(out.stderr.contains(told), "{out}");
        let ask = ["init", "--keep-history", "30days"];
        let out = here.lease(&ask).output();
        assert!(out.code != Some(0) && out.stderr.contains(told), "{out}");
        assert_eq!(here.sql(all), before);
    }
}

#[test]
fn a_table_whose_name_leaves_no_room_has_no_history_and_says_so_once() {
    let here = Database::empty();
    let (fits, long) = ("t".repeat(55), "t".repeat(56));
    let run = |table: &str| {
        let call = ["run", "--table", table, "k", "--", "false"];
        here.lease(&call).output().expect_code(1)
    };
    assert_eq!(run(&fits).stderr, "");
    let recorded = format!("SELECT exit_code FROM public.{fits}_history");
    assert_eq!(here.sql(&recorded), "1");
    let out = run(&long);
    assert_eq!(out.stderr.lines().count(), 1, "{out}");
    assert!(out.stderr.contains("has no history of runs: "), "{out}");
    assert!(out.stderr.contains("55 bytes"), "{out}");
    assert_eq!(run(&long).stderr, "");
    let out = here.lease(&["init", "--table", &long]).output();
    assert!(out.stderr.contains("55 bytes"), "{out}");
    assert_eq!(out.code, Some(0), "{out}");
    let out = here.lease(&["init", "--print", "--table", &long]).output();
    assert!(!out.expect_code(0).stdout.contains("_history"));
    // Who asks for a history in so many words gets an error, and nothing else.
    let longest = "t".repeat(60);
    let ask = ["init", "--keep-history", "30days", "--table", &longest];
    let out = here.lease(&ask).output().expect_code(2);
    assert!(out.stderr.contains("55 bytes"), "{out}");
    let made = format!("SELECT to_regclass('public.{longest}')");
    assert_eq!(here.sql(&made), "");
}

#[test]
fn a_term_that_has_ended_is_not_written_again_by_a_row_that_looks_like_it() {
    let here = Database::ready();
    here.run("k", "exit 3").output().expect_code(3);
    let old = here.history(
        "k",
        "format('holder = %L, fence = %s, acquired_at = %L', holder, fence, acquired_at)",
    );
    here.run("k", "exit 4").output().expect_code(4);
    job_role(&here, "record_liar");
    let said = r#"SELECT set_config('lease.run', '{"exit_code":0}', true)"#;
    here.sql(&format!(
        "SET ROLE record_liar; BEGIN;
         UPDATE public.lease SET {} WHERE key = 'k'; {said}; UPDATE public.lease SET holder = '' WHERE key = 'k'; COMMIT",
        old[0]
    ));
    assert_eq!(here.terms("k"), ["released code 3", "released code 4"]);
    // One whose row was deleted goes on if it is put back as it was.
    here.claim("k", &[]);
    here.sql(
        "CREATE TABLE public.saved AS SELECT * FROM public.lease; DELETE FROM public.lease;
         INSERT INTO public.lease SELECT * FROM public.saved",
    );
    assert_eq!(here.terms("k")[2], "running");
}
