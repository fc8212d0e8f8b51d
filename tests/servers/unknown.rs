//! Answers that are lost after the server has committed.

use std::time::Duration;

use crate::support::proxy::{AtCommit, Proxy};
use crate::support::{Lease, Server, key, until};
use crate::{claim, column};

#[test]
fn a_claim_whose_answer_is_cut_off_is_asked_again_and_keeps_its_fence() {
    let server = Server::start_plain();
    Lease::new(["init"]).on(&server).output().expect_code(0);
    for what in [AtCommit::CutAnswer, AtCommit::CutRequest] {
        let proxy = Proxy::to(&server);
        let key = key();
        proxy.at_next_commits(1, what);
        let (holder, fence) = claim(&proxy.url(), &key, &[]);
        assert_eq!(proxy.commits_disturbed(), 1);
        assert_eq!(column(&server, &key, "holder"), holder);
        assert_eq!(column(&server, &key, "fence"), fence.to_string());
        if what == AtCommit::CutAnswer {
            // The term began with the first, committed, claim.
            assert_eq!(
                column(
                    &server,
                    &key,
                    "(extract(epoch FROM acquired_at) * 1000000)::bigint = fence"
                ),
                "t"
            );
        }
    }
}

#[test]
fn a_renewal_and_a_release_whose_answer_is_cut_off_are_settled() {
    let server = Server::start_plain();
    let proxy = Proxy::to(&server);
    let key = key();
    let (holder, fence) = claim(&server.url(), &key, &[]);
    let fence = fence.to_string();
    for verb in ["renew", "release"] {
        proxy.at_next_commits(1, AtCommit::CutAnswer);
        Lease::new([verb, "--holder", &holder, "--fence", &fence, &key])
            .url(proxy.url())
            .output()
            .expect_code(0);
    }
    assert_eq!(proxy.commits_disturbed(), 2);
    assert_eq!(column(&server, &key, "holder"), "");
}

#[test]
fn an_answer_that_never_comes_is_reported_as_unknown_and_as_nothing_else() {
    let server = Server::start_plain();
    Lease::new(["init"]).on(&server).output().expect_code(0);
    let proxy = Proxy::to(&server);
    let key = key();
    proxy.at_next_commits(100, AtCommit::HoldAnswer);
    let out = Lease::new(["claim", "--holder", "me", "--db-timeout", "1s", &key])
        .url(proxy.url())
        .output()
        .expect_code(69);
    assert!(
        out.stderr.contains("unknown")
            && out
                .stderr
                .contains("me has it for at most 1m, or for as long as before"),
        "{out:?}"
    );
    assert_eq!(
        column(&server, &key, "holder"),
        "me",
        "it was applied in fact"
    );
    // Asking again as the same holder settles it.
    let before = column(&server, &key, "fence");
    let (_, fence) = claim(&server.url(), &key, &["--holder", "me"]);
    assert_eq!(fence.to_string(), before);
    for verb in ["renew", "release"] {
        let out = Lease::new([
            verb,
            "--holder",
            "me",
            "--fence",
            &before,
            "--db-timeout",
            "1s",
            &key,
        ])
        .url(proxy.url())
        .output()
        .expect_code(69);
        assert!(
            out.stderr.contains("may or may not have happened"),
            "{out:?}"
        );
    }
    let out = Lease::new(["release", "--force", "--db-timeout", "1s", &key])
        .url(proxy.url())
        .output();
    assert_ne!(out.code, Some(76), "{out:?}");
}

#[test]
fn a_wait_that_is_interrupted_in_doubt_says_so_and_does_not_say_that_nothing_was_claimed() {
    let server = Server::start_plain();
    Lease::new(["init"]).on(&server).output().expect_code(0);
    let proxy = Proxy::to(&server);
    let key = key();
    proxy.at_next_commits(1, AtCommit::HoldAnswer);
    let claim = ["claim", "-v", "--wait", "forever", "--holder", "me"];
    let claim = Lease::new(claim)
        .args(["--db-timeout", "1s", &key])
        .url(proxy.url())
        .spawn();
    until("it is claimed, and nobody hears of it", || {
        column(&server, &key, "holder") == "me"
    });
    proxy.stall();
    until("it has asked again, in vain", || {
        claim.stderr().matches("claim: failed after").count() > 1
    });
    claim.signal(nix::sys::signal::Signal::SIGINT);
    let out = claim.wait().expect_code(69);
    let doubt = format!("it is unknown whether {key} was claimed: if it was, me has it for");
    assert!(out.stderr.contains(&doubt), "{out:?}");
}

#[test]
fn what_is_unknown_stays_so_when_it_is_refused_the_second_time() {
    let server = Server::start_plain();
    let proxy = Proxy::to(&server);
    let key = key();
    let (_, fence) = claim(&server.url(), &key, &["--holder", "me"]);
    // The first renewal makes more of it than the second may find.
    server.psql(
        "CREATE FUNCTION public.once() RETURNS trigger LANGUAGE plpgsql AS
             $$ BEGIN RAISE 'only once'; END $$;
         CREATE TRIGGER once BEFORE UPDATE ON public.lease FOR EACH ROW
             WHEN (OLD.expires_at > OLD.acquired_at + interval '1h') EXECUTE FUNCTION public.once()",
    );
    proxy.at_next_commits(1, AtCommit::CutAnswer);
    let fence = fence.to_string();
    let out = Lease::new([
        "renew", "--ttl", "2h", "--holder", "me", "--fence", &fence, &key,
    ])
    .url(proxy.url())
    .output()
    .expect_code(69);
    assert!(
        out.stderr.contains("only once") && out.stderr.contains("may or may not have happened"),
        "{out:?}"
    );
}

