//! Answers that come when the lease that they bring has as good as expired.

use std::time::Duration;

use nix::sys::signal::Signal;

use crate::support::table::change;
use crate::support::{AtCommit, Lease, Output, Proxy, Running, Server, key, until};
use crate::{claim, column, term};

/// Makes every COMMIT of a claim or a renewal take this long.
fn slow_commits(server: &Server, seconds: &str) {
    server.psql(&format!(
        "CREATE FUNCTION public.slow() RETURNS trigger LANGUAGE plpgsql
             AS $$ BEGIN PERFORM pg_sleep({seconds}); RETURN NEW; END $$;
         CREATE CONSTRAINT TRIGGER slow AFTER INSERT OR UPDATE ON public.lease
             DEFERRABLE INITIALLY DEFERRED FOR EACH ROW WHEN (NEW.holder <> '') EXECUTE FUNCTION public.slow()"
    ));
}

/// A server with a table.
fn server() -> Server {
    let server = Server::start_plain();
    Lease::new(["init"]).on(&server).output().expect_code(0);
    server
}

/// What the environment of a script is after `eval` of a term.
fn with_term(verb: &[&str], key: &str, (holder, fence): &(String, i64)) -> Lease {
    let fence = fence.to_string();
    Lease::new(verb).args(["--holder", holder, "--fence", &fence, key])
}

/// Starts a call whose COMMIT is carried out and whose answer is held back.
fn unanswered(proxy: &Proxy, call: &Lease) -> Running {
    proxy.at_next_commits(1, AtCommit::HoldAnswer);
    let running = call.clone().url(proxy.url()).spawn();
    until("the answer to its COMMIT is held back", || {
        proxy.held() == 1
    });
    running
}

fn until_expired(server: &Server, key: &str) {
    until("the lease has expired", || {
        column(server, key, "expires_at < clock_timestamp()") == "t"
    });
}

/// Nothing was printed, and stderr is one line with these words.
#[track_caller]
fn expect_refused(out: Output, code: i32, words: &[&str]) {
    let out = out.expect_code(code);
    assert_eq!(out.stdout, "", "{out}");
    assert_eq!(out.stderr.lines().count(), 1, "{out}");
    for word in words {
        assert!(out.stderr.contains(word), "{word}: {out}");
    }
}

#[test]
fn a_claim_whose_commit_always_takes_longer_than_its_ttl_is_too_slow() {
    let server = server();
    slow_commits(&server, "1.2");
    let key = key();
    let out = Lease::new(["claim", "--ttl", "1s", &key]).on(&server);
    let words = [
        &format!("cannot claim {key}: the database is too slow for --ttl 1s"),
        "give a longer --ttl",
    ];
    expect_refused(out.output(), 69, &words);
    until_expired(&server, &key);
}

#[test]
fn a_renewal_whose_commit_takes_longer_than_its_ttl_is_lost() {
    let server = server();
    let key = key();
    let held = claim(&server.url(), &key, &["--ttl", "60s"]);
    slow_commits(&server, "1.2");
    // A default ttl does not shorten the lease, so there is enough time.
    let kept = with_term(&["renew", "--format", "json"], &key, &held)
        .env("LEASE_TTL", "1s")
        .on(&server)
        .output();
    assert_eq!(term(&kept.expect_code(0)), held);
    let short = with_term(&["renew", "--ttl", "1s"], &key, &held).on(&server);
    let words = [&format!("{key} is lost: it expired before it was renewed")[..]];
    expect_refused(short.output(), 76, &words);
}

#[test]
fn a_renewal_that_is_too_slow_twice_says_so() {
    let server = server();
    let key = key();
    let held = claim(&server.url(), &key, &["--ttl", "60s"]);
    // Within the ttl by the server's clock, but not by the margin that is kept back.
    slow_commits(&server, "0.92");
    let short = with_term(&["renew", "--ttl", "1s"], &key, &held).on(&server);
    let out = short.output();
    let lost = out.code == Some(76);
    let words = ["too slow for --ttl 1s", "it expired before it was renewed"];
    expect_refused(out, if lost { 76 } else { 69 }, &[words[usize::from(lost)]]);
}

#[test]
fn a_claim_is_lost_when_another_was_granted_before_its_answer_came() {
    let (server, key) = (server(), key());
    let proxy = Proxy::to(&server);
    let first = unanswered(&proxy, &Lease::new(["claim", "--ttl", "2s", &key]));
    until_expired(&server, &key);
    let (other, fence) = claim(&server.url(), &key, &[]);
    proxy.let_go();
    let words =
        format!("{key} was lost before it could be printed: {other} holds it now (fence {fence})");
    expect_refused(first.wait(), 76, &[&words]);
    assert_eq!(column(&server, &key, "holder"), other);
}

#[test]
fn a_renewal_is_lost_when_another_claim_was_granted_before_its_answer_came() {
    let (server, key) = (server(), key());
    let proxy = Proxy::to(&server);
    let held = claim(&server.url(), &key, &[]);
    let call = with_term(&["renew", "--ttl", "2s"], &key, &held);
    let renewing = unanswered(&proxy, &call);
    until_expired(&server, &key);
    let (other, fence) = claim(&server.url(), &key, &[]);
    proxy.let_go();
    let words = format!("{key} is lost: {other} holds it now (fence {fence})");
    expect_refused(renewing.wait(), 76, &[&words]);
}

