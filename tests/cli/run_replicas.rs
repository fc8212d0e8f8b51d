//! Many machines, one entry of a crontab.

use std::time::Duration;

use crate::column;
use crate::support::job::Journal;
use crate::support::table::change;
use crate::support::{Lease, keeper, key, programs, shared};

const REPLICAS: usize = 8;

/// One entry, started as cron(8) would start it on a machine of that name.
fn cron(host: &str, own_host: bool, line: &str) -> Lease {
    let home = format!("HOME={}", keeper::root().display());
    let clean = [
        "env",
        "-i",
        &home,
        "PATH=/usr/bin:/bin",
        "SHELL=/bin/sh",
        "/bin/sh",
        "-c",
        line,
    ];
    if own_host {
        Lease::program("unshare")
            .args(["--uts", "sh", "-c", "hostname \"$0\" && exec \"$@\"", host])
            .args(clean)
    } else {
        Lease::program(clean[0]).args(&clean[1..])
    }
}

#[test]
fn eight_replicas_of_one_crontab_run_the_job_exactly_once_a_round_under_growing_fences() {
    let own_host = Lease::program("unshare")
        .args(["--uts", "hostname", "some-host"])
        .output()
        .code
        == Some(0);
    let (lanes, rounds) = (5, 4);
    std::thread::scope(|scope| {
        for lane in 0..lanes {
            let key = format!("{}-{lane}", key());
            scope.spawn(move || {
                let journal = Journal::new();
                for round in 0..rounds {
                    one_round(&key, round, own_host, &journal);
                }
                let fences: Vec<i64> = journal
                    .lines()
                    .iter()
                    .map(|line| line.parse().expect("a fence"))
                    .collect();
                assert_eq!(fences.len(), rounds);
                assert!(fences.windows(2).all(|w| w[0] < w[1]), "{fences:?}");
            });
        }
    });
}

fn one_round(key: &str, round: usize, own_host: bool, journal: &Journal) {
    // How far apart the clocks of the machines are; the first one and the last one differ by two seconds.
    let starts: Vec<Duration> = (0..REPLICAS)
        .map(|replica| Duration::from_millis(2000 * replica as u64 / (REPLICAS as u64 - 1)))
        .collect();
    let outs = std::thread::scope(|scope| {
        let threads: Vec<_> = starts
            .iter()
            .enumerate()
            .map(|(replica, start)| {
                scope.spawn(move || {
                    std::thread::sleep(*start);
                    let host = format!("replica-{replica}");
                    let name = if own_host { String::new() } else { format!("--name {host} ") };
                    // The database stands in the line, since cron passes no variable on.
                    let line = format!(
                        "{lease} run -d {url} {name}--ttl 30s --hold-at-least 60s {key} -- sh -c 'echo $FENCE >>{journal}'",
                        lease = programs::lease(),
                        url = shared().url(),
                        journal = journal.path(),
                    );
                    let out = cron(&host, own_host, &line).output();
                    if out.code == Some(0) {
                        assert_eq!(out.stderr, "", "{out}");
                    } else {
                        assert!(out.stderr.contains("replica-") || out.stderr.contains("--hold-at-least"), "{out}");
                    }
                    out.code
                })
            })
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().expect("a replica"))
            .collect::<Vec<_>>()
    });
    assert_eq!(journal.lines().len(), round + 1, "once a round: {outs:?}");
    let count = |code| outs.iter().filter(|out| **out == Some(code)).count();
    assert_eq!((count(0), count(75)), (1, REPLICAS - 1), "{outs:?}");
    assert_eq!(column(shared(), key, "holder"), "");
    // The next minute: the hold is over.
    change(
        shared(),
        key,
        "acquired_at = acquired_at - interval '1 min', expires_at = expires_at - interval '1 min'",
    );
}
