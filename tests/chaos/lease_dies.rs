//! `lease` itself is killed or stopped.

use nix::sys::signal::Signal;

use crate::support::job::{Journal, of_job, run_script, until_gone};
use crate::support::proc::{self, Process};
use crate::support::{Lease, Running, key, shared, until};
use crate::{column, dead_in_time, deaf, last_tick, moment, nothing_left, until_it_ticks};

/// The watchdog of a run: the one process of that name.
pub(crate) fn watchdog(run: &Running) -> Process {
    let named = |process: &Process| process.name == "job-watchdog";
    until("there is a watchdog", || {
        run.processes().into_iter().find(named)
    })
}

#[test]
fn the_job_of_a_killed_lease_is_dead_long_before_its_lease_is_over() {
    let (key, journal) = (key(), Journal::new());
    let job = deaf(&["--ttl", "1m", "--grace", "1s"], &key, &journal)
        .on(shared())
        .spawn();
    until_it_ticks(&journal);
    job.signal(Signal::SIGKILL);
    nothing_left(&job, &key);
    dead_in_time(shared(), &key, &journal);
    assert_eq!(
        column(shared(), &key, "expires_at - clock_timestamp() > '20 s'"),
        "t"
    );
}

#[test]
fn the_job_of_a_killed_lease_is_dead_before_a_waiting_replica_starts() {
    let (key, journal) = (key(), Journal::new());
    // As long a grace as the ttl has room for: a job that is deaf lives on for most of what is left of the lease.
    let options = [
        "--name",
        "dying",
        "--ttl",
        "4s",
        "--grace",
        "1700ms",
        "--heartbeat",
        "1s",
    ];
    let job = deaf(&options, &key, &journal).on(shared()).spawn();
    until_it_ticks(&journal);
    job.signal(Signal::SIGSTOP);
    let look = "grep -ls LEASE_HOLDER=dying- /proc/[0-9]*/environ; echo $FENCE";
    let waiter = run_script(&["--wait", "1m", "--name", "second"], &key, look)
        .on(shared())
        .spawn();
    waiter.wait_for_line("waiting: ");
    job.signal(Signal::SIGKILL);
    let out = waiter.wait().expect_code(0);
    // Where nothing was found, the fence stands alone: the moment of the claim, in microseconds.
    let claimed: f64 = out
        .stdout
        .trim()
        .parse()
        .unwrap_or_else(|_| panic!("{out}"));
    assert!(
        last_tick(&journal) < claimed / 1e6,
        "{} {claimed}",
        last_tick(&journal)
    );
    nothing_left(&job, &key);
}

#[test]
fn the_job_of_a_frozen_lease_is_dead_before_the_expiry_and_lease_then_exits_with_76() {
    let (key, journal) = (key(), Journal::new());
    let job = deaf(&["--ttl", "3s", "--heartbeat", "500ms"], &key, &journal)
        .on(shared())
        .spawn();
    until_it_ticks(&journal);
    job.signal(Signal::SIGSTOP);
    until_gone(&key);
    dead_in_time(shared(), &key, &journal);
    assert!(Process::find(job.pid()).is_some_and(|lease| lease.is_stopped()));
    job.signal(Signal::SIGCONT);
    let watched = job.processes();
    let out = job.wait().expect_code(76);
    assert!(out.stderr.contains("could not be renewed in time"), "{out}");
    assert!(!watched.iter().any(Process::is_alive), "{watched:?}");
}

#[test]
fn a_frozen_lease_that_thaws_in_time_goes_on() {
    let (key, journal) = (key(), Journal::new());
    let job = deaf(&["--ttl", "1m", "--heartbeat", "300ms"], &key, &journal)
        .on(shared())
        .spawn();
    until_it_ticks(&journal);
    let fence = column(shared(), &key, "fence");
    job.signal(Signal::SIGSTOP);
    until("it is stopped", || {
        Process::find(job.pid()).is_some_and(|lease| lease.is_stopped())
    });
    let before = moment(shared(), &key, "expires_at");
    job.signal(Signal::SIGCONT);
    until("the heart beats again", || {
        moment(shared(), &key, "expires_at") > before + 0.5
    });
    assert_eq!(column(shared(), &key, "fence"), fence);
    assert!(
        job.exit().is_none() && job.stderr().is_empty(),
        "{}",
        job.stderr()
    );
}

