//! Errors that pass, by the SQLSTATE that a pooler or a server gives them.

use crate::support::proxy::{AtCommit, Proxy};
use crate::support::{Lease, Server, key};
use crate::{claim, column};

/// XX000 is what Supavisor and pgcat send, 08P01 is PgBouncer's, and 55000 is a server's own while it does not let
/// anybody into a database.
const LOST_SERVER: [&str; 3] = ["XX000", "08P01", "55000"];

#[test]
fn a_pooler_that_has_lost_its_server_does_not_end_a_wait() {
    let server = Server::start_plain();
    for code in LOST_SERVER {
        let proxy = Proxy::to(&server);
        let key = key();
        proxy.refuse_next_logins(2, code);
        let (holder, _) = claim(&proxy.url(), &key, &["--wait", "2m"]);
        assert_eq!(column(&server, &key, "holder"), holder, "{code}");
    }
}

#[test]
fn a_release_is_tried_again_when_a_pooler_has_lost_its_server() {
    let server = Server::start_plain();
    for code in LOST_SERVER {
        let proxy = Proxy::to(&server);
        let key = key();
        let job = ["run", &key, "--", "sh", "-c", "echo ready; read end; true"];
        let run = Lease::new(job).open_input().url(proxy.url()).spawn();
        run.wait_for_line("ready");
        proxy.refuse_next_logins(2, code);
        run.close_input();
        let out = run.wait().expect_code(0);
        assert_eq!(out.stderr, "", "{code}");
        assert_eq!(column(&server, &key, "holder"), "", "{code}");
    }
}

#[test]
fn a_commit_that_a_pooler_answers_with_an_internal_error_is_asked_about_again() {
    let server = Server::start_plain();
    Lease::new(["init"]).on(&server).output().expect_code(0);
    let proxy = Proxy::to(&server);
    let key = key();
    proxy.at_next_commits(1, AtCommit::AnswerError);
    let (holder, fence) = claim(&proxy.url(), &key, &[]);
    assert_eq!(proxy.commits_disturbed(), 1);
    assert_eq!(
        column(&server, &key, "holder || fence"),
        format!("{holder}{fence}")
    );
    let began = column(
        &server,
        &key,
        "(extract(epoch FROM acquired_at) * 1000000)::bigint = fence",
    );
    assert_eq!(
        began, "t",
        "the first claim was applied, and the second one found it"
    );
}

#[test]
fn an_internal_error_of_the_server_itself_ends_a_wait_at_once() {
    let server = Server::start_plain();
    Lease::new(["init"]).on(&server).output().expect_code(0);
    server.psql(
        "CREATE FUNCTION public.broken() RETURNS trigger LANGUAGE plpgsql AS
             $$ BEGIN RAISE 'it is broken' USING ERRCODE = 'XX000'; END $$;
         CREATE TRIGGER broken BEFORE INSERT OR UPDATE ON public.lease FOR EACH ROW EXECUTE FUNCTION public.broken()",
    );
    let out = Lease::new(["claim", "--wait", "forever", &key()])
        .on(&server)
        .output()
        .expect_code(69);
    assert!(out.stderr.contains("it is broken"), "{out:?}");
    assert_eq!(out.stderr.lines().count(), 1, "it did not wait: {out:?}");
}

#[test]
fn a_database_that_does_not_accept_connections_is_waited_for() {
    let server = Server::start_plain();
    server.psql("CREATE DATABASE restored");
    server.psql("ALTER DATABASE restored ALLOW_CONNECTIONS false");
    let claim = Lease::new(["claim", "--wait", "forever", &key()])
        .url(server.url_for("postgres", "restored"))
        .spawn();
    claim.wait_for_line("restored");
    server.psql("ALTER DATABASE restored ALLOW_CONNECTIONS true");
    claim.wait().expect_code(0);
}
