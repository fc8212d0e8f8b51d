//! The history behind a pooler, in a restored dump, and after a failover.

use crate::Database;
use crate::support::pooler::{Mode, Pooler};
use crate::support::{Lease, Server, keeper, programs, shared, skip};

#[test]
fn through_a_pooler_in_transaction_mode_each_term_has_what_its_own_client_said() {
    if !Pooler::is_available() {
        return skip("PgBouncer");
    }
    let here = Database::ready();
    let pooler = Pooler::start(shared(), Mode::Transaction, 1);
    let url = pooler.url_for("postgres", &here.name);
    // What another client has left behind on the only connection to the server.
    let mut other = postgres::Client::connect(&url, postgres::NoTls).expect("a connection");
    other
        .batch_execute(
            r#"SET lease.run = '{"host":"x","program":"x","ended":"forced","exit_code":0}'"#,
        )
        .expect("a setting is left behind");
    let runs: Vec<_> = (1..=8)
        .map(|n| {
            let (key, script) = (format!("k{n}"), format!("exit {n}"));
            Lease::new(["run", &key, "--", "sh", "-c", &script])
                .url(&url)
                .spawn()
        })
        .collect();
    let host = hostname::get().expect("a name");
    for (n, run) in (1..).zip(runs) {
        let pid = run.pid();
        let out = run.wait().expect_code(n);
        assert_eq!(out.stderr, "");
        let key = format!("k{n}");
        assert_eq!(here.terms(&key), [format!("released code {n}")]);
        let told = format!("sh {pid} {}", host.display());
        assert_eq!(
            here.history(&key, "program || ' ' || pid || ' ' || host"),
            [told]
        );
    }
    let claim = |args: &[&str]| Lease::new(args).url(&url).output().expect_code(0);
    claim(&["claim", "k1"]);
    claim(&["release", "--force", "k1"]);
    let terms = here.terms("k1");
    let told = format!("forced by postgres on {} pid ", host.display());
    assert!(terms[1].starts_with(&told), "{terms:?}");
}

fn program(name: &str, args: &[&str]) {
    programs::run(programs::command(programs::bindir().join(name)).args(args));
}

#[test]
fn a_dump_that_is_restored_goes_on_with_its_terms_its_retention_and_its_triggers() {
    let (old, new) = (Database::empty(), Database::empty());
    let role = "record_dumped";
    old.sql(&format!("CREATE ROLE {role} LOGIN"));
    old.lease(&["init", "--keep-history", "30days"])
        .output()
        .expect_code(0);
    old.sql(&format!(
        "GRANT SELECT, INSERT, UPDATE ON public.lease TO {role}"
    ));
    old.run("k", "exit 3").output().expect_code(3);
    let term = old.claim("held", &[]);
    let dir = keeper::dir("dump");
    programs::give(&dir);
    let file = dir.join("dump.sql");
    let file = file.to_str().expect("a plain path");
    program(
        "pg_dump",
        &["--file", file, "--dbname", &old.url_for("postgres")],
    );
    let url = new.url_for("postgres");
    let restore = ["-X", "-q", "-v", "ON_ERROR_STOP=1", "-f", file, "-d", &url];
    program("psql", &restore);
    assert_eq!(new.terms("k"), ["released code 3"]);
    assert_eq!(new.terms("held"), ["running"]);
    let comment = "SELECT obj_description('public.lease_history()'::regprocedure, 'pg_proc')";
    assert_eq!(new.sql(comment), "lease history, version 1, kept 2592000 s");
    // Before any init: as the job's role, whose term goes on.
    let call = |args: &[&str]| new.lease_as(role, args).output();
    call(&[&["release", "--job-code", "4"], &term.named()[..]].concat()).expect_code(0);
    let out = call(&["run", "k", "--", "sh", "-c", "exit 5"]).expect_code(5);
    assert_eq!(out.stderr, "");
    assert_eq!(new.terms("held"), ["released code 4"]);
    assert_eq!(new.terms("k"), ["released code 3", "released code 5"]);
    assert_eq!(old.terms("held"), ["running"], "the old one is another");
    let out = new.lease(&["init"]).output().expect_code(0);
    assert!(out.stderr.contains("lease_history is ready"), "{out}");
    assert_eq!(new.sql(comment), "lease history, version 1, kept 2592000 s");
    let forge = "UPDATE public.lease_history SET exit_code = 0";
    let done = new
        .server
        .try_psql_in(&new.name, &format!("SET ROLE {role}; {forge}"));
    assert!(done.is_err());
}

#[test]
fn after_a_failover_the_terms_that_went_on_end_on_the_new_primary() {
    let primary = Server::start_plain();
    let before = Database::on(&primary);
    before.lease(&["init"]).output().expect_code(0);
    before.run("k", "exit 3").output().expect_code(3);
    let standby = primary.standby(true);
    let url = format!(
        "postgresql://postgres@127.0.0.1:{},127.0.0.1:{}/{}",
        primary.port(),
        standby.port(),
        before.name
    );
    let script = "echo works; read line; exit 5";
    let running = Lease::new(["run", "k", "--", "sh", "-c", script])
        .url(&url)
        .open_input()
        .spawn();
    running.wait_for_line("works");
    standby.catch_up_with(&primary);
    let there = Database {
        server: &standby,
        name: before.name.clone(),
    };
    let out = there.lease(&["history", "k"]).output().expect_code(0);
    assert!(out.stdout.contains("running"), "a standby shows it: {out}");
    primary.crash();
    standby.promote();
    running.close_input();
    running.wait().expect_code(5);
    assert_eq!(there.terms("k"), ["released code 3", "released code 5"]);
    there.run("k", "exit 0").output().expect_code(0);
    assert_eq!(there.terms("k")[2], "released code 0");
}
