//! What a run says about its end.

use nix::sys::signal::Signal;

use crate::claimed;
use crate::support::job::{run, run_script, steal};
use crate::support::{Output, Proxy, Server, key, shared};

/// A loss is noticed within a second, and a database that is slow for a while is not taken for one.
const BEATING: [&str; 5] = ["-v", "--ttl", "15s", "--heartbeat", "1s"];

/// The last line on stderr, without its time.
fn last_line(out: &Output) -> String {
    let line = out.stderr.lines().last().unwrap_or_default();
    let after = " after ";
    let Some((before, rest)) = line.split_once(after) else {
        return line.to_owned();
    };
    let end = rest.find([',', '(']).unwrap_or(rest.len());
    let time = rest[..end].trim_end();
    assert!(time.ends_with('s'), "a time: {line}");
    format!("{before}{after}TIME{}", &rest[time.len()..])
}

#[test]
fn the_last_line_of_verbose_says_how_the_job_ended_and_how_long_it_took() {
    let (exits, dies, absent, busy) = (key(), key(), key(), key());
    let ended = |key: &str, script: &str| {
        let out = run_script(&["-v"], key, script).on(shared()).output();
        last_line(&out)
    };
    assert_eq!(
        ended(&exits, "exit 3"),
        format!("lease: {exits}: the job ended with exit code 3 after TIME")
    );
    assert_eq!(
        ended(&dies, "kill -9 $$"),
        format!("lease: {dies}: the job was ended by signal 9 after TIME")
    );
    let out = run(&["-v"], &absent, &["/no/such/program"])
        .on(shared())
        .output()
        .expect_code(127);
    assert_eq!(
        last_line(&out),
        format!("lease: {absent}: the job was not started")
    );
    claimed(&busy, &[]);
    let out = run(&["-v"], &busy, &["true"]).on(shared()).output();
    assert_eq!(
        last_line(&out.expect_code(75)),
        format!("lease: {busy}: the job was not started")
    );
    // It is for those who ask for it.
    let out = run_script(&[], &key(), "exit 3").on(shared()).output();
    assert_eq!(out.expect_code(3).stderr, "");
}

#[test]
fn the_last_line_of_verbose_tells_a_job_that_was_stopped_from_one_that_ended() {
    let key = key();
    let job = run_script(&BEATING, &key, "echo ready; exec sleep 1000")
        .on(shared())
        .spawn();
    job.wait_for_line("ready");
    steal(shared(), &key);
    let out = job.wait().expect_code(76);
    assert_eq!(
        last_line(&out),
        format!(
            "lease: {key}: the job was stopped after TIME, because its lease was lost (signal {})",
            Signal::SIGTERM as i32
        )
    );
}

#[test]
fn the_last_line_of_verbose_does_not_call_a_lease_lost_that_was_only_not_renewed() {
    let server = Server::start_plain();
    let proxy = Proxy::to(&server);
    let key = key();
    let job = run_script(&["-v", "--ttl", "3s"], &key, "echo ready; exec sleep 1000")
        .url(proxy.url())
        .spawn();
    job.wait_for_line("ready");
    proxy.refuse();
    let out = job.wait().expect_code(76);
    let end = format!("(signal {})", Signal::SIGTERM as i32);
    assert_eq!(
        last_line(&out),
        format!(
            "lease: {key}: the job was stopped after TIME, because its lease was not renewed in time {end}"
        )
    );
}
