//! A table that could hold leases by its names only.

use crate::database;
use crate::support::{Lease, Server, programs, shared, skip};

/// A lease table with other columns than those of `lease init`.
fn table(columns: &str, rest: &str) -> String {
    format!("CREATE TABLE public.lease ({columns}) {rest}")
}

const KEY: &str = "key text PRIMARY KEY, holder text NOT NULL";
const TIMES: &str = "acquired_at timestamptz NOT NULL, expires_at timestamptz NOT NULL";

#[test]
fn a_table_of_wrong_types_is_refused_by_column_and_type_before_anything_is_granted() {
    let collation = "CREATE COLLATION public.lax (provider = icu, locale = 'und-u-ks-level2', deterministic = false);";
    let cases = [
        (
            "",
            table(
                &format!(
                    "{KEY}, fence bigint NOT NULL, acquired_at timestamp NOT NULL, expires_at timestamp NOT NULL"
                ),
                "",
            ),
            "acquired_at is timestamp",
        ),
        (
            "",
            table(
                &format!(
                    "{KEY}, fence bigint NOT NULL, acquired_at timestamptz(0) NOT NULL, expires_at timestamptz(0) NOT NULL"
                ),
                "",
            ),
            "acquired_at is timestamp(0) with time zone, not timestamp with time zone",
        ),
        (
            "",
            table(&format!("{KEY}, fence integer NOT NULL, {TIMES}"), ""),
            "fence",
        ),
        (
            collation,
            table(
                &format!(
                    "key text COLLATE public.lax PRIMARY KEY, holder text NOT NULL, fence bigint NOT NULL, {TIMES}"
                ),
                "",
            ),
            "key has a nondeterministic collation",
        ),
        (
            collation,
            table(
                &format!(
                    "key text PRIMARY KEY, holder text COLLATE public.lax NOT NULL, fence bigint NOT NULL, {TIMES}"
                ),
                "",
            ),
            "holder has a nondeterministic collation",
        ),
        (
            "",
            table(
                &format!("{KEY}, fence bigint NOT NULL, {TIMES}"),
                "PARTITION BY HASH (key)",
            ),
            "partitioned",
        ),
    ];
    for (before, table, told) in cases {
        let database = database(shared());
        shared().psql_in(&database, &format!("{before}{table}"));
        if table.contains("PARTITION") {
            let part = "CREATE TABLE public.part PARTITION OF public.lease FOR VALUES WITH (MODULUS 1, REMAINDER 0)";
            shared().psql_in(&database, part);
        }
        let url = shared().url_for("postgres", &database);
        for verb in [&["claim", "k"][..], &["run", "k", "--", "true"], &["init"]] {
            let out = Lease::new(verb).url(&url).output().expect_code(69);
            assert!(out.stderr.contains(told), "{table}\n{out}");
            let what_to_do = ["--table", "must be a bigint"];
            assert!(what_to_do.iter().any(|w| out.stderr.contains(w)), "{out}");
            assert_eq!(out.stderr.lines().count(), 1, "{out}");
        }
        assert_eq!(
            shared().psql_in(&database, "SELECT count(*) FROM public.lease"),
            "0"
        );
    }
}

#[test]
fn milliseconds_and_a_varchar_are_enough() {
    let database = database(shared());
    let columns =
        "key varchar(1024) PRIMARY KEY, holder varchar(255) NOT NULL, fence bigint NOT NULL,
        acquired_at timestamptz(3) NOT NULL, expires_at timestamptz(3) NOT NULL";
    shared().psql_in(&database, &table(columns, ""));
    let url = shared().url_for("postgres", &database);
    for verb in [
        &["claim", "k"][..],
        &["status", "k"],
        &["init"],
        &["run", "r", "--", "true"],
    ] {
        Lease::new(verb).url(&url).output().expect_code(0);
    }
}

#[test]
fn a_row_of_bytes_without_an_encoding_does_not_hide_the_others() {
    let database = format!("ascii_{}", crate::support::serial());
    shared().psql(&format!(
        "CREATE DATABASE {database} ENCODING 'SQL_ASCII' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0"
    ));
    let url = shared().url_for("postgres", &database);
    Lease::new(["claim", "good"])
        .url(&url)
        .output()
        .expect_code(0);
    shared().psql_in(
        &database,
        r"SET client_encoding = 'SQL_ASCII'; INSERT INTO public.lease (key, holder, expires_at) VALUES (E'b\xffd', E'h\xfe', 'infinity')",
    );
    for format in ["table", "json"] {
        let out = Lease::new(["status", "--format", format])
            .url(&url)
            .output()
            .expect_code(0);
        assert!(out.stdout.contains("good"), "{out}");
        assert!(out.stdout.contains("b\u{fffd}d"), "{out}");
    }
}

#[test]
fn a_role_that_row_security_keeps_out_is_not_told_to_grant_something() {
    let database = database(shared());
    let role = format!("kept_out_{}", crate::support::serial());
    let owner = shared().url_for("postgres", &database);
    Lease::new(["init"]).url(&owner).output().expect_code(0);
    shared().psql_in(
        &database,
        &format!(
            "CREATE ROLE {role} LOGIN; GRANT SELECT, INSERT, UPDATE ON public.lease TO {role};
             ALTER TABLE public.lease ENABLE ROW LEVEL SECURITY;
             CREATE POLICY mine ON public.lease USING (true) WITH CHECK (key = 'other')"
        ),
    );
    let out = Lease::new(["claim", "k"])
        .url(shared().url_for(&role, &database))
        .output()
        .expect_code(69);
    assert!(!out.stderr.contains("GRANT"), "{out}");
    assert!(out.stderr.contains("policy"), "{out}");
}

#[test]
fn a_transaction_timeout_of_the_role_cuts_nothing_short() {
    if programs::version() < 17 {
        return skip("PostgreSQL 17");
    }
    let server = Server::start_plain();
    Lease::new(["init"]).on(&server).output().expect_code(0);
    server.psql("ALTER ROLE postgres SET transaction_timeout = '300ms'");
    server.psql(
        "SET transaction_timeout = 0;
         CREATE FUNCTION public.slow() RETURNS trigger LANGUAGE plpgsql AS
             $$ BEGIN PERFORM pg_sleep(1); RETURN NEW; END $$;
         CREATE TRIGGER slow BEFORE INSERT ON public.lease FOR EACH ROW EXECUTE FUNCTION public.slow()",
    );
    Lease::new(["claim", "k"])
        .on(&server)
        .output()
        .expect_code(0);
}
