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
                .contains("me holds it for at most 1m, or until its old expiry"),
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
    let renew = [
        "renew",
        "--holder",
        "me",
        "--fence",
        &before,
        "--db-timeout",
        "1s",
        &key,
    ];
    let out = Lease::new(renew).url(proxy.url()).output().expect_code(69);
    let doubt = format!("lease: it is unknown whether {key} was renewed: ");
    assert!(out.stderr.starts_with(&doubt), "{out:?}");
}

#[test]
fn a_release_whose_answer_never_comes_is_settled_while_there_is_time() {
    let server = Server::start_plain();
    let proxy = Proxy::to(&server);
    let key = key();
    let (_, fence) = claim(&server.url(), &key, &["--holder", "me"]);
    let before = proxy.commits_disturbed();
    proxy.at_next_commits(100, AtCommit::HoldAnswer);
    let fence = fence.to_string();
    let out = Lease::new([
        "release",
        "--holder",
        "me",
        "--fence",
        &fence,
        "--db-timeout",
        "20s",
        &key,
    ])
    .url(proxy.url())
    .output()
    .expect_code(0);
    assert_eq!(out.stderr, "");
    assert!(proxy.commits_disturbed() > before);
    assert_eq!(column(&server, &key, "holder"), "");
}

#[test]
fn a_release_that_is_not_settled_is_reported_as_unknown() {
    let server = Server::start_plain();
    let proxy = Proxy::to(&server);
    for forced in [false, true] {
        let key = key();
        let (_, fence) = claim(&server.url(), &key, &["--holder", "me"]);
        let fence = fence.to_string();
        proxy.at_next_commits(1, AtCommit::HoldAnswer);
        let call = if forced {
            vec!["release", "--force"]
        } else {
            vec!["release", "--holder", "me", "--fence", &fence]
        };
        let call = Lease::new(call)
            .args(["--db-timeout", "2s", &key])
            .url(proxy.url())
            .spawn();
        until("it is released, and nobody hears of it", || {
            column(&server, &key, "holder").is_empty()
        });
        proxy.stall();
        let out = call.wait().expect_code(69);
        let (by_force, doubt) = if forced {
            (" by force", "`lease status` shows whether it was")
        } else {
            ("", "release it again; a second release does no harm")
        };
        let told = format!("lease: it is unknown whether {key} was released{by_force}: ");
        assert!(out.stderr.starts_with(&told), "{out:?}");
        assert!(out.stderr.trim_end().ends_with(doubt), "{out:?}");
        assert_eq!(out.stderr.lines().count(), 1, "{out:?}");
        proxy.cut();
        proxy.resume();
    }
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
    let doubt = "; if it was, me holds it for";
    assert!(out.stderr.contains(doubt), "{out:?}");
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
        out.stderr.contains("only once") && out.stderr.contains("it is unknown whether"),
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
fn a_forced_release_whose_answer_is_lost_ends_that_term_and_no_other() {
    let server = Server::start_plain();
    let proxy = Proxy::to(&server);
    // Whether the first try was applied, and whether another holder has the key since.
    for (what, taken) in [
        (AtCommit::CutAnswer, false),
        (AtCommit::CutRequest, false),
        (AtCommit::HoldAnswer, true),
    ] {
        let key = key();
        let (_, fence) = claim(&server.url(), &key, &["--holder", "me"]);
        proxy.at_next_commits(1, what);
        let call = Lease::new(["release", "--force", "--db-timeout", "20s", &key])
            .url(proxy.url())
            .spawn();
        if taken {
            until("it is released, and nobody hears of it", || {
                column(&server, &key, "holder").is_empty()
            });
            claim(&server.url(), &key, &["--holder", "you"]);
        }
        let out = call.wait().expect_code(0);
        let told = if what == AtCommit::CutRequest {
            format!("lease: {key}: evicted me (fence {fence}), ")
        } else {
            format!("lease: {key} is no longer held by me (fence {fence})")
        };
        assert!(out.stderr.starts_with(&told), "{out:?}");
        let holder = if taken { "you" } else { "" };
        assert_eq!(column(&server, &key, "holder"), holder);
    }
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
fn a_release_whose_answer_is_cut_off_is_not_a_loss_if_another_holder_was_waiting() {
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

#[test]
fn a_claim_that_is_interrupted_and_cannot_be_released_is_called_neither_failed_nor_released() {
    let server = Server::start_plain();
    Lease::new(["init"]).on(&server).output().expect_code(0);
    server.psql(
        "CREATE ROLE app LOGIN;
         GRANT SELECT, INSERT, UPDATE ON public.lease TO app;
         CREATE FUNCTION public.slow() RETURNS trigger LANGUAGE plpgsql AS
             $$ BEGIN PERFORM pg_sleep(2); RETURN NULL; END $$;
         CREATE CONSTRAINT TRIGGER slow AFTER INSERT ON public.lease DEFERRABLE INITIALLY DEFERRED
             FOR EACH ROW EXECUTE FUNCTION public.slow()",
    );
    let key = key();
    let claim = Lease::new(["claim", "--ttl", "10m", "--db-timeout", "60s", &key])
        .url(server.url_for("app", "postgres"))
        .spawn();
    until("the claim is being committed", || {
        server.psql("SELECT count(*) FROM pg_stat_activity WHERE usename = 'app' AND query = 'COMMIT' AND state = 'active'") == "1"
    });
    server.psql("ALTER ROLE app NOLOGIN");
    claim.signal(nix::sys::signal::Signal::SIGINT);
    let out = claim.wait().expect_signal(nix::sys::signal::Signal::SIGINT);
    assert_eq!(out.stdout, "");
    let told = format!("lease: cannot release {key}: ");
    assert!(out.stderr.starts_with(&told), "{out:?}");
    assert!(out.stderr.contains("; the lease expires at 2"), "{out:?}");
    assert_ne!(column(&server, &key, "holder"), "");
}