#[test]
fn a_killed_watchdog_is_replaced_by_one_that_does_its_work() {
    for stopped_first in [false, true] {
        let (key, journal) = (key(), Journal::new());
        let job = deaf(
            &["--ttl", "1m", "--grace", "1s", "--heartbeat", "1s"],
            &key,
            &journal,
        )
        .on(shared())
        .spawn();
        until_it_ticks(&journal);
        let first = watchdog(&job);
        first.signal(if stopped_first {
            Signal::SIGSTOP
        } else {
            Signal::SIGKILL
        });
        job.wait_for_line("starting another one");
        until("the first one is gone", || !first.is_alive());
        assert_ne!(watchdog(&job), first);
        assert!(job.exit().is_none() && !of_job(&key).is_empty());
        job.signal(Signal::SIGKILL);
        nothing_left(&job, &key);
        dead_in_time(shared(), &key, &journal);
    }
}

#[test]
fn lease_and_watchdog_killed_one_after_the_other_leave_no_job() {
    // The watchdog has begun to stop the job, and is the last one who can.
    let (key, journal) = (key(), Journal::new());
    let job = deaf(&["--ttl", "1m", "--grace", "1s"], &key, &journal)
        .on(shared())
        .spawn();
    until_it_ticks(&journal);
    let dog = watchdog(&job);
    for signal in [
        Signal::SIGINT,
        Signal::SIGTERM,
        Signal::SIGHUP,
        Signal::SIGQUIT,
        Signal::SIGALRM,
        Signal::SIGPIPE,
        Signal::SIGUSR1,
    ] {
        dog.signal(signal);
    }
    job.signal(Signal::SIGKILL);
    for signal in [
        Signal::SIGINT,
        Signal::SIGTERM,
        Signal::SIGHUP,
        Signal::SIGALRM,
    ] {
        dog.signal(signal);
    }
    nothing_left(&job, &key);
    dead_in_time(shared(), &key, &journal);
}

#[test]
fn killed_at_any_moment_of_its_start_lease_leaves_neither_job_nor_watchdog() {
    // From the fork of the watchdog over the claim to the first instructions of the job.
    std::thread::scope(|scope| {
        for lane in 0..4u64 {
            scope.spawn(move || {
                for round in 0..8u64 {
                    let key = format!("killed-early-{}-{lane}-{round}", std::process::id());
                    let journal = Journal::new();
                    let job = deaf(&["--ttl", "10m", "--grace", "200ms"], &key, &journal)
                        .on(shared())
                        .spawn();
                    std::thread::sleep(std::time::Duration::from_millis(3 * (4 * round + lane)));
                    job.signal(Signal::SIGKILL);
                    job.wait_exit(crate::support::LIMIT);
                    nothing_left(&job, &key);
                }
            });
        }
    });
}

#[test]
fn a_whole_group_that_is_killed_with_lease_leaves_no_job() {
    // As a service manager or an impatient shell does it: `lease` and all that is in its process group.
    let (key, journal) = (key(), Journal::new());
    let job = deaf(&["--ttl", "1m", "--grace", "1s"], &key, &journal)
        .on(shared())
        .spawn();
    until_it_ticks(&journal);
    for process in proc::group(job.pid()) {
        process.signal(Signal::SIGKILL);
    }
    nothing_left(&job, &key);
}

#[test]
fn a_kill_of_lease_by_its_command_line_does_not_hit_the_watchdog() {
    let key = key();
    let run = Lease::new([
        "run", "--ttl", "30s", "--grace", "1s", &key, "--", "sleep", "1000",
    ])
    .on(shared())
    .spawn();
    let watchdog = watchdog(&run);
    until("the job runs", || !of_job(&key).is_empty());
    assert_eq!(watchdog.command().trim(), "job-watchdog");
    assert!(!watchdog.command().contains(&key));
    run.signal(Signal::SIGKILL);
    until_gone(&key);
}
