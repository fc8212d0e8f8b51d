//! The database dies, hangs, restarts or can't be reached.

use std::time::Duration;

use crate::support::job::{Journal, of_job, run_script};
use crate::support::{AtCommit, LIMIT, Network, Proxy, Running, Server, key, shared, skip, until};
use crate::{column, dead_in_time, deaf, moment, nothing_left, until_it_ticks};

/// Short enough to wait for, long enough for a busy machine to renew in time while nothing is wrong.
const SHORT: [&str; 4] = ["--ttl", "4s", "--heartbeat", "500ms"];

/// The run of a job that could not be stopped but by force ends with 76, soon, and tells this loss from others.
#[track_caller]
fn ends_as_unreachable(job: Running) {
    job.wait_for_line("could not be renewed in time");
    let out = job.wait().expect_code(76);
    assert!(
        out.stderr
            .contains("could not be renewed in time: the database could not be reached: "),
        "{out}"
    );
    assert!(!out.stderr.contains("holds it now"), "{out}");
    let failing = out
        .stderr
        .lines()
        .filter(|line| line.contains("cannot renew"));
    assert_eq!(failing.count(), 1, "said once: {out}");
}

#[test]
fn the_job_is_dead_before_its_lease_is_over_when_the_server_freezes() {
    let server = Server::start_plain();
    let (key, journal) = (key(), Journal::new());
    let job = deaf(&SHORT, &key, &journal).on(&server).spawn();
    until_it_ticks(&journal);
    server.freeze();
    ends_as_unreachable(job);
    server.thaw();
    dead_in_time(&server, &key, &journal);
    assert_eq!(
        column(&server, &key, "expires_at > clock_timestamp() + '10 s'"),
        "f",
        "nothing is applied afterwards"
    );
}

#[test]
fn the_job_is_dead_before_its_lease_is_over_when_the_server_is_stopped() {
    let server = Server::start_plain();
    let (key, journal) = (key(), Journal::new());
    let job = deaf(&SHORT, &key, &journal).on(&server).spawn();
    until_it_ticks(&journal);
    server.stop();
    ends_as_unreachable(job);
    server.start();
    dead_in_time(&server, &key, &journal);
}

#[test]
fn the_job_is_dead_before_its_lease_is_over_when_the_path_to_the_server_swallows_everything() {
    let proxy = Proxy::to(shared());
    let (key, journal) = (key(), Journal::new());
    let job = deaf(&SHORT, &key, &journal).url(proxy.url()).spawn();
    until_it_ticks(&journal);
    proxy.stall();
    ends_as_unreachable(job);
    dead_in_time(shared(), &key, &journal);
}

#[test]
fn the_job_is_dead_before_its_lease_is_over_when_the_network_loses_every_packet() {
    let Some(network) = Network::new() else {
        return skip("network namespaces");
    };
    let server = Server::builder().for_networks().start();
    let (key, journal) = (key(), Journal::new());
    let url = network.url(&server);
    let job = deaf(&SHORT, &key, &journal)
        .wrapped(network.wrapper())
        .url(url)
        .spawn();
    until_it_ticks(&journal);
    network.drop_packets();
    ends_as_unreachable(job);
    dead_in_time(&server, &key, &journal);
}

#[test]
fn the_job_of_a_lease_killed_while_the_server_is_frozen_is_dead_in_time() {
    let server = Server::start_plain();
    let (key, journal) = (key(), Journal::new());
    let job = deaf(&SHORT, &key, &journal).on(&server).spawn();
    until_it_ticks(&journal);
    server.freeze();
    job.wait_for_line("cannot renew");
    job.signal(nix::sys::signal::Signal::SIGKILL);
    nothing_left(&job, &key);
    server.thaw();
    dead_in_time(&server, &key, &journal);
}

#[test]
fn a_server_that_restarts_in_time_costs_one_warning() {
    let server = Server::start_plain();
    let (key, journal) = (key(), Journal::new());
    let options = ["--verbose", "--ttl", "20s", "--heartbeat", "1s"];
    let job = deaf(&options, &key, &journal).on(&server).spawn();
    until_it_ticks(&journal);
    let fence = column(&server, &key, "fence");
    server.stop();
    until("it is down for several tries", || {
        job.stderr().matches("lease: renew: failed after").count() >= 5
    });
    server.start();
    job.wait_for_line("renewed again");
    assert!(job.exit().is_none() && !of_job(&key).is_empty());
    assert_eq!(column(&server, &key, "fence"), fence);
    assert_eq!(column(&server, &key, "expires_at > clock_timestamp()"), "t");
    let said = job.stderr();
    let (_, said) = said.split_once("started the job").expect("a step");
    // The steps that --verbose tells, aside.
    let step = |line: &&str| line.starts_with("lease: renew");
    assert_eq!(
        said.lines().skip(1).filter(|line| !step(line)).count(),
        2,
        "{said}"
    );
}

#[test]
fn connections_that_are_terminated_again_and_again_do_not_harm_the_job() {
    let server = Server::start_plain();
    let (key, journal) = (key(), Journal::new());
    let job = deaf(&["--ttl", "20s", "--heartbeat", "200ms"], &key, &journal)
        .on(&server)
        .spawn();
    until_it_ticks(&journal);
    let fence = column(&server, &key, "fence");
    let mut client = server.client();
    let mut hit = 0;
    until("many of its connections were hit", || {
        hit += client
            .query(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
                 WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()",
                &[],
            )
            .expect("rows")
            .len();
        hit >= 20 || job.exit().is_some()
    });
    assert!(
        job.exit().is_none() && !of_job(&key).is_empty(),
        "{}",
        job.stderr()
    );
    assert_eq!(column(&server, &key, "fence"), fence);
}

