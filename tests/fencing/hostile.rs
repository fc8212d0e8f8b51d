//! A caller who means harm, and one who may do nothing else.

use pglease::fencing::SQLSTATE_STALE;
use postgres::Client;

use crate::{Resource, check, once_it_waits, role, state, told, try_install};

#[test]
fn a_role_needs_only_execute_and_no_role_has_it_by_default() {
    let resource = Resource::new();
    let mut admin = resource.connect();
    let role = role(&mut admin);
    let mut client = resource.connect_as(&role);
    assert_eq!(state(check(&mut client, "r", 7)), "42501");
    admin
        .batch_execute(&format!(
            "GRANT EXECUTE ON FUNCTION public.lease_check_fence(text, bigint) TO {role}"
        ))
        .expect("grants");
    assert_eq!(state(check(&mut client, "r", 7)), "");
    assert_eq!(state(check(&mut client, "r", 6)), SQLSTATE_STALE);
    for sql in [
        "SELECT FROM public.lease_fence",
        "UPDATE public.lease_fence SET fence = 0",
        "DELETE FROM public.lease_fence",
        "TRUNCATE public.lease_fence",
        "ALTER FUNCTION public.lease_check_fence(text, bigint) SECURITY INVOKER",
    ] {
        assert_eq!(state(client.batch_execute(sql)), "42501", "{sql}");
    }
}

#[test]
fn a_search_path_with_tables_functions_operators_and_types_of_the_callers_own_changes_nothing() {
    let resource = Resource::new();
    let mut admin = resource.connect();
    let role = role(&mut admin);
    admin
        .batch_execute(&format!(
            "CREATE SCHEMA AUTHORIZATION {role};
             GRANT EXECUTE ON FUNCTION public.lease_check_fence(text, bigint) TO {role};
             GRANT TEMPORARY ON DATABASE {} TO {role}",
            resource.url.rsplit('/').next().expect("a database")
        ))
        .expect("grants");
    check(&mut admin, "r", 7).expect("passes");
    let mut client = resource.connect_as(&role);
    client
        .batch_execute(&format!(
            "CREATE FUNCTION {role}.no(bigint, bigint) RETURNS boolean LANGUAGE sql AS 'SELECT false';
             CREATE OPERATOR {role}.> (LEFTARG = bigint, RIGHTARG = bigint, FUNCTION = {role}.no);
             CREATE OPERATOR {role}.< (LEFTARG = bigint, RIGHTARG = bigint, FUNCTION = {role}.no);
             CREATE OPERATOR {role}.= (LEFTARG = bigint, RIGHTARG = bigint, FUNCTION = {role}.no);
             CREATE FUNCTION {role}.clock_timestamp() RETURNS timestamptz LANGUAGE sql AS $$SELECT 'epoch'::timestamptz$$;
             CREATE DOMAIN {role}.text AS pg_catalog.text CHECK (false);
             CREATE TEMPORARY TABLE lease_fence
                 (resource pg_catalog.text PRIMARY KEY, fence bigint, since timestamptz);
             CREATE TABLE {role}.lease_fence
                 (resource pg_catalog.text PRIMARY KEY, fence bigint, since timestamptz);
             SET search_path = pg_temp, {role}, public, pg_catalog; SET statement_timeout = '30s'"
        ))
        .expect("a hostile place");
    assert_eq!(state(check(&mut client, "r", 6)), SQLSTATE_STALE);
    assert_eq!(state(check(&mut client, "r", 8)), "");
    assert_eq!(resource.remembered("r"), Some(8));
    for table in [
        "pg_temp.lease_fence".to_owned(),
        format!("{role}.lease_fence"),
    ] {
        let rows = client
            .query(&format!("SELECT FROM {table}"), &[])
            .expect("a table");
        assert_eq!(rows.len(), 0, "{table}");
    }
}

/// A role that may create things where the check is to be installed, and a connection of its own.
fn creator(resource: &Resource) -> (String, Client) {
    let mut admin = resource.connect();
    let role = role(&mut admin);
    admin
        .batch_execute(&format!("GRANT CREATE ON SCHEMA public TO {role}"))
        .expect("grants");
    let client = resource.connect_as(&role);
    (role, client)
}

const ITS_TABLE: &str = "CREATE TABLE public.lease_fence
    (resource text PRIMARY KEY, fence bigint NOT NULL, since timestamptz NOT NULL DEFAULT clock_timestamp());";

/// Whose owner could take the check away again, or lower a fence.
const ITS_FUNCTION: &str =
    "CREATE FUNCTION public.lease_check_fence(resource text, fence bigint) RETURNS void
    LANGUAGE plpgsql AS 'BEGIN END';
    COMMENT ON FUNCTION public.lease_check_fence(text, bigint) IS 'lease fencing 1: a lie';";

