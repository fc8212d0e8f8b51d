//! What the release at the end of a run may conclude from tries that failed: only one whose outcome is unknown can have
//! ended the term.

use nix::sys::signal::Signal;

use crate::column;
use crate::support::job::{run_script, steal};
use crate::support::proxy::{AtCommit, Proxy};
use crate::support::rows::evicted;
use crate::support::{Lease, Running, Server, key, until};

/// A job that runs until its input is closed, under a lease that no heartbeat touches meanwhile.
fn long_beat(proxy: &Proxy, key: &str) -> Running {
    let options = [
        "-v",
        "--ttl",
        "10m",
        "--heartbeat",
        "4m",
        "--db-timeout",
        "60s",
    ];
    let run = run_script(&options, key, "echo ready; read end; true")
        .open_input()
        .url(proxy.url())
        .spawn();
    run.wait_for_line("ready");
    run
}

/// Lets the job end while nothing listens where the database was, and brings it back after the first failed try.
fn end_in_an_outage(run: &Running, proxy: &Proxy) {
    proxy.refuse();
    run.close_input();
    run.wait_for_line("release: failed after");
    proxy.resume();
}

#[test]
fn a_loss_is_reported_even_if_the_first_try_of_the_release_cannot_connect() {
    let server = Server::start_plain();
    Lease::new(["init"]).on(&server).output().expect_code(0);
    let proxy = Proxy::to(&server);
    let evict = |key: &str| {
        Lease::new(["release", "--force", key])
            .on(&server)
            .output()
            .expect_code(0);
    };
    type Loss<'a> = (&'a dyn Fn(&str), &'a str);
    let losses: [Loss<'_>; 3] = [
        (&evict, &evicted()),
        (
            &|key| {
                server.psql(&format!("DELETE FROM public.lease WHERE key = '{key}'"));
            },
            "its row does not exist",
        ),
        (
            &|key| {
                evict(key);
                steal(&server, key);
            },
            "thief-1 holds it now",
        ),
    ];
    for (lose, told) in losses {
        let key = key();
        let run = long_beat(&proxy, &key);
        lose(&key);
        end_in_an_outage(&run, &proxy);
        let out = run.wait().expect_code(76);
        let line = format!("lease: {key} was lost before the job ended with code 0: {told}");
        assert!(out.stderr.contains(&line), "{out}");
        assert!(!out.stderr.contains("cannot release"), "{out}");
    }
}

#[test]
fn a_release_whose_answer_is_lost_is_known_as_our_own_when_the_database_is_back() {
    let server = Server::start_plain();
    Lease::new(["init"]).on(&server).output().expect_code(0);
    let proxy = Proxy::to(&server);
    for taken_since in [false, true] {
        let key = key();
        let run = long_beat(&proxy, &key);
        let before = proxy.commits_disturbed();
        proxy.at_next_commits(1, AtCommit::HoldAnswer);
        run.close_input();
        until("it is released, and nobody hears of it", || {
            proxy.commits_disturbed() > before && column(&server, &key, "holder").is_empty()
        });
        if taken_since {
            steal(&server, &key);
        }
        proxy.refuse();
        // The same operation asks again at once; that one is over now.
        run.wait_for_line("connection refused");
        proxy.resume();
        let out = run.wait().expect_code(0);
        assert!(
            out.stderr.contains(&format!("lease: released {key}")),
            "{out}"
        );
        assert!(!out.stderr.contains("was lost"), "{out}");
    }
}

#[test]
fn a_release_that_comes_too_late_says_so_and_keeps_the_code_of_the_job() {
    let server = Server::start_plain();
    Lease::new(["init"]).on(&server).output().expect_code(0);
    let proxy = Proxy::to(&server);
    let key = key();
    let options = [
        "-v",
        "--ttl",
        "4s",
        "--hold-at-least",
        "1h",
        "--db-timeout",
        "60s",
    ];
    let run = run_script(&options, &key, "echo ready; read end; exit 7")
        .open_input()
        .url(proxy.url())
        .spawn();
    run.wait_for_line("ready");
    proxy.refuse();
    run.close_input();
    run.wait_for_line("release: failed after");
    until("its lease is over", || {
        column(&server, &key, "expires_at < clock_timestamp()") == "t"
    });
    steal(&server, &key);
    proxy.resume();
    let out = run.wait().expect_code(7);
    let told = format!(
        "lease: cannot release {key}: the database answered only after the lease had expired; the lease expired at 2"
    );
    assert!(out.stderr.contains(&told), "{out}");
    assert!(out.stderr.contains(", without --hold-at-least 1h"), "{out}");
}

#[test]
fn a_job_that_ended_in_time_is_no_loss_in_the_history_when_only_its_release_was_late() {
    let server = Server::start_plain();
    Lease::new(["init"]).on(&server).output().expect_code(0);
    let proxy = Proxy::to(&server);
    let key = key();
    let options = ["-v", "--ttl", "4s", "--db-timeout", "60s"];
    let run = run_script(&options, &key, "echo ready; read end; exit 7")
        .open_input()
        .url(proxy.url())
        .spawn();
    run.wait_for_line("ready");
    proxy.refuse();
    run.close_input();
    run.wait_for_line("release: failed after");
    until("its lease is over", || {
        column(&server, &key, "expires_at < clock_timestamp()") == "t"
    });
    proxy.resume();
    run.wait().expect_code(7);
    let told =
        format!("SELECT ended || ' ' || exit_code FROM public.lease_history WHERE key = '{key}'");
    assert_eq!(server.psql(&told), "released 7");
}