#[test]
fn a_heartbeat_whose_answer_is_lost_after_the_commit_is_a_heartbeat() {
    for what in [
        AtCommit::CutAnswer,
        AtCommit::HoldAnswer,
        AtCommit::CutRequest,
    ] {
        let proxy = Proxy::to(shared());
        let (key, journal) = (key(), Journal::new());
        let job = deaf(&["--ttl", "20s", "--heartbeat", "1s"], &key, &journal)
            .url(proxy.url())
            .spawn();
        until_it_ticks(&journal);
        let fence = column(shared(), &key, "fence");
        proxy.at_next_commits(1, what);
        until("a commit was disturbed", || proxy.commits_disturbed() == 1);
        let then = moment(shared(), &key, "clock_timestamp() + interval '20 s'");
        until("a later heartbeat arrives", || {
            moment(shared(), &key, "expires_at") > then
        });
        proxy.cut();
        assert_eq!(column(shared(), &key, "fence"), fence);
        assert!(
            job.exit().is_none() && !of_job(&key).is_empty(),
            "{what:?}: {}",
            job.stderr()
        );
        assert!(
            !job.stderr().contains("is lost:") && !job.stderr().contains("be renewed in time"),
            "{what:?}: {}",
            job.stderr()
        );
    }
}

#[test]
fn a_claim_whose_answer_is_cut_off_after_the_commit_is_ours() {
    let (proxy, key) = (Proxy::to(shared()), key());
    proxy.at_next_commits(1, AtCommit::CutAnswer);
    let out = run_script(&[], &key, "echo $FENCE")
        .url(proxy.url())
        .output()
        .expect_code(0);
    assert_eq!(out.stdout.trim(), column(shared(), &key, "fence"));
    assert_eq!(column(shared(), &key, "holder"), "");
    assert_eq!(proxy.commits_disturbed(), 1);
}

#[test]
fn a_claim_whose_answer_never_comes_is_called_unknown_and_starts_nothing() {
    let (proxy, key) = (Proxy::to(shared()), key());
    proxy.at_next_commits(1, AtCommit::HoldAnswer);
    let out = run_script(&["--db-timeout", "2s"], &key, "echo started")
        .url(proxy.url())
        .output()
        .expect_code(69);
    assert!(
        out.stderr.contains("unknown") && out.stdout.is_empty(),
        "{out}"
    );
    // Whom it names is whom the row names, so that who reads it can find out.
    let holder = column(shared(), &key, "holder");
    assert!(out.stderr.contains(&holder), "{holder}: {out}");
}

#[test]
fn a_job_that_ends_while_the_database_hangs_gives_its_code_within_the_time_limit() {
    let proxy = Proxy::to(shared());
    let key = key();
    let job = run_script(
        &["--ttl", "10m", "--db-timeout", "1s"],
        &key,
        "echo ready; read end; exit 7",
    )
    .open_input()
    .url(proxy.url())
    .spawn();
    job.wait_for_line("ready");
    proxy.stall();
    let ended = std::time::Instant::now();
    job.close_input();
    let out = job.wait().expect_code(7);
    assert!(
        ended.elapsed() < Duration::from_secs(15),
        "{:?}",
        ended.elapsed()
    );
    let line = out.stderr.lines().last().expect("a line");
    assert!(
        line.starts_with(&format!("lease: cannot release {key}: "))
            && line.contains("; the lease expires at 2"),
        "{out}"
    );
    assert_eq!(out.stderr.lines().count(), 1, "{out}");
    // What it says is true once the late answer has arrived.
    proxy.resume();
    let until_then = column(
        shared(),
        &key,
        "to_char(expires_at AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS')",
    );
    assert!(line.contains(&until_then), "{line} {until_then}");
}

#[test]
fn a_server_that_is_gone_at_the_end_costs_one_line() {
    let server = Server::start_plain();
    let key = key();
    let job = run_script(&["--ttl", "10m"], &key, "echo ready; read end; exit 7")
        .open_input()
        .on(&server)
        .spawn();
    job.wait_for_line("ready");
    server.stop();
    job.close_input();
    job.wait_exit(LIMIT);
    let out = job.wait().expect_code(7);
    assert_eq!(out.stderr.lines().count(), 1, "{out}");
    assert!(out.stderr.contains("; the lease expires at 2"), "{out}");
    server.start();
    assert_ne!(column(&server, &key, "holder"), "");
}

#[test]
fn on_loss_continue_outlives_an_outage_longer_than_its_lease() {
    let (proxy, key) = (Proxy::to(shared()), key());
    let job = run_script(
        &["--ttl", "2s", "--on-loss", "continue"],
        &key,
        "echo ready; read end; exit 3",
    )
    .open_input()
    .url(proxy.url())
    .spawn();
    job.wait_for_line("ready");
    // Refused as by a server that is down. This server still answers how long the outage must be.
    proxy.refuse();
    job.wait_for_line("cannot renew");
    until("its lease is over", || {
        column(shared(), &key, "expires_at < clock_timestamp()") == "t"
    });
    proxy.resume();
    let line = job.wait_for_line("runs on");
    assert!(line.contains("expired"), "{line}");
    job.close_input();
    job.wait().expect_code(3);
}
