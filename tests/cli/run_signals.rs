//! Signals sent to `lease run` alone: the job gets them, once each.

use nix::sys::signal::Signal;

use crate::column;
use crate::support::job::{Journal, around, of_job, run, run_script, until_gone};
use crate::support::proc::Process;
use crate::support::{Lease, Running, key, shared, until};

/// Notes every signal that it gets by its name, in the journal `$0`; ends with code 0 at TERM only. It has no children,
/// which a TSTP would stop.
const LISTENER: &str = r#"
for name in HUP INT QUIT USR1 USR2 ALRM WINCH CONT TSTP PWR RTMIN+3; do trap "echo $name >>$0" $name; done
trap "echo TERM >>$0; exit 0" TERM
mkfifo $0.pipe && exec 9<>$0.pipe
echo ready >>$0
while :; do read -t 0.05 -u 9; done"#;

fn listener(options: &[&str], key: &str, journal: &Journal) -> Running {
    run(options, key, &["bash", "-c", LISTENER, journal.path()])
        .on(shared())
        .spawn()
}

#[test]
fn each_signal_reaches_the_job_as_itself_and_once() {
    let (key, journal) = (key(), Journal::new());
    let job = listener(&[], &key, &journal);
    journal.wait_for("ready");
    let mut expected = vec!["ready".to_owned()];
    for signal in [
        Signal::SIGHUP,
        Signal::SIGINT,
        Signal::SIGQUIT,
        Signal::SIGUSR1,
        Signal::SIGUSR2,
        Signal::SIGALRM,
        Signal::SIGWINCH,
        Signal::SIGCONT,
        Signal::SIGTSTP,
        Signal::SIGPWR,
        Signal::SIGUSR1,
    ] {
        let name = signal.as_str().trim_start_matches("SIG").to_owned();
        let already = journal.count(&name);
        job.signal(signal);
        journal.wait_for_count(&name, already + 1);
        expected.push(name);
    }
    let real_time = format!("-{}", libc::SIGRTMIN() + 3);
    let pid = job.pid().to_string();
    Lease::program("kill")
        .args([&real_time, &pid])
        .output()
        .expect_code(0);
    journal.wait_for("RTMIN+3");
    job.signal(Signal::SIGTERM);
    expected.extend(["RTMIN+3", "TERM"].map(str::to_owned));
    job.wait().expect_code(0);
    assert_eq!(journal.lines(), expected);
    assert_eq!(column(shared(), &key, "holder"), "");
}

#[test]
fn a_signal_without_a_handler_ends_the_job_and_lease_by_it() {
    for signal in [
        Signal::SIGHUP,
        Signal::SIGINT,
        Signal::SIGTERM,
        Signal::SIGUSR1,
    ] {
        let key = key();
        let job = run(&[], &key, &["sh", "-c", "echo ready; exec sleep 1000"])
            .on(shared())
            .spawn();
        job.wait_for_line("ready");
        job.signal(signal);
        let out = job.wait().expect_signal(signal);
        assert!(of_job(&key).is_empty(), "{out}");
        assert_eq!(
            column(shared(), &key, "holder"),
            "",
            "released after {signal}"
        );
    }
}

#[test]
fn a_job_that_takes_a_signal_as_a_reason_to_end_well_has_ended_well() {
    for (name, signal) in [("INT", Signal::SIGINT), ("TERM", Signal::SIGTERM)] {
        let key = key();
        let script = format!("trap 'exit 0' {name}; echo ready; while :; do sleep 0.05; done");
        let job = run_script(&[], &key, &script).on(shared()).spawn();
        job.wait_for_line("ready");
        job.signal(signal);
        job.wait().expect_code(0);
    }
}

