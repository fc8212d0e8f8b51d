//! A table that another program uses too.

use crate::support::{Lease, shared};
use crate::{Term, database, term};

/// The DDL and the statements of a program that uses the table in its own way: a counter from 1, release by DELETE.
mod reports_own {
    pub(super) const DDL: &str = "CREATE TABLE public.lease (
        key TEXT PRIMARY KEY, holder TEXT NOT NULL, fence BIGINT NOT NULL DEFAULT 1,
        acquired_at TIMESTAMPTZ NOT NULL DEFAULT clock_timestamp(), expires_at TIMESTAMPTZ NOT NULL)";
    pub(super) const CLAIM: &str = "INSERT INTO public.lease AS l (key, holder, expires_at)
        VALUES ('k', 'report', clock_timestamp() + interval '60s')
        ON CONFLICT (key) DO UPDATE SET holder = EXCLUDED.holder, fence = l.fence + 1,
            acquired_at = clock_timestamp(), expires_at = EXCLUDED.expires_at
        WHERE l.expires_at <= clock_timestamp() RETURNING fence";
    pub(super) const RENEW: &str =
        "UPDATE public.lease SET expires_at = clock_timestamp() + interval '60s'
        WHERE key = 'k' AND holder = 'report' AND expires_at > clock_timestamp() RETURNING fence";
    pub(super) const RELEASE: &str =
        "DELETE FROM public.lease WHERE key = 'k' AND holder = 'report' RETURNING fence";
}

fn shares_the_table_with_another_program(database: &str) {
    let server = shared();
    let url = server.url_for("postgres", database);
    let sql = |text: &str| server.psql_in(database, text);
    let claim = || {
        Lease::new(["claim", "--format", "json", "k"])
            .url(&url)
            .output()
    };
    let mine = term(&claim().expect_code(0).stdout);
    assert_eq!(
        sql(reports_own::CLAIM),
        "",
        "the other program sees that it is held"
    );
    let release = |t: &Term| {
        Lease::new([
            "release",
            "--holder",
            &t.holder,
            "--fence",
            &t.fence.to_string(),
            "k",
        ])
        .url(&url)
        .output()
        .expect_code(0);
    };
    release(&mine);
    assert_eq!(
        sql(reports_own::CLAIM),
        (mine.fence + 1).to_string(),
        "and takes it once it is released"
    );
    assert_eq!(sql(reports_own::RENEW), (mine.fence + 1).to_string());
    assert!(claim().expect_code(75).stderr.contains("held by report"));
    assert_eq!(sql(reports_own::RELEASE), (mine.fence + 1).to_string());
    let next = term(&claim().expect_code(0).stdout);
    assert!(next.fence > mine.fence + 1, "although the row was deleted");
    release(&next);
}

#[test]
fn the_statements_of_another_program_work_on_our_table() {
    let database = database(shared());
    Lease::new(["init"])
        .url(shared().url_for("postgres", &database))
        .output()
        .expect_code(0);
    shares_the_table_with_another_program(&database);
}

#[test]
fn ours_work_on_a_table_made_by_another_program() {
    let database = database(shared());
    shared().psql_in(&database, reports_own::DDL);
    shares_the_table_with_another_program(&database);
}

#[test]
fn a_default_that_lets_fences_start_again_is_pointed_out_and_can_be_mended() {
    let database = database(shared());
    let url = shared().url_for("postgres", &database);
    shared().psql_in(&database, reports_own::DDL);
    let call = |verb: &str| Lease::new([verb]).url(&url).output().expect_code(0).stderr;
    for verb in ["status", "init"] {
        assert!(call(verb).contains("ALTER TABLE"), "{verb} points it out");
    }
    let advice = call("status");
    let statement = advice
        .lines()
        .find_map(|line| line.split_once("prevents that with: "))
        .and_then(|(_, rest)| rest.strip_suffix(')'))
        .expect("a statement");
    shared().psql_in(&database, statement);
    for verb in ["status", "init"] {
        assert!(!call(verb).contains("ALTER TABLE"), "{verb} is content");
    }
    shared().psql_in(&database, reports_own::CLAIM);
    assert_eq!(
        shared().psql_in(
            &database,
            "SELECT fence > 1000000000000000 FROM public.lease"
        ),
        "t"
    );
}

#[test]
fn every_default_but_the_clock_is_pointed_out_and_a_view_is_not() {
    let server = shared();
    let defaults = [
        "DEFAULT 1",
        "",
        "DEFAULT nextval('public.fences')",
        "DEFAULT (extract(epoch FROM now()) * 1000000)::bigint",
    ];
    for default in defaults {
        let database = database(server);
        let ddl = reports_own::DDL.replace("DEFAULT 1", default);
        server.psql_in(&database, "CREATE SEQUENCE public.fences");
        server.psql_in(&database, &ddl);
        server.psql_in(&database, "CREATE VIEW public.seen AS TABLE public.lease");
        let status = |table: &str| {
            Lease::new(["status", "--table", table])
                .url(server.url_for("postgres", &database))
                .output()
                .expect_code(0)
                .stderr
        };
        assert!(
            status("lease").contains(
                "fences in public.lease can go back if another program deletes a row and inserts it again "
            ),
            "{default:?}"
        );
        assert_eq!(status("seen"), "lease: no leases\n", "{default:?}");
    }
}
