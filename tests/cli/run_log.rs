//! `lease run --log-format json`: each message is one object on one line.

use nix::sys::signal::Signal;
use serde_json::Value;

use crate::support::job::{run_script, steal, until_gone};
use crate::support::{Lease, Output, Proxy, Server, key, shared, until};
use crate::{claimed, lease};

const JSON: [&str; 6] = ["--log-format", "json", "--ttl", "15s", "--heartbeat", "1s"];

/// A run that says every step.
fn run(key: &str, script: &str) -> Lease {
    run_script(&[&JSON[..], &["-v"]].concat(), key, script).on(shared())
}

/// Every line of stderr, which must be an object with the fields of every message, and an event that the manual lists.
fn messages(stderr: &str, key: &str) -> Vec<Value> {
    let manual = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/man/lease-run.1"));
    let manual = manual.expect("the manual").replace("\\_", "_");
    stderr
        .lines()
        .map(|line| {
            let message: Value =
                serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}"));
            let time = message["time"].as_str().expect("a time");
            let time: jiff::Timestamp = time.parse().expect("RFC 3339");
            let age = jiff::Timestamp::now().duration_since(time).as_secs();
            assert!((-5..600).contains(&age), "{line}");
            assert_eq!(message["key"], key, "{line}");
            let level = message["level"].as_str().expect("a level");
            assert!(["error", "info", "debug"].contains(&level), "{line}");
            assert!(message["message"].is_string(), "{line}");
            assert!(message.get("fence").is_some(), "{line}");
            assert!(message["holder"].is_string(), "{line}");
            let event = message["event"].as_str().expect("an event");
            assert!(manual.contains(event), "the manual lists {event}");
            message
        })
        .collect()
}

fn events(out: &Output, key: &str) -> Vec<String> {
    messages(&out.stderr, key)
        .iter()
        .map(|message| message["event"].as_str().unwrap_or_default().to_owned())
        .filter(|event| event != "database" && event != "renewed")
        .collect()
}

/// The one message about this event.
fn only(out: &Output, key: &str, event: &str) -> Value {
    let mut found = messages(&out.stderr, key);
    found.retain(|message| message["event"] == event);
    assert_eq!(found.len(), 1, "{event}: {out}");
    found.remove(0)
}

#[test]
fn a_run_writes_each_message_as_an_object_with_its_lease_and_its_event() {
    let key = key();
    let out = run(&key, "exit 3").output().expect_code(3);
    assert_eq!(
        events(&out, &key),
        ["claimed", "job_started", "released", "run_ended"]
    );
    let claimed = only(&out, &key, "claimed");
    assert!(claimed["fence"].as_i64().is_some_and(|fence| fence > 0));
    assert!(
        claimed["expires_at"]
            .as_str()
            .is_some_and(|at| at.ends_with('Z'))
    );
    let ended = only(&out, &key, "run_ended");
    assert_eq!(
        (&ended["exit_code"], &ended["job"]),
        (&3.into(), &"ended".into())
    );
    assert!(ended["took_ms"].is_u64(), "{ended}");
    assert_eq!(ended["fence"], claimed["fence"]);
    // Without -v nothing is said, in this format too.
    let out = run_script(&JSON, &key, "exit 3").on(shared()).output();
    assert_eq!(out.expect_code(3).stderr, "");
}

#[test]
fn a_key_that_someone_else_holds_is_busy_and_the_variable_stands_in_for_the_option() {
    let key = key();
    claimed(&key, &["--holder", "other"]);
    let call = |variable: &str| {
        lease(&["run", &key, "--", "true"])
            .env("LEASE_LOG_FORMAT", variable)
            .output()
    };
    let out = call("json").expect_code(75);
    let busy = only(&out, &key, "busy");
    assert_eq!(
        (&busy["held_by"], &busy["level"]),
        (&"other".into(), &"info".into())
    );
    assert_eq!(busy["fence"], Value::Null);
    let text = call("").expect_code(75).stderr;
    let message = busy["message"].as_str().expect("a text");
    let same = message.split(", expires").next().expect("a part");
    assert!(text.starts_with(&format!("lease: {same}")), "{text}{busy}");
    let out = call("xml").expect_code(2);
    assert_eq!(
        out.stderr,
        "lease: LEASE_LOG_FORMAT: \"xml\" is not a format (text or json)\n"
    );
}

