//! What other programs and operators do to a lease, and what the history says about it.

use crate::support::key;
use crate::{Database, here};

#[test]
fn a_row_that_is_deleted_or_given_another_key_ends_its_term_by_whoever_did_it() {
    let (here, deleted, moved) = (here(), key(), key());
    here.claim(&deleted, &[]);
    here.claim(&moved, &[]);
    here.sql_for(&deleted, "DELETE FROM public.lease WHERE key = KEY");
    here.sql_for(
        &moved,
        "UPDATE public.lease SET key = KEY || '-b' WHERE key = KEY",
    );
    assert_eq!(here.terms(&deleted), ["deleted by postgres"]);
    assert_eq!(here.terms(&moved), ["deleted by postgres"]);
    assert_eq!(here.terms(&format!("{moved}-b")), ["running"]);
}

#[test]
fn truncate_ends_the_terms_that_go_on_and_leaves_the_others_as_they_were() {
    let here = Database::ready();
    here.claim("held", &[]);
    here.expired("expired");
    here.run("free", "exit 4").output().expect_code(4);
    here.sql("TRUNCATE public.lease");
    assert_eq!(here.terms("held"), ["deleted by postgres"]);
    assert_eq!(here.terms("expired"), ["expired"]);
    assert_eq!(here.terms("free"), ["released code 4"]);
    here.run("held", "exit 0").output().expect_code(0);
    assert_eq!(
        here.terms("held"),
        ["deleted by postgres", "released code 0"]
    );
}

#[test]
fn a_change_that_is_rolled_back_has_not_happened() {
    let (here, key) = (here(), key());
    let claim = "INSERT INTO public.lease (key, holder, expires_at)
                 VALUES (KEY, 'other', clock_timestamp() + interval '1h')";
    here.sql_for(&key, &format!("BEGIN; {claim}; ROLLBACK"));
    assert!(here.terms(&key).is_empty());
    here.sql_for(&key, claim);
    here.sql_for(
        &key,
        "BEGIN; DELETE FROM public.lease WHERE key = KEY; ROLLBACK",
    );
    assert_eq!(here.terms(&key), ["running"]);
}

#[test]
fn the_statements_of_another_program_are_recorded_beside_ours() {
    let here = Database::empty();
    here.sql(
        "CREATE TABLE public.lease (
            key TEXT PRIMARY KEY, holder TEXT NOT NULL, fence BIGINT NOT NULL DEFAULT 1,
            acquired_at TIMESTAMPTZ NOT NULL DEFAULT clock_timestamp(), expires_at TIMESTAMPTZ NOT NULL)",
    );
    here.lease(&["init"]).output().expect_code(0);
    let claim = || {
        let sql = "INSERT INTO public.lease AS l (key, holder, expires_at)
            VALUES (KEY, 'report', clock_timestamp() + interval '60s')
            ON CONFLICT (key) DO UPDATE SET holder = EXCLUDED.holder, fence = l.fence + 1,
                acquired_at = clock_timestamp(), expires_at = EXCLUDED.expires_at
            WHERE l.expires_at <= clock_timestamp() RETURNING fence";
        here.sql_for("k", sql)
    };
    let renew = "UPDATE public.lease SET expires_at = clock_timestamp() + interval '60s'
        WHERE key = KEY AND holder = 'report' AND expires_at > clock_timestamp() RETURNING fence";
    let release = "DELETE FROM public.lease WHERE key = KEY AND holder = 'report' RETURNING fence";
    // Its counter begins at 1 again whenever its row was deleted, and each of these is still a term.
    for _ in 0..2 {
        assert_eq!(claim(), "1");
        assert_eq!(here.sql_for("k", renew), "1");
        assert_eq!(here.sql_for("k", release), "1");
    }
    here.run("k", "exit 3").output().expect_code(3);
    assert_ne!(claim(), "");
    here.expire("k");
    assert_ne!(claim(), "", "the same holder once more");
    here.lease(&["release", "--force", "k"])
        .output()
        .expect_code(0);
    let terms = here.terms("k");
    assert_eq!(
        terms[..5],
        [
            "deleted by postgres",
            "deleted by postgres",
            "released code 3",
            "expired",
            terms[4].as_str()
        ]
    );
    assert!(terms[4].starts_with("forced by postgres on "), "{terms:?}");
    assert_eq!(
        here.history("k", "holder || fence")[..2],
        ["report1", "report1"]
    );
}

#[test]
fn a_lease_that_never_expires_is_a_term_like_any_other() {
    let (here, key) = (here(), key());
    here.sql_for(
        &key,
        "INSERT INTO public.lease (key, holder, expires_at) VALUES (KEY, 'report', 'infinity')",
    );
    assert_eq!(here.terms(&key), ["running"]);
    here.sql_for(&key, "UPDATE public.lease SET holder = '' WHERE key = KEY");
    assert_eq!(here.terms(&key), ["released"]);
}

#[test]
fn a_holder_that_a_plain_statement_has_emptied_was_evicted_by_its_role() {
    let here = Database::ready();
    here.sql("ALTER TABLE public.lease ALTER holder DROP NOT NULL");
    here.sql("CREATE ROLE hand LOGIN; GRANT SELECT, UPDATE ON public.lease TO hand");
    for (key, holder) in [("empty", "''"), ("null", "NULL")] {
        here.claim(key, &[]);
        let expired = format!("{key}-expired");
        let gone = here.expired(&expired);
        let mut hand = postgres::Client::connect(&here.url_for("hand"), postgres::NoTls)
            .expect("a connection");
        let emptied = format!("UPDATE public.lease SET holder = {holder} WHERE key LIKE '{key}%'");
        hand.batch_execute(&emptied).expect("it is emptied");
        assert_eq!(here.terms(key), ["forced by hand"]);
        assert_eq!(here.terms(&expired), ["expired"]);
        assert_eq!(here.history(&expired, "ended_at"), [gone]);
        let out = here.lease(&["history", key]).output().expect_code(0);
        assert!(out.stdout.contains("evicted by hand"), "{out}");
    }
    let term = here.claim("released", &[]);
    here.sql("UPDATE public.lease SET holder = '' WHERE key = 'released'");
    let out = here
        .lease(&["release"])
        .args(term.named())
        .output()
        .expect_code(76);
    assert!(out.stderr.contains("evicted by role postgres"), "{out}");
}
