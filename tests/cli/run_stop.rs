//! A lost lease stops all of its job.

use std::time::Duration;

use nix::sys::signal::Signal;

use crate::support::job::{Journal, of_job, run, run_script, steal, until_gone};
use crate::support::rows::evicted;
use crate::support::table::{change, delete};
use crate::support::{key, programs, shared, stays, until};
use crate::{column, lease, term};

/// A loss is noticed within a second, and a database that is slow for a while is not taken for one.
const BEATING: [&str; 4] = ["--ttl", "15s", "--heartbeat", "1s"];

#[test]
fn a_stolen_lease_stops_the_shell_and_everything_that_it_started_and_names_the_new_holder() {
    let scripts = [
        ("sleep 1000; true", 2),
        ("sleep 1000 & sleep 1000 & wait", 3),
        ("yes | cat >/dev/null", 3),
        ("sh -c 'sh -c \"sleep 1000; true\"; true'; true", 4),
    ];
    let jobs = scripts.map(|(script, processes)| {
        let key = key();
        let job = run_script(&BEATING, &key, script).on(shared()).spawn();
        (key, job, processes)
    });
    for (key, job, processes) in jobs {
        until("the whole job is there", || of_job(&key).len() == processes);
        steal(shared(), &key);
        let out = job.wait().expect_code(76);
        assert!(of_job(&key).is_empty(), "{:?} outlives {out}", of_job(&key));
        assert!(out.stderr.contains("thief-1 holds it now"), "{out}");
        assert_eq!(column(shared(), &key, "holder"), "thief-1", "not touched");
    }
}

#[test]
fn a_job_that_ignores_term_is_killed_when_its_grace_is_over() {
    let (key, journal) = (key(), Journal::new());
    // Its own clock tells how long it was left to itself.
    let script = format!(
        "trap 'date +%s.%N >>{0}' TERM; echo ready; while :; do sleep 0.05; echo tick >/dev/null; date +%s.%N >{0}.last; done",
        journal.path()
    );
    let job = run_script(
        &["--ttl", "15s", "--grace", "2s", "--heartbeat", "1s"],
        &key,
        &script,
    )
    .on(shared())
    .spawn();
    job.wait_for_line("ready");
    steal(shared(), &key);
    let out = job.wait().expect_code(76);
    assert!(out.stderr.contains("killed"), "{out}");
    assert!(of_job(&key).is_empty());
    let termed: Vec<f64> = journal
        .lines()
        .iter()
        .map(|at| at.parse().expect("a time"))
        .collect();
    assert_eq!(termed.len(), 1, "one TERM: {termed:?}");
    let last = std::fs::read_to_string(format!("{}.last", journal.path())).expect("a time");
    // The last tick may have been killed while it was being written.
    if let Ok(last) = last.trim().parse::<f64>() {
        assert!(last - termed[0] > 1.0, "{} s of grace", last - termed[0]);
    }
}

#[test]
fn a_job_that_ends_well_on_term_gets_the_time_and_the_exit_code_is_still_76() {
    let (key, journal) = (key(), Journal::new());
    let script = format!(
        "trap 'sleep 0.5; echo tidy >>{0}; exit 0' TERM; echo ready >>{0}; while :; do sleep 0.05; done",
        journal.path()
    );
    let job = run_script(&BEATING, &key, &script).on(shared()).spawn();
    journal.wait_for("ready");
    steal(shared(), &key);
    job.wait().expect_code(76);
    assert_eq!(journal.lines(), ["ready", "tidy"]);
}

#[test]
fn a_stopped_job_is_continued_to_be_ended() {
    let (key, journal) = (key(), Journal::new());
    let script = format!(
        "trap 'echo tidy >>{0}; exit 0' TERM; echo ready >>{0}; while :; do sleep 0.05; done",
        journal.path()
    );
    let job = run_script(&BEATING, &key, &script).on(shared()).spawn();
    journal.wait_for("ready");
    for process in of_job(&key) {
        process.signal(Signal::SIGSTOP);
    }
    steal(shared(), &key);
    job.wait().expect_code(76);
    assert_eq!(journal.lines(), ["ready", "tidy"]);
}

