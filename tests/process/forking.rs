//! A group in which each process starts the next one and ends: a list of processes never shows all of it, a signal to
//! the group hits all of it. Whatever ends a run, nothing of that group acts afterwards.

use std::time::Duration;

use nix::sys::signal::Signal::SIGKILL;

use super::support::job::{Journal, of_job, run, run_script, steal, until_gone};
use super::support::mounts::without_proc;
use super::support::table::column;
use super::support::{LIMIT, Lease, key, shared, skip, stays};
use super::watchdog;

/// How the group keeps forking: in perl, or in a shell whose function calls itself in the background.
#[derive(Clone, Copy, Debug)]
enum Chain {
    /// Milliseconds from one process to the next, and whether it ignores TERM.
    Perl(u32, bool),
    Shell,
}

const CHAINS: [Chain; 4] = [
    Chain::Shell,
    Chain::Perl(5, true),
    Chain::Perl(20, true),
    Chain::Perl(1, false),
];

/// Each process notes `x`, and it goes on for longer than any stop takes, but not for ever. `$0` is the journal.
const PERL: &str = r#"
my ($journal, $pause, $deaf, $last) = @ARGV;
$SIG{TERM} = "IGNORE" if $deaf;
exit if fork;
for (1 .. 10_000 / $pause) {
    open my $out, ">>", $journal or exit;
    syswrite $out, "x\n";
    close $out;
    select undef, undef, undef, $pause / 1000;
    exit if fork;
}"#;

const SHELL: &str = r#"trap "" TERM
h() { echo x >>$JOURNAL; sleep 0.005; [ $1 -gt 1000 ] || h $(($1+1)) & exit; }
h 1 & exit 0"#;

impl Chain {
    /// A script that starts the group and ends.
    fn script(self, journal: &Journal) -> String {
        let path = journal.path();
        match self {
            Self::Perl(pause, deaf) => {
                let deaf = u8::from(deaf);
                format!("perl -e '{PERL}' {path} {pause} {deaf}; exit 0")
            }
            Self::Shell => format!("JOURNAL={path}\n{SHELL}"),
        }
    }
}

/// Nothing may be noted from now on, by a group that notes something every few milliseconds.
#[track_caller]
fn nothing_is_noted(journal: &Journal, what: &str) {
    let noted = journal.lines();
    stays(what, Duration::from_millis(300), || {
        journal.lines() == noted
    });
}

#[test]
fn the_next_holder_of_a_lease_never_works_beside_a_group_that_keeps_forking() {
    for chain in CHAINS {
        for _ in 0..2 {
            let (key, journal) = (key(), Journal::new());
            let script = format!(
                "echo first >>{0}\n{1}",
                journal.path(),
                chain.script(&journal)
            );
            let first = run_script(&["--ttl", "3s"], &key, &script)
                .on(shared())
                .spawn();
            journal.wait_for("first");
            let script = format!("echo second >>{}; sleep 0.3", journal.path());
            let second = run_script(&["--wait", "1m"], &key, &script)
                .on(shared())
                .output()
                .expect_code(0);
            first.wait().expect_code(0);
            let lines = journal.lines();
            let after = lines.iter().skip_while(|line| *line != "second").count();
            assert_eq!(after, 1, "{chain:?}: {lines:?} {second}");
            nothing_is_noted(&journal, "the group is dead");
        }
    }
}

#[test]
fn a_group_that_keeps_forking_after_the_jobs_end_is_named_and_killed_when_its_grace_is_over() {
    let (key, journal) = (key(), Journal::new());
    let script = Chain::Perl(5, true).script(&journal);
    let run = run_script(&["--ttl", "9s", "--grace", "1s"], &key, &script)
        .on(shared())
        .spawn();
    assert_eq!(run.wait_exit(LIMIT).code(), Some(0));
    let took = run.started().elapsed();
    nothing_is_noted(&journal, "the group is dead");
    let out = run.wait();
    assert!(took > Duration::from_secs(1), "its grace: {took:?} {out}");
    for part in [
        "process",
        "in its process group",
        "was killed",
        "kept starting",
    ] {
        assert!(out.stderr.contains(part), "{part}: {out}");
    }
}

#[test]
fn after_a_loss_nothing_of_a_group_that_keeps_forking_outlives_the_run() {
    for chain in CHAINS {
        let (key, journal) = (key(), Journal::new());
        let script = format!("({}) & echo ready; exec sleep 1000", chain.script(&journal));
        let run = run_script(
            &["--ttl", "15s", "--heartbeat", "300ms", "--grace", "500ms"],
            &key,
            &script,
        )
        .on(shared())
        .spawn();
        journal.wait_for("x");
        steal(shared(), &key);
        assert_eq!(run.wait_exit(LIMIT).code(), Some(76));
        nothing_is_noted(&journal, &format!("{chain:?} is dead: {}", run.stderr()));
    }
}

