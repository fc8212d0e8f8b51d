//! A caller who means harm, and one who may do nothing else.

use pglease::fencing::SQLSTATE_STALE;

use crate::{Resource, check, role, state, told, try_install};

#[test]
fn execute_is_all_that_a_role_needs_and_nobody_has_it_unasked() {
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

#[test]
fn a_table_that_somebody_else_has_put_in_its_place_is_not_adopted() {
    let resource = Resource::bare();
    let mut admin = resource.connect();
    let role = role(&mut admin);
    admin
        .batch_execute(&format!("GRANT CREATE ON SCHEMA public TO {role}"))
        .expect("grants");
    resource
        .connect_as(&role)
        .batch_execute(
            "CREATE TABLE public.lease_fence (resource text PRIMARY KEY, fence bigint, since timestamptz)",
        )
        .expect("a trap");
    let error = try_install(&mut admin, "public").expect_err("somebody else's table");
    assert!(
        told(&error).starts_with("42501: lease_fence and lease_check_fence have different owners"),
        "{}",
        told(&error)
    );
}

#[test]
fn an_administrator_installs_over_what_an_ordinary_owner_has_installed() {
    let resource = Resource::bare();
    let mut admin = resource.connect();
    let role = role(&mut admin);
    admin
        .batch_execute(&format!("GRANT CREATE ON SCHEMA public TO {role}"))
        .expect("grants");
    crate::install(&mut resource.connect_as(&role), "public");
    crate::install(&mut admin, "public");
    assert_eq!(state(check(&mut resource.connect_as(&role), "r", 7)), "");
}
