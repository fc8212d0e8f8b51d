//! Installing, again, over an older and a newer version, from many at once, and removing.

use std::thread;

use pglease::fencing;
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
    assert_eq!(state(check(&mut client, "r", 6)), fencing::SQLSTATE_STALE);

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
            fencing::SQLSTATE_STALE,
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
