//! A history that can't be written costs one line, and no lease.

use crate::support::table::literal;
use crate::support::{Disk, Server, skip};
use crate::{Database, Term};

const UNWRITTEN: &str = "the history of leases could not be written: ";

/// Every verb does what it does without a history, with the same exit codes. A call that could not write to the history says
/// so once, and why; the others say nothing about it.
#[track_caller]
fn every_verb_works_and_warns_once(here: &Database, why: &str) {
    let call = |args: &[&str], code: i32| {
        let out = here.lease(args).output().expect_code(code);
        let told = out.stderr.matches("history").count();
        let warned = out.stderr.matches(UNWRITTEN).count();
        assert!(warned == told.min(1), "{out}");
        assert!(warned == 0 || out.stderr.contains(why), "{why}: {out}");
        (warned, out)
    };
    let (warned, out) = call(&["run", "k", "--", "sh", "-c", "exit 3"], 3);
    assert_eq!((warned, out.stderr.lines().count()), (1, 1), "{out}");
    let (warned, out) = call(&["claim", "--format", "json", "k"], 0);
    assert_eq!(warned, 1, "{out}");
    let term = Term::read(&out.stdout);
    let (warned, out) = call(&[&["renew"], &term.named()[..]].concat(), 0);
    assert_eq!((warned, out.stderr.as_str()), (0, ""));
    assert_eq!(call(&["claim", "k"], 75).0, 0);
    assert_eq!(call(&["status", "k"], 0).0, 0);
    call(&[&["release"], &term.named()[..]].concat(), 0);
    assert_eq!(call(&["claim", "k"], 0).0, 1);
    call(&["release", "--force", "k"], 0);
    let (_, out) = call(&["run", "-q", "k", "--", "true"], 0);
    assert_eq!(out.stderr, "");
    assert_eq!(here.sql("SELECT holder FROM public.lease"), "");
}

#[test]
fn a_history_that_was_altered_or_dropped_costs_a_warning_and_no_lease() {
    let here = Database::ready();
    let table = |change: &str| here.sql(&format!("ALTER TABLE public.lease_history {change}"));
    for (breaks, mends, why) in [
        ("DROP COLUMN program", "ADD COLUMN program text", "program"),
        (
            "RENAME COLUMN fence TO number",
            "RENAME COLUMN number TO fence",
            "fence",
        ),
        (
            "ALTER COLUMN pid TYPE timestamptz USING NULL",
            "ALTER COLUMN pid TYPE int USING NULL",
            "pid",
        ),
        (
            "ADD CONSTRAINT nothing CHECK (holder IS NULL) NOT VALID",
            "DROP CONSTRAINT nothing",
            "check constraint",
        ),
        (
            "DROP CONSTRAINT lease_history_pkey",
            "ADD PRIMARY KEY (key, fence, acquired_at)",
            "ON CONFLICT",
        ),
        ("RENAME TO elsewhere", "", "does not exist"),
    ] {
        table(breaks);
        every_verb_works_and_warns_once(&here, why);
        if !mends.is_empty() {
            table(mends);
        }
    }
    here.lease(&["init"]).output().expect_code(0);
    here.run("k", "exit 3").output().expect_code(3);
    assert_eq!(here.terms("k"), ["released code 3"]);
}

#[test]
fn a_history_that_another_session_has_locked_costs_a_warning_and_no_lease() {
    let here = Database::ready();
    let mut client = here.client();
    let mut transaction = client.transaction().expect("a transaction");
    transaction
        .batch_execute("LOCK TABLE public.lease_history IN ACCESS EXCLUSIVE MODE")
        .expect("the history is locked");
    every_verb_works_and_warns_once(&here, "lock timeout");
    transaction.commit().expect("the history is unlocked");
    here.run("k", "exit 4").output().expect_code(4);
    assert_eq!(here.terms("k"), ["released code 4"]);
}