#[test]
fn the_signal_reaches_the_whole_group_of_the_job() {
    let (key, journal) = (key(), Journal::new());
    let child = format!(
        "trap 'echo child >>{0}; exit' USR1; echo up >>{0}; while :; do sleep 0.05; done",
        journal.path()
    );
    let script = format!(
        "trap 'echo parent >>{}; wait; exit 3' USR1; sh -c \"$CHILD\" & wait; wait",
        journal.path()
    );
    let job = run_script(&[], &key, &script)
        .env("CHILD", &child)
        .on(shared())
        .spawn();
    journal.wait_for("up");
    job.signal(Signal::SIGUSR1);
    job.wait().expect_code(3);
    assert_eq!(
        (journal.count("child"), journal.count("parent")),
        (1, 1),
        "{journal:?}"
    );
}

#[test]
fn a_second_run_starts_its_job_only_when_the_first_job_has_really_ended() {
    let (key, journal) = (key(), Journal::new());
    let slow = format!(
        "trap 'echo asked >>{0}; sleep 1.5; echo ended >>{0}; exit 0' TERM; echo ready >>{0}; while :; do sleep 0.05; done",
        journal.path()
    );
    let first = run_script(&["--ttl", "30s", "--name", "slow"], &key, &slow)
        .on(shared())
        .spawn();
    journal.wait_for("ready");
    // The second job looks for processes of the first one by what the kernel knows of their environment.
    let second = format!(
        "grep -ls LEASE_HOLDER=slow- /proc/[0-9]*/environ | sed 's/.*/left/' >>{0}; echo second >>{0}",
        journal.path()
    );
    let waiter = run_script(&["--wait", "1m", "--name", "second"], &key, &second)
        .on(shared())
        .spawn();
    waiter.wait_for_line("waiting: ");
    first.signal(Signal::SIGTERM);
    first.wait().expect_code(0);
    waiter.wait().expect_code(0);
    assert_eq!(journal.lines(), ["ready", "asked", "ended", "second"]);
}

#[test]
fn an_interrupt_that_was_ignored_at_the_start_does_not_count() {
    // A shell script starts what it puts in the background with INT and QUIT ignored.
    let key = key();
    let script = "\"$LEASE\" run \"$0\" -- sh -c 'kill -INT $PPID; kill -INT $$; exit 6' & wait $!";
    around("sh", script)
        .arg(&key)
        .on(shared())
        .output()
        .expect_code(6);
    let script = "\"$LEASE\" run \"$0\" -- true & wait $!";
    around("sh", script)
        .arg(&key)
        .on(shared())
        .output()
        .expect_code(0);
}

#[test]
fn under_nohup_a_hangup_ends_neither() {
    let key = key();
    let job = run(
        &[],
        &key,
        &["sh", "-c", "kill -HUP $$; echo ready; read end; exit 7"],
    )
    .wrapped(["nohup"])
    .open_input()
    .on(shared())
    .spawn();
    job.wait_for_line("ready");
    job.signal(Signal::SIGHUP);
    // A signal that is caught after it would show its effect first.
    job.signal(Signal::SIGCONT);
    job.close_input();
    job.wait().expect_code(7);
}

#[test]
fn a_job_that_a_tool_has_stopped_keeps_its_lease() {
    let key = key();
    let job = run_script(&["--ttl", "1500ms"], &key, "echo ready; read end")
        .open_input()
        .on(shared())
        .spawn();
    job.wait_for_line("ready");
    let process: Process = of_job(&key).remove(0);
    let before = column(shared(), &key, "expires_at");
    process.signal(Signal::SIGSTOP);
    until("the heart beats on", || {
        column(shared(), &key, "expires_at") != before
    });
    until("the job is stopped", || {
        Process::find(process.pid).is_some_and(|now| now.is_stopped())
    });
    let lease = Process::find(job.pid()).expect("lease");
    assert!(!lease.is_stopped(), "{lease:?}");
    process.signal(Signal::SIGCONT);
    job.close_input();
    job.wait().expect_code(1);
}

