//! No thread is to be had: at any step of a run, once or from then on.

use std::os::unix::fs::MetadataExt as _;
use std::time::Duration;

use crate::late_start::{can_trace, injecting};
use crate::support::job::{Journal, run_script};
use crate::support::table::column;
use crate::support::{Lease, Running, key, programs, serial, shared, skip, until};

/// More threads than a short run starts one after another in any of its threads.
const STEPS: u32 = 6;

#[test]
fn a_thread_that_cannot_be_created_is_reported_in_words_and_leaves_nothing_claimed() {
    if !can_trace() {
        return;
    }
    Lease::new(["init"]).on(shared()).output().expect_code(0);
    std::thread::scope(|scope| {
        for step in 1..=STEPS {
            for from_then_on in ["", "+"] {
                scope.spawn(move || {
                    let (key, journal) = (key(), Journal::new());
                    let injection = format!("clone3:error=EAGAIN:when={step}{from_then_on}");
                    let options = ["--ttl", "4s", "--db-timeout", "2s"];
                    let job = format!("echo acted >>{}", journal.path());
                    let out = run_script(&options, &key, &job)
                        .wrapped(injecting(&[&injection]))
                        .on(shared())
                        .output();
                    let acted = !journal.lines().is_empty();
                    match out.code {
                        Some(0) => assert!(acted, "{injection}: {out}"),
                        Some(69 | 125) => {
                            assert!(
                                out.stderr.starts_with("lease: cannot "),
                                "{injection}: {out}"
                            );
                        }
                        _ => panic!("{injection}: {out}"),
                    }
                    assert!(!out.stderr.contains("os error"), "{injection}: {out}");
                    let row = column(shared(), &key, "holder");
                    assert_eq!(row, "", "{injection}: {out}");
                });
            }
        }
    });
}

#[test]
fn a_thread_that_cannot_be_created_does_not_suppress_messages() {
    if !can_trace() {
        return;
    }
    let key = key();
    Lease::new(["claim", "--ttl", "10m", "--holder", "first", &key])
        .on(shared())
        .output()
        .expect_code(0);
    for step in 1..=STEPS {
        let injection = format!("clone3:error=EAGAIN:when={step}");
        for verb in [&["claim", &key][..], &["run", &key, "--", "true"]] {
            let out = Lease::new(verb)
                .wrapped(injecting(&[&injection]))
                .on(shared())
                .output();
            let told = match out.code {
                Some(75) => format!("lease: {key} is held by first "),
                Some(69 | 125) => "lease: cannot ".to_owned(),
                _ => panic!("{injection}: {out}"),
            };
            assert!(out.stderr.contains(&told), "{injection}: {out}");
        }
    }
}

#[test]
fn a_watch_that_cannot_hear_signals_does_not_begin() {
    if !can_trace() {
        return;
    }
    let watch = Lease::new(["status", "--watch", "100ms"])
        .wrapped(injecting(&["clone3:error=EAGAIN:when=1"]))
        .on(shared())
        .spawn();
    let out = watch.wait().expect_code(125);
    assert_eq!(
        out.stderr,
        "lease: cannot catch signals: resource temporarily unavailable\n"
    );
}

/// A run under a user of its own, so that its processes can be counted and limited.
struct Limited {
    user: String,
    run: Running,
}

impl Limited {
    fn start(options: &[&str], key: &str, script: &str) -> Option<Self> {
        if !nix::unistd::geteuid().is_root() || programs::find("setpriv").is_none() {
            skip("root and setpriv");
            return None;
        }
        let user = (u64::from(std::process::id()) * 1000 + serial() + 1_000_000).to_string();
        let run = run_script(options, key, script)
            .wrapped(as_user(&user))
            .open_input()
            .on(shared())
            .spawn();
        run.wait_for_line("ready");
        Some(Self { user, run })
    }

    /// How many processes and threads it has, with all that it started.
    fn tasks(&self) -> usize {
        let user: u32 = self.user.parse().expect("a number");
        let processes = std::fs::read_dir("/proc").expect("/proc").flatten();
        processes
            .filter(|process| process.metadata().is_ok_and(|m| m.uid() == user))
            .filter_map(|process| std::fs::read_dir(process.path().join("task")).ok())
            .map(Iterator::count)
            .sum()
    }

    /// How many processes and threads its user may have. A limit that was lowered can be raised again.
    fn limit(&self, tasks: usize) {
        Lease::program("prlimit")
            .arg(format!("--pid={}", self.run.pid()))
            .arg(format!("--nproc={tasks}:"))
            .wrapped(as_user(&self.user))
            .output()
            .expect_code(0);
    }

    /// Leaves room for so many threads beyond those that there are between two heartbeats.
    fn leave_room_for(&self, threads: usize) {
        let mut least = usize::MAX;
        until("some heartbeats have passed", || {
            least = least.min(self.tasks());
            self.run.stderr().matches("renew: answered").count() > 2
        });
        self.limit(least + threads);
    }
}

fn as_user(user: &str) -> [String; 4] {
    let (user, group) = (format!("--reuid={user}"), format!("--regid={user}"));
    [
        "setpriv".to_owned(),
        user,
        group,
        "--clear-groups".to_owned(),
    ]
}

const NO_THREAD: &str = "resource temporarily unavailable";

#[test]
fn a_run_without_a_thread_for_a_while_keeps_its_lease() {
    // A heartbeat takes one thread after another.
    for room in 0..2 {
        let key = key();
        let options = ["-v", "--ttl", "30s", "--heartbeat", "500ms"];
        let Some(limited) = Limited::start(&options, &key, "echo ready; read end; exit 7") else {
            return;
        };
        limited.leave_room_for(room);
        limited.run.wait_for_line("renew: failed after");
        limited.limit(1000);
        limited
            .run
            .wait_for_line(&format!("{key} is renewed again"));
        limited.run.close_input();
        let out = limited.run.wait().expect_code(7);
        let failure = out
            .stderr
            .lines()
            .find(|line| line.contains("cannot renew"));
        assert!(
            failure.is_some_and(|line| line.contains(NO_THREAD)),
            "{out}"
        );
        assert!(!out.stderr.contains("os error"), "{out}");
        assert_eq!(column(shared(), &key, "holder"), "");
    }
}

#[test]
fn a_run_without_a_thread_stops_its_job_in_time() {
    for room in 0..2 {
        let key = key();
        let options = ["-v", "--ttl", "4s", "--heartbeat", "500ms"];
        let Some(limited) = Limited::start(&options, &key, "trap '' TERM; echo ready; read end")
        else {
            return;
        };
        limited.leave_room_for(room);
        let out = limited
            .run
            .wait_within(Duration::from_secs(60))
            .expect_code(76);
        let told = format!("lease: {key} could not be renewed in time: ");
        let line = out.stderr.lines().find(|line| line.starts_with(&told));
        assert!(line.is_some_and(|line| line.contains(NO_THREAD)), "{out}");
    }
}

#[test]
fn a_run_that_gets_no_thread_for_its_release_says_until_when_the_lease_stays() {
    let key = key();
    let options = ["--ttl", "10m", "--db-timeout", "2s"];
    let Some(limited) = Limited::start(&options, &key, "echo ready; read end; exit 7") else {
        return;
    };
    limited.limit(0);
    limited.run.close_input();
    let out = limited.run.wait().expect_code(7);
    let told = format!("lease: cannot release {key}: ");
    assert!(out.stderr.starts_with(&told), "{out}");
    assert!(
        out.stderr.contains(NO_THREAD) && out.stderr.contains("; the lease expires at 2"),
        "{out}"
    );
}