#[test]
fn an_object_of_another_role_in_its_place_is_not_adopted() {
    for (trap, what) in [
        (ITS_TABLE.to_owned(), "public.lease_fence"),
        (ITS_FUNCTION.to_owned(), "lease_check_fence(text,bigint)"),
        (format!("{ITS_TABLE} {ITS_FUNCTION}"), "public.lease_fence"),
    ] {
        let resource = Resource::bare();
        let (role, mut client) = creator(&resource);
        client.batch_execute(&trap).expect("a trap");
        let error = try_install(&mut resource.connect(), "public").expect_err(what);
        let (told, theirs) = (told(&error), format!("belongs to {role}"));
        assert!(
            told.starts_with("55000: ") && told.contains(what) && told.contains(&theirs),
            "{told}"
        );
    }
}

#[test]
fn what_another_role_creates_while_the_installation_waits_is_not_adopted() {
    for trap in [
        ITS_FUNCTION,
        "CREATE FUNCTION public.lease_check_fence(text, int) RETURNS void LANGUAGE sql AS ''",
    ] {
        let resource = Resource::bare();
        let (role, mut first) = creator(&resource);
        let mut second = resource.connect_as(&role);
        first
            .batch_execute("BEGIN; CREATE TABLE public.lease_fence (x int)")
            .expect("a table");
        let install = |client: &mut Client| try_install(client, "public");
        let installed = once_it_waits(&resource, install, || {
            second.batch_execute(trap).expect("a trap");
            first.batch_execute("ROLLBACK").expect("ends");
        });
        let told = told(&installed.expect_err(trap));
        assert!(
            told.starts_with("55000: ") && told.contains(&format!("of {role} exists")),
            "{told}"
        );
        let table = resource
            .connect()
            .query_one("SELECT to_regclass('public.lease_fence') IS NULL", &[]);
        assert!(table.expect("a row").get::<_, bool>(0), "all or nothing");
    }
}

#[test]
fn what_the_snapshot_of_the_installation_does_not_show_is_not_adopted() {
    for trap in [ITS_TABLE, ITS_FUNCTION] {
        let resource = Resource::bare();
        let (role, mut first) = creator(&resource);
        let mut second = resource.connect_as(&role);
        first
            .batch_execute(
                "BEGIN; SELECT pg_advisory_xact_lock(hashtextextended('pglease fencing', 0))",
            )
            .expect("a lock");
        let install = |client: &mut Client| {
            client.batch_execute("SET default_transaction_isolation = 'repeatable read'")?;
            try_install(client, "public")
        };
        let installed = once_it_waits(&resource, install, || {
            second.batch_execute(trap).expect("a trap");
            first.batch_execute("ROLLBACK").expect("ends");
        });
        let told = told(&installed.expect_err(trap));
        assert!(
            told.starts_with("40001: ") && told.contains("after this transaction had begun"),
            "{told}"
        );
    }
}

#[test]
fn an_administrator_brings_up_to_date_what_another_role_has_installed_as_that_role() {
    let resource = Resource::bare();
    let (role, mut client) = creator(&resource);
    crate::install(&mut client, "public");
    let mut admin = resource.connect();
    let told = told(&try_install(&mut admin, "public").expect_err("another role's"));
    assert!(told.contains("install as that role"), "{told}");
    admin
        .batch_execute(&format!("SET ROLE {role}"))
        .expect("a role");
    crate::install(&mut admin, "public");
    assert_eq!(state(check(&mut client, "r", 7)), "");
}

/// As administrators set them who want no surprises with new tables.
#[test]
fn what_default_privileges_have_granted_is_taken_away_and_what_was_granted_by_hand_stays() {
    let resource = Resource::bare();
    let mut admin = resource.connect();
    let (app, other) = (role(&mut admin), role(&mut admin));
    admin
        .batch_execute(&format!(
            "ALTER DEFAULT PRIVILEGES IN SCHEMA public GRANT ALL ON TABLES TO {app}, PUBLIC;
             ALTER DEFAULT PRIVILEGES IN SCHEMA public GRANT ALL ON FUNCTIONS TO {app}"
        ))
        .expect("default privileges");
    crate::install(&mut admin, "public");
    let mut client = resource.connect_as(&app);
    assert_eq!(state(check(&mut client, "r", 7)), "42501");

    let grants = "GRANT EXECUTE ON FUNCTION public.lease_check_fence(text, bigint)";
    admin
        .batch_execute(&format!(
            "{grants} TO {app} WITH GRANT OPTION; GRANT UPDATE (fence), INSERT ON public.lease_fence TO {app}"
        ))
        .expect("grants");
    client
        .batch_execute(&format!("{grants} TO {other}"))
        .expect("grants");
    crate::install(&mut admin, "public");
    assert_eq!(state(check(&mut client, "r", 7)), "");
    assert_eq!(state(check(&mut resource.connect_as(&other), "r", 7)), "");
    for sql in [
        "UPDATE public.lease_fence SET fence = 1",
        "INSERT INTO public.lease_fence VALUES ('s', 9)",
        "DELETE FROM public.lease_fence",
        "TRUNCATE public.lease_fence",
    ] {
        assert_eq!(state(client.batch_execute(sql)), "42501", "{sql}");
    }
}