#[test]
fn a_loss_is_known_without_the_answer_to_a_commit_that_commits_nothing() {
    let server = Server::start_plain();
    Lease::new(["init"]).on(&server).output().expect_code(0);
    let proxy = Proxy::to(&server);
    let key = key();
    let run = long_beat(&proxy, &key);
    steal(&server, &key);
    proxy.at_next_commits(100, AtCommit::HoldAnswer);
    run.close_input();
    let out = run.wait().expect_code(76);
    assert!(
        out.stderr
            .contains("was lost before the job ended with code 0: thief-1 holds it now"),
        "{out}"
    );
}

#[test]
fn a_run_that_does_not_know_whether_it_has_released_says_so() {
    let server = Server::start_plain();
    Lease::new(["init"]).on(&server).output().expect_code(0);
    let proxy = Proxy::to(&server);
    for interrupted in [false, true] {
        let key = key();
        let limit = if interrupted { "60s" } else { "4s" };
        let options = [
            "--ttl",
            "10m",
            "--hold-at-least",
            "1s",
            "--db-timeout",
            limit,
        ];
        let run = run_script(&options, &key, "echo ready; read end; exit 7")
            .open_input()
            .url(proxy.url())
            .spawn();
        run.wait_for_line("ready");
        proxy.at_next_commits(1, AtCommit::HoldAnswer);
        run.close_input();
        until("it is released, and nobody hears of it", || {
            column(&server, &key, "holder").is_empty()
        });
        proxy.stall();
        if interrupted {
            run.signal(Signal::SIGINT);
        }
        let out = run.wait().expect_code(7);
        let told = format!("lease: it is unknown whether {key} was released: ");
        assert!(out.stderr.starts_with(&told), "{out}");
        assert!(
            out.stderr.contains("; if not, the lease expires at 2"),
            "{out}"
        );
        assert!(out.stderr.contains(", without --hold-at-least 1s"), "{out}");
        assert_eq!(out.stderr.lines().count(), 1, "{out}");
        proxy.cut();
        proxy.resume();
    }
}

#[test]
fn a_run_whose_release_gets_no_answer_looks_while_there_is_time() {
    let server = Server::start_plain();
    Lease::new(["init"]).on(&server).output().expect_code(0);
    let proxy = Proxy::to(&server);
    let key = key();
    let options = ["-v", "--ttl", "10m", "--db-timeout", "20s"];
    let run = run_script(&options, &key, "echo ready; read end; exit 7")
        .open_input()
        .url(proxy.url())
        .spawn();
    run.wait_for_line("ready");
    proxy.at_next_commits(1, AtCommit::HoldAnswer);
    run.close_input();
    let out = run.wait().expect_code(7);
    assert!(
        out.stderr.contains(&format!("lease: released {key}")),
        "{out}"
    );
    assert!(!out.stderr.contains("unknown"), "{out}");
}

#[test]
fn a_lease_that_is_only_not_renewed_in_time_is_not_called_lost() {
    let server = Server::start_plain();
    Lease::new(["init"]).on(&server).output().expect_code(0);
    let proxy = Proxy::to(&server);
    for grace in ["0s", "200ms"] {
        let key = key();
        let options = ["--ttl", "3s", "--grace", grace];
        let run = run_script(&options, &key, "echo ready; exec sleep 60")
            .url(proxy.url())
            .spawn();
        run.wait_for_line("ready");
        proxy.refuse();
        let out = run.wait().expect_code(76);
        proxy.resume();
        let told = format!(
            "lease: {key} could not be renewed in time: the database could not be reached: "
        );
        assert!(out.stderr.contains(&told), "{out}");
        for untrue in ["is lost", "was gone", "did not answer in time"] {
            assert!(!out.stderr.contains(untrue), "{out}");
        }
    }
}

#[test]
fn a_lease_that_an_unanswered_renewal_may_have_extended_expires_then_or_later() {
    let server = Server::start_plain();
    Lease::new(["init"]).on(&server).output().expect_code(0);
    let proxy = Proxy::to(&server);
    for is_under_way in [true, false] {
        let key = key();
        let options = ["--ttl", "10m", "--heartbeat", "2s", "--db-timeout", "3s"];
        let run = run_script(&options, &key, "echo ready; read end; exit 7")
            .open_input()
            .url(proxy.url())
            .spawn();
        run.wait_for_line("ready");
        let expiry = || {
            column(
                &server,
                &key,
                "to_char(expires_at AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.MS\"Z\"')",
            )
        };
        let known = expiry();
        proxy.at_next_commits(1, AtCommit::HoldAnswer);
        until("it is renewed, and nobody hears of it", || {
            expiry() != known
        });
        proxy.stall();
        if !is_under_way {
            run.wait_for_line("cannot renew");
        }
        run.close_input();
        let out = run.wait().expect_code(7);
        let line = out.stderr.lines().last().expect("a line");
        assert!(
            line.starts_with(&format!("lease: cannot release {key}: ")),
            "{out}"
        );
        assert!(
            line.ends_with(&format!("; the lease expires at {known} or later")),
            "{out}"
        );
        proxy.cut();
        proxy.resume();
    }
}