#[test]
fn a_run_whose_end_could_not_be_recorded_is_neither_deleted_nor_running() {
    let here = Database::ready();
    let running = here
        .run("k", "echo works; read line; true")
        .open_input()
        .spawn();
    running.wait_for_line("works");
    let mut client = here.client();
    let mut transaction = client.transaction().expect("a transaction");
    transaction
        .batch_execute("LOCK TABLE public.lease_history IN SHARE MODE")
        .expect("nobody may write the history");
    running.close_input();
    let out = running.wait().expect_code(0);
    assert!(out.stderr.contains(UNWRITTEN), "{out}");
    transaction.commit().expect("the history is unlocked");
    for claimed_since in [false, true] {
        if claimed_since {
            here.claim("k", &[]);
        }
        let out = here.lease(&["history", "--format", "json", "k"]).output();
        let runs: serde_json::Value = serde_json::from_str(&out.stdout).expect("JSON");
        let last = runs.as_array().and_then(|runs| runs.last()).expect("a run");
        assert_eq!(last["ended"], "unknown");
        assert!(last["took_ms"].is_null() && last["ended_at"].is_null());
        let out = here.lease(&["history", "--failed", "k"]).output();
        assert!(out.stdout.contains("end not recorded"), "{out}");
    }
}

#[test]
fn a_locked_history_leaves_the_greater_part_of_a_short_term_and_of_a_short_time_limit() {
    let here = Database::ready();
    let mut client = here.client();
    let mut transaction = client.transaction().expect("a transaction");
    transaction
        .batch_execute("LOCK TABLE public.lease_history IN ACCESS EXCLUSIVE MODE")
        .expect("the history is locked");
    // Another program has a limit of its own.
    let claim = "INSERT INTO public.lease (key, holder, expires_at)
                 VALUES ('other', 'report', clock_timestamp() + interval '1h')";
    here.sql(&format!("SET statement_timeout = '500ms'; {claim}"));
    for limit in [["--db-timeout", "600ms"], ["--ttl", "600ms"]] {
        let call = here.lease(&["claim", limit[0], limit[1], &limit[0][2..]]);
        let out = call.output().expect_code(0);
        assert!(out.stderr.contains(UNWRITTEN), "{out}");
    }
}

#[test]
fn a_history_on_a_full_disk_costs_a_warning_and_no_lease() {
    let Some(disk) = Disk::new(8) else {
        return skip("the right to mount a file system");
    };
    // A server of its own, which must be gone before its disk is.
    let server = Server::start_plain();
    let place = disk.dir("space");
    server.psql(&format!(
        "CREATE TABLESPACE small LOCATION {}",
        literal(place.to_str().expect("a plain path"))
    ));
    let here = Database::on(&server);
    here.lease(&["init"]).output().expect_code(0);
    for what in [
        "TABLE public.lease_history",
        "INDEX public.lease_history_pkey",
    ] {
        here.sql(&format!("ALTER {what} SET TABLESPACE small"));
    }
    disk.fill();
    every_verb_works_and_warns_once(&here, "No space left on device");
    disk.free();
    let out = here.run("k", "exit 4").output().expect_code(4);
    assert_eq!(out.stderr, "");
    assert_eq!(here.terms("k"), ["released code 4"]);
}

#[test]
fn a_function_that_was_dropped_costs_the_record_and_nothing_else() {
    let here = Database::ready();
    here.sql("DROP FUNCTION public.lease_history() CASCADE");
    let out = here.run("k", "exit 3").output().expect_code(3);
    assert_eq!(out.stderr, "");
    assert!(here.terms("k").is_empty());
    here.lease(&["init"]).output().expect_code(0);
    here.run("k", "exit 3").output().expect_code(3);
    assert_eq!(here.terms("k"), ["released code 3"]);
}

#[test]
fn without_plpgsql_the_first_claim_says_once_that_there_is_no_history() {
    let here = Database::empty();
    here.sql("DROP EXTENSION plpgsql");
    let out = here.run("k", "exit 3").output().expect_code(3);
    assert_eq!(out.stderr.lines().count(), 1, "{out}");
    assert!(out.stderr.contains("has no history of runs: "), "{out}");
    let out = here.run("k", "exit 3").output().expect_code(3);
    assert_eq!(out.stderr, "");
    let out = here.lease(&["init"]).output().expect_code(0);
    assert!(out.stderr.contains("plpgsql"), "{out}");
    let out = here.lease(&["init", "--keep-history", "30days"]).output();
    assert_ne!(out.code, Some(0), "{out}");
    here.sql("CREATE EXTENSION plpgsql");
    here.lease(&["init"]).output().expect_code(0);
    here.run("k", "exit 3").output().expect_code(3);
    assert_eq!(here.terms("k"), ["released code 3"]);
    here.sql("DROP EXTENSION plpgsql CASCADE");
    let out = here.run("k", "exit 3").output().expect_code(3);
    assert_eq!(out.stderr, "");
}