#[test]
fn a_run_that_is_not_due_says_where_the_last_success_was_and_when_it_is_due() {
    let key = key();
    let call = || {
        lease(&["run", "--log-format", "json", "--once-per", "1h", &key])
            .args(["--", "true"])
            .output()
    };
    call().expect_code(0);
    let not_due = only(&call().expect_code(75), &key, "not_due");
    let host = hostname::get().expect("a name");
    assert_eq!(not_due["succeeded_on"], host.to_string_lossy().into_owned());
    let ms = |field: &str| not_due[field].as_u64().expect("milliseconds");
    assert_eq!(ms("succeeded_ago_ms") + ms("due_in_ms"), 3_600_000);
}

#[test]
fn a_lost_lease_says_who_has_it_or_who_has_evicted_the_run() {
    let (stolen, evicted) = (key(), key());
    let jobs = [&stolen, &evicted].map(|key| {
        let job = run(key, "echo ready; exec sleep 1000").spawn();
        job.wait_for_line("ready");
        job
    });
    steal(shared(), &stolen);
    lease(&["release", "--force", &evicted])
        .output()
        .expect_code(0);
    let [one, other] = jobs.map(|job| job.wait().expect_code(76));
    let lost = only(&one, &stolen, "lost");
    assert_eq!(
        (&lost["held_by"], &lost["job"]),
        (&"thief-1".into(), &"stopped".into())
    );
    let lost = only(&other, &evicted, "lost");
    assert_eq!(lost["cause"], "evicted");
    assert_eq!(lost["evicted_by_role"], "postgres");
    let host = hostname::get().expect("a name");
    assert_eq!(lost["evicted_by_host"], host.to_string_lossy().into_owned());
    let ended = only(&other, &evicted, "run_ended");
    assert_eq!(ended["exit_signal"], Signal::SIGTERM as i32);
}

#[test]
fn renewals_that_fail_are_objects_too() {
    let server = Server::start_plain();
    let proxy = Proxy::to(&server);
    let key = key();
    let options = [
        "--log-format",
        "json",
        "-v",
        "--ttl",
        "5s",
        "--heartbeat",
        "500ms",
    ];
    let job = run_script(&options, &key, "echo ready; exec sleep 1000")
        .url(proxy.url())
        .spawn();
    job.wait_for_line("ready");
    proxy.refuse();
    job.wait_for_line("\"renewal_failing\"");
    let out = job.wait().expect_code(76);
    let lost = only(&out, &key, "lost");
    assert_eq!(lost["cause"], "not_renewed");
    assert!(lost["reason"].is_string(), "{lost}");
}

#[test]
fn the_watchdog_of_a_killed_lease_writes_an_object_with_the_time_at_which_it_does() {
    let key = key();
    let job = run(&key, "echo ready; exec sleep 1000").spawn();
    job.wait_for_line("ready");
    let before = jiff::Timestamp::now();
    job.signal(Signal::SIGKILL);
    until_gone(&key);
    job.wait_for_line("watchdog_stopped_job");
    until("the watchdog has ended", || job.processes().is_empty());
    let out = job.wait();
    let told = only(&out, &key, "watchdog_stopped_job");
    let time = told["time"].as_str().expect("a time");
    let time: jiff::Timestamp = time.parse().expect("RFC 3339");
    assert!(time.as_millisecond() >= before.as_millisecond(), "{told}");
    assert_eq!(told["fence"], Value::Null);
}

#[test]
fn the_last_error_of_all_is_an_object_and_no_text_can_break_its_line() {
    let key = format!("{}\n\u{1b}\"\u{9b}", key());
    let out = lease(&[
        "run",
        "--log-format",
        "json",
        &key,
        "--",
        "/no/such/program",
    ])
    .output()
    .expect_code(127);
    only(&out, &key, "not_started");
    assert!(
        !out.stderr.trim_end().contains(|c: char| c.is_control()),
        "{out}"
    );
    let out = Lease::new(["run", "--log-format", "json", &key, "--", "true"])
        .env("PGHOST", "/nowhere")
        .env("LEASE_DB_TIMEOUT", "100ms")
        .output()
        .expect_code(69);
    assert_eq!(events(&out, &key), ["claim_failed"]);
    let out = Lease::new(["run", "--log-format", "json", &key, "--", "true"])
        .env("PGSSLMODE", "yes")
        .output()
        .expect_code(2);
    let error = only(&out, &key, "error");
    assert_eq!(
        (&error["exit_code"], &error["level"]),
        (&2.into(), &"error".into())
    );
}
