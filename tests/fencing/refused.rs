//! What passes and what is refused, and what a refusal leaves.

use pglease::fencing::SQLSTATE_STALE;

use crate::{Resource, check, state};

#[test]
fn an_equal_or_larger_fence_passes_and_a_smaller_one_is_refused_by_name() {
    let resource = Resource::new();
    let mut client = resource.connect();
    for fence in [7, 7, 8, 8, 1_796_098_343_884_123] {
        assert_eq!(state(check(&mut client, "invoices", fence)), "", "{fence}");
        assert_eq!(resource.remembered("invoices"), Some(fence));
    }
    let error = check(&mut client, "invoices", 8).expect_err("a stale fence");
    let error = error.as_db_error().expect("from the server");
    assert_eq!(error.code().code(), SQLSTATE_STALE);
    assert_eq!(
        error.message(),
        "fence 8 is stale: 'invoices' has seen fence 1796098343884123"
    );
    assert!(
        error
            .hint()
            .is_some_and(|hint| hint.contains("Stop this job")),
        "{error:?}"
    );
    assert_eq!(resource.remembered("invoices"), Some(1_796_098_343_884_123));
    assert_eq!(
        state(check(&mut client, "orders", 1)),
        "",
        "each resource counts for itself"
    );
}

#[test]
fn a_name_means_the_same_whatever_collation_it_comes_with() {
    let resource = Resource::new();
    let mut client = resource.connect();
    let mut names = vec![r#"'r' COLLATE "POSIX""#, "'r'::name", "'r'::varchar(5)"];
    let icu = "SELECT FROM pg_collation WHERE collname = 'en-x-icu'";
    if !client.query(icu, &[]).expect("collations").is_empty() {
        client
            .batch_execute(
                "CREATE COLLATION caseless (provider = icu, locale = 'und-u-ks-level2', deterministic = false)",
            )
            .expect("a collation");
        names.extend([r#"'r' COLLATE "en-x-icu""#, "'r' COLLATE caseless"]);
    }
    for name in names {
        for (fence, answer) in [(8, ""), (8, ""), (7, SQLSTATE_STALE)] {
            let sql = format!("SELECT public.lease_check_fence({name}, {fence})");
            assert_eq!(state(client.batch_execute(&sql)), answer, "{name} {fence}");
        }
    }
    assert_eq!(resource.remembered("r"), Some(8));
}

#[test]
fn null_is_refused_and_not_taken_for_a_fence_that_passes() {
    let mut client = Resource::new().connect();
    for call in ["NULL, 7", "'invoices', NULL", "NULL, NULL"] {
        let sql = format!("SELECT public.lease_check_fence({call})");
        assert_eq!(state(client.batch_execute(&sql)), "22004", "{call}");
    }
}

#[test]
fn what_can_be_no_fence_or_no_name_of_a_resource_is_refused() {
    let resource = Resource::new();
    let mut client = resource.connect();
    // What many languages make of a fence that is missing.
    for fence in [0, -1, i64::MIN] {
        assert_eq!(state(check(&mut client, "r", fence)), "22023", "{fence}");
    }
    let longest = "r".repeat(1024);
    for (name, answer) in [
        (String::new(), "22023"),
        (format!("{longest}r"), "22023"),
        (longest, ""),
    ] {
        assert_eq!(
            state(check(&mut client, &name, 1)),
            answer,
            "{} bytes",
            name.len()
        );
    }
    check(&mut client, "a\u{1b}[2J\nb", 2).expect("any text will do");
    let error = check(&mut client, "a\u{1b}[2J\nb", 1).expect_err("stale");
    let message = error.as_db_error().expect("from the server").message();
    assert_eq!(message, "fence 1 is stale: 'a?[2J?b' has seen fence 2");
}

#[test]
fn a_refusal_takes_the_write_with_it_and_a_rollback_forgets_the_fence() {
    let resource = Resource::new();
    let mut client = resource.connect();
    client
        .batch_execute("CREATE TABLE public.written (n int)")
        .expect("a table");
    check(&mut client, "r", 5).expect("passes");
    let refused = client.batch_execute(
        "BEGIN; INSERT INTO public.written VALUES (1); SELECT public.lease_check_fence('r', 4); COMMIT",
    );
    assert_eq!(state(refused), SQLSTATE_STALE);
    client
        .batch_execute("ROLLBACK; BEGIN; SELECT public.lease_check_fence('r', 9); ROLLBACK")
        .expect("passes");
    assert_eq!(resource.remembered("r"), Some(5));
    assert_eq!(
        client
            .query("SELECT FROM public.written", &[])
            .expect("a table")
            .len(),
        0
    );
}