#[test]
fn a_job_is_not_started_when_another_claim_was_granted_before_the_answer_came() {
    let (server, key) = (server(), key());
    let proxy = Proxy::to(&server);
    let run = Lease::new(["run", "--ttl", "2s", &key, "echo", "started"]);
    let first = unanswered(&proxy, &run);
    until_expired(&server, &key);
    let (other, fence) = claim(&server.url(), &key, &[]);
    proxy.let_go();
    let words =
        format!("{key} was lost before the job was started: {other} holds it now (fence {fence})");
    expect_refused(first.wait(), 76, &[&words]);
}

#[test]
fn a_job_is_not_started_when_every_answer_comes_too_late_for_it() {
    let (server, key) = (server(), key());
    slow_commits(&server, "1.2");
    let run = Lease::new(["run", "--ttl", "1s", &key, "echo", "started"]);
    let words = [
        "the database is too slow for --ttl 1s",
        "the job was not started",
    ];
    expect_refused(run.on(&server).output(), 69, &words);
    until_expired(&server, &key);
}

/// As if the job had renewed its lease in the meantime: it has not expired, although the answer is late.
fn keep(server: &Server, key: &str) {
    until("little is left", || {
        column(
            server,
            key,
            "expires_at < clock_timestamp() + interval '200ms'",
        ) == "t"
    });
    change(
        server,
        key,
        "expires_at = clock_timestamp() + interval '1h'",
    );
    until("its time is up for whoever has no answer", || {
        column(
            server,
            key,
            "acquired_at < clock_timestamp() - interval '2s'",
        ) == "t"
    });
}

#[test]
fn a_claim_whose_answer_came_late_is_renewed_and_prints_the_term_that_it_has_then() {
    let (server, key) = (server(), key());
    let proxy = Proxy::to(&server);
    let call = Lease::new(["claim", "--format", "json", "--ttl", "2s", &key]);
    let late = unanswered(&proxy, &call);
    keep(&server, &key);
    let began = column(&server, &key, "fence || holder");
    proxy.let_go();
    let (holder, fence) = term(&late.wait().expect_code(0));
    assert_eq!(began, format!("{fence}{holder}"));
    let soon = "expires_at < clock_timestamp() + interval '3s'";
    assert_eq!(column(&server, &key, soon), "t", "by a renewal");
}

#[test]
fn a_program_that_was_frozen_until_its_lease_had_expired_does_not_hand_it_out() {
    let (server, key) = (server(), key());
    let proxy = Proxy::to(&server);
    // The answer waits in the kernel while the program is stopped.
    let frozen = |call: &Lease| {
        let frozen = unanswered(&proxy, call);
        frozen.freeze();
        proxy.let_go();
        until_expired(&server, &key);
        frozen
    };
    let claiming = frozen(&Lease::new(["claim", "--ttl", "2s", &key]));
    let held = claim(&server.url(), &key, &[]);
    claiming.thaw();
    expect_refused(
        claiming.wait(),
        76,
        &["was lost before it could be printed"],
    );
    let renewing = frozen(&with_term(&["renew", "--ttl", "1s"], &key, &held));
    renewing.thaw();
    expect_refused(renewing.wait(), 76, &["it expired before it was renewed"]);
}

#[test]
fn a_signal_ends_a_claim_that_is_asked_for_again_and_leaves_nothing_behind() {
    // On a busy machine the answer may overtake the signal, which then comes too late.
    for _ in 0..20 {
        let (server, key) = (server(), key());
        let proxy = Proxy::to(&server);
        let first = unanswered(&proxy, &Lease::new(["claim", "--ttl", "2s", &key]));
        keep(&server, &key);
        proxy.at_next_commits(1, AtCommit::HoldAnswer);
        proxy.let_go();
        until("it asks again", || {
            proxy.commits_disturbed() == 2 && proxy.held() == 1
        });
        first.signal(Signal::SIGTERM);
        proxy.let_go();
        let first = first.wait();
        if first.code == Some(0) {
            assert_ne!(column(&server, &key, "holder"), "", "{first}");
            continue;
        }
        first.expect_signal(Signal::SIGTERM);
        assert_eq!(column(&server, &key, "holder"), "");
        return;
    }
    panic!("the signal was never in time");
}

#[test]
fn the_json_says_what_is_left_when_it_is_printed() {
    let (server, key) = (server(), key());
    let proxy = Proxy::to(&server);
    let left = |out: Output| {
        let value: serde_json::Value = serde_json::from_str(&out.stdout).expect("one JSON object");
        value["expires_in_ms"].as_u64().expect("a number")
    };
    let held_back = |call: &Lease| {
        let running = unanswered(&proxy, call);
        // How late the answer comes: the fault itself, nothing that is waited for.
        std::thread::sleep(Duration::from_millis(700));
        proxy.let_go();
        left(running.wait().expect_code(0))
    };
    let call = [
        "claim", "--format", "json", "--ttl", "60s", "--holder", "me",
    ];
    let claimed = held_back(&Lease::new(call).arg(&key));
    assert!((1..=59_300).contains(&claimed), "{claimed}");
    let fence = column(&server, &key, "fence").parse().expect("a fence");
    let held = ("me".to_owned(), fence);
    let renewed = held_back(&with_term(&["renew", "--format", "json"], &key, &held));
    assert!((1..=59_300).contains(&renewed), "{renewed}");
}
