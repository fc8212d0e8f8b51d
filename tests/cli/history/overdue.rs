//! `lease history --overdue`.

use super::read::run;
use crate::support::{key, until};
use crate::{claimed, lease};

#[test]
fn overdue_is_silent_while_all_is_well_and_names_the_keys_that_are_not() {
    let (good, bad, never) = (key(), key(), key());
    run(&good, "exit 0").output().expect_code(0);
    run(&good, "exit 4").output().expect_code(4);
    run(&bad, "exit 5").output().expect_code(5);
    let out = lease(&["history", "--overdue", "1h", &good]).output();
    let out = out.expect_code(0);
    assert_eq!((out.stdout.as_str(), out.stderr.as_str()), ("", ""));
    let out = lease(&["history", "--overdue", "1h", &good, &bad, &never])
        .output()
        .expect_code(1)
        .stdout;
    assert!(!out.contains(&good), "{out}");
    let line = |key: &str| {
        let found = out.lines().find(|line| line.starts_with(key));
        found.map(str::to_owned).expect("a line")
    };
    assert!(line(&bad).contains("never") && line(&bad).contains("exit 5, "));
    assert!(line(&never).contains("it has never run"));
    until("the success is older than that", || {
        lease(&["history", "--overdue", "1ms", &good]).output().code == Some(1)
    });
}

#[test]
fn a_job_that_hangs_is_overdue_and_its_holder_is_named() {
    let key = key();
    let term = claimed(&key, &["--name", "web-1"]);
    let out = lease(&["history", "--overdue", "1h", &key])
        .output()
        .expect_code(1)
        .stdout;
    assert!(
        out.contains(&format!("{} has held it for ", term.holder)),
        "{out}"
    );
}
