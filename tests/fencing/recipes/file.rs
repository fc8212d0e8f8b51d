//! A file that is replaced together with its fence.

use std::fs;
use std::thread;

use super::{dir, run, stands};
use crate::page::recipe;

#[test]
fn a_file_under_flock() {
    let dir = dir();
    let script = format!(
        "set -- report.txt\n{}\necho contents | publish report.txt",
        recipe("file")
    );
    stands(&script, dir.path(), &[], || {
        let mut names: Vec<_> = fs::read_dir(dir.path())
            .expect("the directory")
            .map(|entry| entry.expect("an entry").file_name())
            .filter(|name| name != "report.txt.lock")
            .collect();
        names.sort();
        format!(
            "{names:?}{}",
            fs::read_to_string(dir.path().join("report.txt")).unwrap_or_default()
        )
    });
    fs::write(dir.path().join("report.txt"), "fence torn\n").expect("a file");
    assert!(
        !run(&script, Some(i64::MAX), dir.path(), &[])
            .status
            .success(),
        "not a number: refused"
    );
}

#[test]
fn many_that_publish_a_file_at_once_leave_the_newest() {
    let dir = dir();
    let script = format!(
        "{}\necho \"by $FENCE\" | publish report.txt",
        recipe("file")
    );
    thread::scope(|scope| {
        for fence in 1..=20 {
            let (script, dir) = (&script, dir.path());
            scope.spawn(move || run(script, Some(fence), dir, &[]));
        }
    });
    let left = fs::read_to_string(dir.path().join("report.txt")).expect("a file");
    assert_eq!(left, "fence 20\nby 20\n");
}
