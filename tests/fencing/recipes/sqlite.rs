//! SQLite, by its own shell.

use std::process::Command;

use super::{dir, run, stands};
use crate::page::recipe;
use crate::support::{programs, skip};

#[test]
fn a_table_of_fences_and_a_trigger() {
    if programs::find("sqlite3").is_none() {
        return skip("sqlite3");
    }
    let dir = dir();
    let setup = recipe("sqlite-setup");
    for _ in 0..2 {
        assert!(run(&setup, None, dir.path(), &[]).status.success());
    }
    let query = |sql: &str| {
        let output = Command::new("sqlite3")
            .arg(dir.path().join("report.db"))
            .arg(sql)
            .output();
        String::from_utf8(output.expect("sqlite3").stdout).expect("text")
    };
    query("CREATE TABLE report (line TEXT)");
    stands(&recipe("sqlite"), 1, dir.path(), &[], || {
        query("SELECT count(*) FROM report; SELECT * FROM fence")
    });
    assert!(
        !run(&recipe("sqlite"), Some(0), dir.path(), &[])
            .status
            .success()
    );
    // Another error has the code of a stale fence; what it says tells them apart.
    query("DROP TABLE report");
    let output = run(&recipe("sqlite"), Some(i64::MAX), dir.path(), &[]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!said.contains("stale"), "{output:?}");
}