#[test]
fn a_signal_that_comes_with_the_end_of_the_job_does_not_keep_the_lease_from_being_released() {
    // As when a window is closed, or a service stopped: the job gets its own, and ends before that of `lease` is seen.
    std::thread::scope(|scope| {
        for (lane, signal) in [Signal::SIGHUP, Signal::SIGTERM, Signal::SIGINT]
            .into_iter()
            .enumerate()
        {
            let key = format!("{}-{lane}", key());
            scope.spawn(move || {
                for round in 0..12 {
                    let job = run(
                        &["--wait", "30s"],
                        &key,
                        &["sh", "-c", "echo ready; exec sleep 1000"],
                    )
                    .on(shared())
                    .spawn();
                    job.wait_for_line("ready");
                    for process in of_job(&key) {
                        process.signal(signal);
                    }
                    std::thread::sleep(std::time::Duration::from_millis(round));
                    job.signal(signal);
                    job.wait().expect_signal(signal);
                    assert_eq!(column(shared(), &key, "holder"), "", "{signal}");
                }
            });
        }
    });
}

#[test]
fn a_run_interrupted_at_any_moment_of_its_start_leaves_neither_a_job_nor_a_lease() {
    // The first one may be too early to make the table.
    crate::lease(&["init"]).output().expect_code(0);
    std::thread::scope(|scope| {
        for (lane, signal) in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP]
            .into_iter()
            .enumerate()
        {
            let key = format!("{}-{lane}", key());
            scope.spawn(move || {
                for round in 0..16 {
                    let job = run(&["--wait", "30s"], &key, &["sleep", "1000"])
                        .on(shared())
                        .spawn();
                    std::thread::sleep(std::time::Duration::from_millis(4 * round));
                    job.signal(signal);
                    let out = job.wait().expect_signal(signal);
                    assert!(of_job(&key).is_empty(), "{out}");
                    assert_eq!(column(shared(), &key, "holder"), "", "{out}");
                }
            });
        }
    });
}

#[test]
fn a_script_around_lease_is_not_stopped_by_a_signal_for_lease() {
    let key = key();
    let script =
        format!("\"$LEASE\" run {key} -- sh -c 'echo job-ready; exec sleep 1000'; echo code-$?");
    // An interactive shell's job: not an orphaned group, which nothing could stop.
    let around = around("bash", "set -m; sh -c \"$1\" & wait; wait")
        .args(["bash", &script])
        .on(shared())
        .spawn();
    around.wait_for_line("job-ready");
    let lease = around.named("lease").pop().expect("lease runs");
    lease.signal(Signal::SIGTSTP);
    until("job and lease are stopped", || {
        of_job(&key).iter().all(|p| p.is_stopped())
            && around.named("lease").iter().all(|p| p.is_stopped())
    });
    assert!(
        around.named("sh").iter().all(|p| !p.is_stopped()),
        "the script is not"
    );
    lease.signal(Signal::SIGCONT);
    until("they go on", || {
        of_job(&key).iter().all(|p| !p.is_stopped())
            && around.named("lease").iter().all(|p| !p.is_stopped())
    });
    lease.signal(Signal::SIGTERM);
    around.wait_for_line("code-143");
    around.wait().expect_code(0);
}

#[test]
fn a_stopped_job_is_continued_to_act_on_a_term() {
    let key = key();
    let run = Lease::new([
        "run",
        &key,
        "--",
        "sh",
        "-c",
        "echo job-ready; kill -STOP $$; echo woken",
    ])
    .on(shared())
    .spawn();
    run.wait_for_line("job-ready");
    until("it has stopped itself", || {
        let job = of_job(&key);
        !job.is_empty() && job.iter().all(|p| p.is_stopped())
    });
    // lease hears of the stop a moment later.
    until("a TERM ends it", || {
        run.signal(Signal::SIGTERM);
        run.exit().is_some()
    });
    run.wait().expect_signal(Signal::SIGTERM);
    until_gone(&key);
}
