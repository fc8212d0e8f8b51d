//! The job runs as if `lease` were not there, and nothing of it is left afterwards.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::time::Duration;

use super::job;
use super::support::job::around;
use super::support::{Lease, keeper, key, proc, shared};

#[test]
fn a_script_without_an_interpreter_line_is_run_by_sh() {
    use std::os::unix::fs::PermissionsExt as _;
    let script = keeper::dir("plain").join("script");
    std::fs::write(&script, "echo \"$1\"\n").expect("a file");
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).expect("chmod");
    let output = Lease::new(["run", &key(), "--"])
        .arg(&script)
        .arg("hello")
        .on(shared())
        .output()
        .expect_code(0);
    assert_eq!(output.stdout, "hello\n");
}

#[test]
fn the_environment_arrives_byte_for_byte_and_in_its_order() {
    let with = |call: Lease| {
        call.env("ZZ", "last")
            .env("AA", OsStr::from_bytes(b"\xff\xfe"))
            .env("FENCE", "old")
            .on(shared())
    };
    let call = with(Lease::new([
        "run",
        &key(),
        "--",
        "cat",
        "/proc/self/environ",
    ]));
    let output = call.output().expect_code(0);
    let entries = |bytes: &[u8]| -> Vec<Vec<u8>> {
        bytes
            .split(|b| *b == 0)
            .filter(|e| !e.is_empty())
            .map(<[u8]>::to_vec)
            .collect()
    };
    let ours = |entry: &Vec<u8>| {
        [&b"FENCE="[..], b"LEASE_KEY=", b"LEASE_HOLDER="]
            .iter()
            .any(|name| entry.starts_with(name))
    };
    let (set, rest): (Vec<_>, Vec<_>) = entries(&output.stdout_bytes).into_iter().partition(ours);
    assert_eq!(set.len(), 3, "{output}");
    assert!(!set.contains(&b"FENCE=old".to_vec()), "{output}");
    let plain = with(Lease::program("cat").arg("/proc/self/environ")).output();
    let names = |entries: &[Vec<u8>]| -> Vec<Vec<u8>> {
        let name = |e: &Vec<u8>| e.split(|b| *b == b'=').next().unwrap_or_default().to_vec();
        entries.iter().filter(|e| !ours(e)).map(name).collect()
    };
    assert_eq!(names(&rest), names(&entries(&plain.stdout_bytes)));
}

#[test]
fn the_job_has_its_three_descriptors_and_what_lease_itself_was_given() {
    let list = "for fd in /proc/self/fd/*; do readlink $fd; done";
    let plain = Lease::program("sh")
        .args(["-c", "exec sh -c \"$0\" 7</etc/passwd", list])
        .output();
    let line = format!("exec \"$LEASE\" run \"$0\" -- sh -c '{list}' 7</etc/passwd");
    let under = around("sh", &line)
        .arg(key())
        .on(shared())
        .output()
        .expect_code(0);
    assert_eq!(
        plain.stdout.lines().count(),
        under.stdout.lines().count(),
        "{under}"
    );
    assert!(under.stdout.contains("/etc/passwd"), "{under}");
}

#[test]
fn what_is_left_in_the_group_is_counted_and_stopped() {
    let run = job(
        &["--grace", "1s"],
        "trap '' HUP; (trap '' TERM; sleep 1000) & sleep 1000 & exit 4",
    );
    let output = run.output().expect_code(4);
    assert!(
        output.stderr.contains('2') || output.stderr.contains('3'),
        "{output}"
    );
    assert!(output.took < Duration::from_secs(10), "{output}");
    let again = job(
        &["--heartbeat", "2s", "--grace", "20s"],
        "sleep 30 & echo ok",
    )
    .output()
    .expect_code(0);
    assert_eq!(again.stdout, "ok\n");
    assert!(again.took < Duration::from_secs(15), "{again}");
}

#[test]
fn a_process_that_left_the_group_on_purpose_is_not_touched() {
    let script =
        "setsid sleep 1000 <&- >&- 2>&- & while ! grep -q sleep /proc/$!/comm; do :; done; exit 0";
    let run = job(&[], script).spawn();
    run.wait_exit(Duration::from_secs(20));
    assert_eq!(run.named("sleep").len(), 1);
}

#[test]
fn a_zombie_that_is_never_reaped_does_not_keep_the_run() {
    // The parent leaves the group and never waits; its child stays in the group as a zombie.
    if Lease::program("python3").args(["-c", "pass"]).output().code != Some(0) {
        super::support::skip("python3");
        return;
    }
    let holder = "import os, time\n\
        r, w = os.pipe()\n\
        if os.fork() == 0:\n    \
            g = os.getpgrp()\n    \
            if os.fork() == 0:\n        os._exit(0)\n    \
            os.setsid()\n    \
            os.write(w, b'x')\n    \
            time.sleep(1000)\n\
        os.read(r, 1)\n";
    let run = Lease::new([
        "run",
        &key(),
        "--grace",
        "9s",
        "--",
        "python3",
        "-c",
        holder,
    ])
    .on(shared())
    .spawn();
    run.wait_exit(Duration::from_secs(5));
    assert!(proc::all().iter().any(proc::Process::is_zombie));
}

#[test]
fn no_core_file_of_lease_is_left() {
    let dir = keeper::dir("core");
    let line =
        "ulimit -c unlimited; \"$LEASE\" run \"$0\" -- sh -c 'ulimit -c 0; kill -QUIT $$'; echo $?";
    let output = around("bash", line)
        .arg(key())
        .dir(&dir)
        .on(shared())
        .output();
    assert_eq!(output.stdout, "131\n", "{output}");
    let left = std::fs::read_dir(&dir).expect("a directory").count();
    assert_eq!(left, 0, "{output}");
}

#[test]
fn closed_standard_descriptors_do_no_harm() {
    let line = "\"$LEASE\" run \"$0\" -- true <&- >&- 2>&-";
    let output = around("sh", line).arg(key()).on(shared()).output();
    output.expect_code(0);
}