#[test]
fn a_watchdog_stays_until_a_group_that_keeps_forking_is_dead() {
    for replaced in [false, true] {
        for chain in CHAINS {
            let (key, journal) = (key(), Journal::new());
            let script = format!("({}) & exec sleep 1000", chain.script(&journal));
            let run = run_script(&["--ttl", "1m", "--grace", "500ms"], &key, &script)
                .on(shared())
                .spawn();
            journal.wait_for("x");
            let mut dog = watchdog(&run, None);
            if replaced {
                dog.signal(SIGKILL);
                dog = watchdog(&run, Some(&dog));
            }
            run.signal(SIGKILL);
            super::until("the watchdog is through with it", || !dog.is_alive());
            nothing_is_noted(&journal, &format!("{chain:?} is dead"));
            until_gone(&key);
            let held = column(shared(), &key, "expires_at > clock_timestamp()");
            assert_eq!(held, "t", "dead before the expiry");
        }
    }
}

#[test]
fn a_watchdog_that_is_replaced_while_a_forking_group_is_stopped_ends_the_group() {
    let (key, journal) = (key(), Journal::new());
    let script = Chain::Perl(5, true).script(&journal);
    let run = run_script(&["--ttl", "1m", "--grace", "3s"], &key, &script)
        .on(shared())
        .spawn();
    run.wait_for_line("in its process group");
    let first = watchdog(&run, None);
    first.signal(SIGKILL);
    let second = watchdog(&run, Some(&first));
    run.signal(SIGKILL);
    super::until("the watchdog is through with it", || !second.is_alive());
    nothing_is_noted(&journal, "the group is dead");
    until_gone(&key);
}

/// Leaves a zombie in the job's group whose parent has left the group and never asks for it.
const UNASKED: &str = r#"
pipe my $read, my $write;
if (!fork) {
    exit if !fork;
    setpgrp 0, 0;
    syswrite $write, "x";
    sleep 1000;
}
sysread $read, my $left, 1;"#;

#[test]
fn a_zombie_that_is_never_reaped_does_not_keep_a_run_that_lost_its_lease() {
    let key = key();
    let script = format!("perl -e '{UNASKED}'; echo ready; sleep 1000; true");
    let job = run_script(
        &["--ttl", "1m", "--heartbeat", "300ms", "--grace", "20s"],
        &key,
        &script,
    )
    .on(shared())
    .spawn();
    job.wait_for_line("ready");
    steal(shared(), &key);
    let status = job.wait_exit(Duration::from_secs(15));
    assert_eq!(status.code(), Some(76));
    assert!(!job.stderr().contains("killed"), "{}", job.stderr());
}

#[test]
fn a_zombie_that_is_never_reaped_is_not_reported_as_stopped() {
    let key = key();
    let job = run(&["--grace", "9s"], &key, &["perl", "-e", UNASKED])
        .on(shared())
        .spawn();
    assert_eq!(job.wait_exit(Duration::from_secs(8)).code(), Some(0));
    assert_eq!(job.stderr(), "");
}

#[test]
fn without_proc_what_is_left_is_stopped_uncounted_and_a_zombie_is_not_waited_for_for_ever() {
    let Some(words) = without_proc() else {
        skip("mount namespaces");
        return;
    };
    let hidden = |key: &str, script: &str| -> Lease {
        run_script(&["--ttl", "3s"], key, script)
            .wrapped(&words)
            .on(shared())
    };
    for chain in CHAINS {
        let (key, journal) = (key(), Journal::new());
        let run = hidden(&key, &chain.script(&journal)).spawn();
        assert_eq!(run.wait_exit(LIMIT).code(), Some(0));
        nothing_is_noted(&journal, &format!("{chain:?} is dead: {}", run.stderr()));
    }
    let key = key();
    let zombie = hidden(&key, &format!("perl -e '{UNASKED}'")).spawn();
    let status = zombie.wait_exit(Duration::from_secs(20));
    assert_eq!(status.code(), Some(0), "{}", zombie.stderr());
    let left = "trap '' TERM; sleep 1000 & sleep 1000 & exit 5";
    let out = hidden(&super::key(), left).output().expect_code(5);
    assert!(
        out.stderr.contains("left processes in its process group"),
        "{out}"
    );
    assert!(of_job(&key).iter().all(|p| p.name == "perl"), "{key}");
}