#[test]
fn a_release_whose_answer_is_cut_off_is_done_also_when_the_lease_was_taken_at_once() {
    let server = Server::start_plain();
    let proxy = Proxy::to(&server);
    let key = key();
    let (_, fence) = claim(&server.url(), &key, &["--holder", "me"]);
    server.psql(
        "CREATE FUNCTION public.take() RETURNS trigger LANGUAGE plpgsql AS
             $$ BEGIN NEW.holder := 'other'; NEW.fence := OLD.fence + 1;
                NEW.expires_at := clock_timestamp() + interval '1h'; RETURN NEW; END $$;
         CREATE TRIGGER take BEFORE UPDATE ON public.lease FOR EACH ROW
             WHEN (NEW.holder = '') EXECUTE FUNCTION public.take()",
    );
    proxy.at_next_commits(1, AtCommit::CutAnswer);
    let out = Lease::new([
        "release",
        "--holder",
        "me",
        "--fence",
        &fence.to_string(),
        &key,
    ])
    .url(proxy.url())
    .output()
    .expect_code(0);
    assert_eq!(out.stderr, "");
    assert_eq!(column(&server, &key, "holder"), "other");
}

#[test]
fn a_forced_release_whose_answer_is_cut_off_is_not_asked_again() {
    let server = Server::start_plain();
    let proxy = Proxy::to(&server);
    let key = key();
    claim(&server.url(), &key, &["--holder", "me"]);
    proxy.at_next_commits(1, AtCommit::CutAnswer);
    let out = Lease::new(["release", "--force", &key])
        .url(proxy.url())
        .output()
        .expect_code(69);
    // A second try would find nobody, and could not say who was evicted.
    assert!(
        out.stderr
            .contains("may or may not have happened: `lease status` shows it"),
        "{out:?}"
    );
    assert_eq!(column(&server, &key, "holder"), "");
}

#[test]
fn a_heartbeat_whose_answer_is_cut_off_keeps_the_job_and_its_fence() {
    let server = Server::start_plain();
    let proxy = Proxy::to(&server);
    let key = key();
    let stop = crate::support::keeper::dir("stop").join("now");
    let job = format!("until test -e '{}'; do sleep 0.1; done", stop.display());
    let run = Lease::new([
        "run",
        "--ttl",
        "60s",
        "--heartbeat",
        "2s",
        &key,
        "--",
        "sh",
        "-c",
        &job,
    ])
    .url(proxy.url())
    .spawn();
    until("the lease is claimed", || {
        server
            .try_psql_in("postgres", "SELECT holder FROM public.lease")
            .is_ok_and(|h| !h.is_empty())
    });
    let before = column(&server, &key, "holder || fence");
    for count in 1..=5 {
        proxy.at_next_commits(1, AtCommit::CutAnswer);
        until("a heartbeat is disturbed", || {
            proxy.commits_disturbed() == count
        });
        let disturbed = column(&server, &key, "expires_at");
        until("the same heartbeat has asked again", || {
            column(&server, &key, "expires_at") != disturbed
        });
    }
    assert_eq!(column(&server, &key, "holder || fence"), before);
    std::fs::write(&stop, "").expect("a file");
    let out = run.wait_within(Duration::from_secs(60)).expect_code(0);
    assert_eq!(out.stderr, "");
    assert_eq!(column(&server, &key, "holder"), "");
}

#[test]
fn a_release_whose_answer_is_cut_off_is_no_loss_when_somebody_else_was_waiting() {
    let server = Server::start_plain();
    let proxy = Proxy::to(&server);
    let key = key();
    claim(&server.url(), "another", &[]);
    let first = Lease::new(["run", &key, "--", "sleep", "1"])
        .url(proxy.url())
        .spawn();
    until("the first one runs", || {
        !column(&server, &key, "holder").is_empty()
    });
    let second = Lease::new(["claim", "--wait", "1m", &key])
        .on(&server)
        .spawn();
    second.wait_for_line("waiting: ");
    proxy.at_next_commits(1, AtCommit::CutAnswer);
    let out = first.wait().expect_code(0);
    assert_eq!(out.stderr, "");
    second.wait().expect_code(0);
}

#[test]
fn a_run_whose_release_is_cut_off_ends_as_its_job_does() {
    let server = Server::start_plain();
    let proxy = Proxy::to(&server);
    claim(&server.url(), "another", &[]);
    for what in [AtCommit::CutAnswer, AtCommit::CutRequest] {
        let key = key();
        let job = ["run", &key, "--", "sh", "-c", "echo ready; read end; true"];
        let run = Lease::new(job).open_input().url(proxy.url()).spawn();
        run.wait_for_line("ready");
        let before = proxy.commits_disturbed();
        proxy.at_next_commits(1, what);
        run.close_input();
        let out = run.wait().expect_code(0);
        assert_eq!(out.stderr, "");
        assert_eq!(proxy.commits_disturbed(), before + 1);
        assert_eq!(column(&server, &key, "holder"), "");
    }
}
