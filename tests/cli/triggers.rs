//! What hangs on the lease table - a trigger, a policy - and fails: it is told apart from the table itself.

use crate::support::{Lease, serial, shared};
use crate::{database, term};

/// A function that does this, and a trigger on the table that calls it.
fn trigger(body: &str) -> String {
    format!(
        "CREATE OR REPLACE FUNCTION public.note() RETURNS trigger LANGUAGE plpgsql
             AS $$ BEGIN {body}; RETURN NEW; END $$;
         CREATE TRIGGER note BEFORE INSERT OR UPDATE ON public.lease
             FOR EACH ROW EXECUTE FUNCTION public.note()"
    )
}

#[test]
fn what_a_trigger_misses_is_not_taken_for_the_lease_table() {
    let server = shared();
    for (body, missing) in [
        (
            "INSERT INTO public.audit VALUES (NEW.key)",
            r#"relation "public.audit" does not exist"#,
        ),
        ("RAISE 'no notes' USING ERRCODE = '42P01'", "no notes"),
        (
            "PERFORM column_of_notes",
            r#"column "column_of_notes" does not exist"#,
        ),
        (
            "SET LOCAL ROLE pg_monitor; PERFORM FROM pg_authid",
            "permission denied for table pg_authid",
        ),
    ] {
        let database = database(server);
        let url = server.url_for("postgres", &database);
        let call = |args: &[&str]| Lease::new(args).url(&url).output();
        let held = term(
            &call(&["claim", "--format", "json", "k"])
                .expect_code(0)
                .stdout,
        );
        server.psql_in(&database, &trigger(body));
        let (holder, fence) = (held.holder.as_str(), held.fence.to_string());
        for verb in [
            &["claim", "new"][..],
            &["renew", "--holder", holder, "--fence", &fence, "k"],
            &["release", "--holder", holder, "--fence", &fence, "k"],
            &["release", "--force", "k"],
        ] {
            let told = call(verb).expect_code(69).stderr;
            assert!(
                told.contains(missing) && told.contains("note() line 1"),
                "the server's own words and where they come from: {told}"
            );
            for wrong in [
                "lease init",
                "GRANT",
                "table public.lease does not exist",
                "not a lease table",
            ] {
                assert!(!told.contains(wrong), "{wrong}: {told}");
            }
            assert_eq!(told.lines().count(), 1, "{told}");
        }
        assert_eq!(
            server.psql_in(
                &database,
                "SELECT string_agg(holder, ' ') FROM public.lease"
            ),
            held.holder
        );
    }
}

#[test]
fn a_relation_that_is_missed_at_commit_or_by_a_policy_is_not_the_lease_table_either() {
    let server = shared();
    let database = database(server);
    let url = |user: &str| server.url_for(user, &database);
    Lease::new(["init"])
        .url(url("postgres"))
        .output()
        .expect_code(0);
    let late = trigger("PERFORM FROM public.audit").replace(
        "CREATE TRIGGER note BEFORE INSERT OR UPDATE ON public.lease",
        "CREATE CONSTRAINT TRIGGER note AFTER INSERT ON public.lease DEFERRABLE INITIALLY DEFERRED",
    );
    server.psql_in(&database, &late);
    let told = Lease::new(["claim", "k"])
        .url(url("postgres"))
        .output()
        .expect_code(69)
        .stderr;
    assert!(
        told.contains(r#"cannot claim k: relation "public.audit" does not exist"#),
        "{told}"
    );
    assert!(!told.contains("lease init"), "{told}");
    let role = format!("guarded_{}", serial());
    server.psql_in(
        &database,
        &format!(
            "DROP TRIGGER note ON public.lease;
             CREATE FUNCTION public.may() RETURNS boolean LANGUAGE plpgsql
                 AS $$ BEGIN RETURN EXISTS (SELECT FROM public.audit); END $$;
             INSERT INTO public.lease (key, holder, expires_at) VALUES ('k', 'h', 'infinity');
             CREATE ROLE {role} LOGIN; GRANT SELECT, INSERT, UPDATE ON public.lease TO {role};
             ALTER TABLE public.lease ENABLE ROW LEVEL SECURITY;
             CREATE POLICY guard ON public.lease USING (public.may())"
        ),
    );
    for verb in [&["claim", "k"][..], &["status"]] {
        let told = Lease::new(verb).url(url(&role)).output().expect_code(69);
        assert!(
            told.stderr.contains(r#""public.audit" does not exist"#),
            "{told:?}"
        );
    }
}

#[test]
fn a_trigger_that_breaks_under_a_run_is_a_failed_renewal_and_no_lost_lease() {
    let server = shared();
    let database = database(server);
    let run = Lease::new(["run", "--ttl", "20s", "--heartbeat", "100ms", "k"])
        .args(["sh", "-c", "echo started; exec cat"])
        .url(server.url_for("postgres", &database))
        .open_input()
        .spawn();
    run.wait_for_line("started");
    server.psql_in(&database, &trigger("PERFORM FROM public.audit"));
    run.wait_for_line("cannot renew k: ");
    server.psql_in(&database, "DROP TRIGGER note ON public.lease");
    run.wait_for_line("k is renewed again");
    run.close_input();
    run.wait().expect_code(0);
}

#[test]
fn a_statement_that_is_cut_off_is_reported_with_the_option_that_limits_it() {
    let server = shared();
    let database = database(server);
    let url = server.url_for("postgres", &database);
    Lease::new(["init"]).url(&url).output().expect_code(0);
    // As the server says it when statement_timeout is over.
    server.psql_in(
        &database,
        &trigger("RAISE 'too long' USING ERRCODE = 'query_canceled'"),
    );
    let out = Lease::new(["claim", "-q", "--db-timeout", "4s", "k"]).url(&url);
    assert_eq!(
        out.output().expect_code(69).stderr,
        "lease: cannot claim k: too long (it took longer than --db-timeout allows, or somebody canceled it)\n"
    );
}