#[test]
fn on_loss_continue_reports_the_loss_as_an_error_and_lets_the_job_run() {
    let key = key();
    let job = run_script(
        &[
            "-q",
            "--ttl",
            "15s",
            "--heartbeat",
            "500ms",
            "--on-loss",
            "continue",
        ],
        &key,
        "echo ready; read end; exit 5",
    )
    .open_input()
    .on(shared())
    .spawn();
    job.wait_for_line("ready");
    steal(shared(), &key);
    let line = job.wait_for_line("is lost");
    assert!(
        line.contains("thief-1") && line.contains("runs on"),
        "{line}"
    );
    stays("the job runs", Duration::from_secs(2), || {
        job.exit().is_none() && !of_job(&key).is_empty()
    });
    job.close_input();
    let out = job.wait().expect_code(5);
    assert_eq!(out.stderr.lines().count(), 1, "said once: {out}");
    assert_eq!(column(shared(), &key, "holder"), "thief-1", "not touched");
}

#[test]
fn a_forced_release_evicts_the_run() {
    let key = key();
    let job = run_script(&BEATING, &key, "echo ready; sleep 1000; true")
        .on(shared())
        .spawn();
    job.wait_for_line("ready");
    lease(&["release", "--force", &key]).output().expect_code(0);
    let out = job.wait().expect_code(76);
    assert!(out.stderr.contains(&evicted()), "{out}");
    until_gone(&key);
}

#[test]
fn a_lease_that_expired_unseen_is_not_brought_back() {
    // As a clock of the server that jumps ahead would have it.
    let key = key();
    let job = run_script(&BEATING, &key, "echo ready; sleep 1000; true")
        .on(shared())
        .spawn();
    job.wait_for_line("ready");
    change(
        shared(),
        &key,
        "acquired_at = acquired_at - interval '1 h', expires_at = expires_at - interval '1 h'",
    );
    let out = job.wait().expect_code(76);
    assert!(
        out.stderr.contains("expired before it was renewed"),
        "{out}"
    );
    until_gone(&key);
}

#[test]
fn a_loss_while_the_job_ends_by_itself_is_still_a_loss() {
    // Stolen between the last heartbeat and the release: the job's code says nothing about who wrote last.
    let key = key();
    let job = run(
        &["--ttl", "1h"],
        &key,
        &["sh", "-c", "echo ready; read end"],
    )
    .open_input()
    .on(shared())
    .spawn();
    job.wait_for_line("ready");
    steal(shared(), &key);
    job.close_input();
    let out = job.wait().expect_code(76);
    assert!(out.stderr.contains("thief-1"), "{out}");
    assert_eq!(column(shared(), &key, "holder"), "thief-1", "not touched");
}

#[test]
fn a_release_that_was_not_the_runs_own_is_a_loss_also_when_no_heartbeat_saw_it() {
    let own = format!("{} release", programs::lease());
    // An operator's, by force; and the job's, as its last act.
    for (last_act, forced, end) in [
        ("exit 3", true, "before the job ended with code 3"),
        ("kill -9 $$", true, "before signal 9 ended the job"),
        (&own, false, "before the job ended with code 0"),
    ] {
        let key = key();
        let script = format!("echo ready; read end; {last_act}");
        let job = run(&["--ttl", "1h"], &key, &["sh", "-c", &script])
            .open_input()
            .on(shared())
            .spawn();
        job.wait_for_line("ready");
        if forced {
            lease(&["release", "--force", &key]).output().expect_code(0);
        }
        job.close_input();
        let out = job.wait().expect_code(76);
        let why = if forced {
            evicted()
        } else {
            "it was released, by force or by the job itself".to_owned()
        };
        assert_eq!(out.stderr, format!("lease: {key} was lost {end}: {why}\n"));
    }
}

#[test]
fn a_row_deleted_by_hand_is_a_lost_lease_and_the_next_claim_works() {
    let key = key();
    let job = run_script(
        &["--ttl", "15s", "--heartbeat", "1s"],
        &key,
        "echo $FENCE; sleep 1000; true",
    )
    .on(shared())
    .spawn();
    job.wait_for_output();
    delete(shared(), &key);
    let out = job.wait().expect_code(76);
    assert!(out.stderr.contains("its row does not exist"), "{out}");
    until_gone(&key);
    let next = lease(&["claim", "--format", "json", &key])
        .output()
        .expect_code(0);
    let fence: i64 = out.stdout.trim().parse().expect("a fence");
    assert!(term(&next.stdout).fence > fence);
}
