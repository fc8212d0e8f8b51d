//! What a run says about its end, and about who has ended its lease.

use nix::sys::signal::Signal;

use crate::support::job::{run, run_script, steal};
use crate::support::rows::{by_force, evicted};
use crate::support::{Output, Proxy, Server, key, shared};
use crate::{claimed, lease};

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

#[test]
fn a_run_that_was_evicted_says_by_whom() {
    let key = key();
    let job = run_script(&BEATING[1..], &key, "echo ready; sleep 1000; true")
        .on(shared())
        .spawn();
    job.wait_for_line("ready");
    lease(&["release", "--force", &key]).output().expect_code(0);
    let out = job.wait().expect_code(76);
    assert_eq!(
        out.stderr,
        format!("lease: {key} is lost: {}; the job is stopped\n", evicted())
    );
}

#[test]
fn a_run_whose_key_was_claimed_after_an_eviction_says_both() {
    let key = key();
    let job = run_script(&["--ttl", "1h"], &key, "echo ready; read end")
        .open_input()
        .on(shared())
        .spawn();
    job.wait_for_line("ready");
    lease(&["release", "--force", &key]).output().expect_code(0);
    let other = claimed(&key, &["--holder", "other"]);
    job.close_input();
    let out = job.wait().expect_code(76);
    assert_eq!(
        out.stderr,
        format!(
            "lease: {key} was lost before the job ended with code 1: other holds it now (fence {}), after an eviction {}\n",
            other.fence,
            by_force()
        )
    );
}

#[test]
fn who_has_evicted_a_run_is_not_known_to_a_role_that_may_not_read_the_history() {
    let key = key();
    lease(&["init"]).output().expect_code(0);
    shared().psql(
        "DO $$ BEGIN CREATE ROLE unread LOGIN; EXCEPTION WHEN duplicate_object THEN NULL; END $$; \
         GRANT SELECT, INSERT, UPDATE ON public.lease TO unread",
    );
    let job = run_script(&BEATING[1..], &key, "echo ready; sleep 1000; true")
        .env("LEASE_DATABASE_URL", shared().url_for("unread", "postgres"))
        .spawn();
    job.wait_for_line("ready");
    lease(&["release", "--force", &key]).output().expect_code(0);
    let out = job.wait().expect_code(76);
    assert_eq!(
        out.stderr,
        format!(
            "lease: {key} is lost: it was released, by force or by the job itself; the job is stopped\n"
        )
    );
}

#[test]
fn a_renewal_of_a_term_that_was_evicted_says_by_whom() {
    let key = key();
    let term = claimed(&key, &[]);
    lease(&["release", "--force", &key]).output().expect_code(0);
    let out = crate::with_term("renew", &term).output().expect_code(76);
    assert_eq!(out.stderr, format!("lease: {key} is lost: {}\n", evicted()));
    let out = crate::with_term("release", &term).output().expect_code(76);
    assert_eq!(
        out.stderr,
        format!("lease: cannot release {key}: {}\n", evicted())
    );
}
