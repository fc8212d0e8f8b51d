//! Streams at full length.

use crate::support::job::{around, until_gone};
use crate::support::{key, shared};

#[test]
fn two_gigabytes_go_through_stdout_to_the_last_byte() {
    let key = key();
    let script = "\"$LEASE\" run \"$0\" -- head -c 2147483648 /dev/zero | wc -c";
    let out = around("sh", script)
        .arg(&key)
        .on(shared())
        .output()
        .expect_code(0);
    assert_eq!(out.stdout.trim(), "2147483648", "{out}");
}

#[test]
fn a_reader_that_goes_away_ends_the_job_as_without_lease() {
    let key = key();
    let script = "{ \"$LEASE\" run \"$0\" -- yes; echo $? >&2; } | head -n 1";
    let out = around("sh", script)
        .arg(&key)
        .on(shared())
        .output()
        .expect_code(0);
    // 128 + PIPE, and no word of `lease`.
    assert_eq!(
        (out.stdout.as_str(), out.stderr.as_str()),
        ("y\n", "141\n"),
        "{out}"
    );
    until_gone(&key);
}
