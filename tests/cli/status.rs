//! `lease status`.

use nix::sys::signal::Signal;

use crate::support::job::around;
use crate::support::{Lease, Server, key, shared, until};
use crate::{claimed, database, fields, lease, with_term, with_term_and};

fn json(args: &[&str]) -> Vec<serde_json::Value> {
    let out = lease(args).output().expect_code(0);
    serde_json::from_str(&out.stdout).expect("a JSON array")
}

#[test]
fn every_state_is_shown_as_documented() {
    let prefix = key();
    let name = |part: &str| format!("{prefix}/{part}");
    claimed(&name("held"), &["--name", "web-3"]);
    claimed(&name("expired"), &["--ttl", "2s"]);
    let cooling = claimed(&name("cooling"), &[]);
    with_term_and(&["release", "--hold-at-least", "1h"], &cooling)
        .output()
        .expect_code(0);
    let free = claimed(&name("free"), &[]);
    with_term("release", &free).output().expect_code(0);
    let pattern = format!("{prefix}/*");
    let states = || -> Vec<String> {
        json(&["status", "--format", "json", &pattern])
            .iter()
            .map(|l| l["state"].as_str().unwrap_or_default().to_owned())
            .collect()
    };
    until("one is expired", || {
        states() == ["cooling", "expired", "free", "held"]
    });
    let out = lease(&["status", &pattern]).output().expect_code(0).stdout;
    let head: Vec<&str> = out
        .lines()
        .next()
        .unwrap_or_default()
        .split("  ")
        .filter(|w| !w.is_empty())
        .map(str::trim)
        .collect();
    assert_eq!(
        head,
        [
            "KEY",
            "STATE",
            "HOLDER",
            "FENCE",
            "HELD FOR",
            "EXPIRES IN",
            "LAST RUN"
        ]
    );
    assert!(out.contains("web-3-") && out.contains(" ago"), "{out}");
}

#[test]
fn without_a_key_the_free_ones_are_left_out_unless_all_is_given() {
    let (held, free) = (key(), key());
    claimed(&held, &[]);
    let term = claimed(&free, &[]);
    with_term("release", &term).output().expect_code(0);
    let some = lease(&["status"]).output().expect_code(0).stdout;
    assert!(some.contains(&held) && !some.contains(&free), "{some}");
    let all = lease(&["status", "--all"]).output().expect_code(0).stdout;
    assert!(all.contains(&held) && all.contains(&free), "{all}");
}

#[test]
fn a_plain_key_without_a_row_is_free_and_wildcards_are_star_and_question_mark() {
    let prefix = key();
    let lines = json(&["status", "--format", "json", &prefix]);
    assert_eq!(lines[0]["state"], "free");
    assert_eq!(lines[0]["holder"], serde_json::Value::Null);
    claimed(&format!("{prefix}%"), &[]);
    claimed(&format!("{prefix}*"), &[]);
    let found = |pattern: String| json(&["status", "--format", "json", &pattern]).len();
    assert_eq!(found(format!("{prefix}?")), 2);
    assert_eq!(found(format!("{prefix}%")), 1);
    assert_eq!(found(format!(r"{prefix}\*")), 1);
    assert_eq!(found(format!("{prefix}/*")), 0);
    assert_eq!(found(format!("*{prefix}*")), 2);
}

#[test]
fn json_has_the_documented_fields_and_durations_of_the_server() {
    let key = key();
    let held = claimed(&key, &["--ttl", "1h"]);
    let line = &json(&["status", "--format", "json", &key])[0];
    assert_eq!(
        fields(line),
        [
            "acquired_at",
            "expires_at",
            "expires_in_ms",
            "fence",
            "held_for_ms",
            "holder",
            "key",
            "last_run",
            "last_success",
            "state"
        ]
    );
    assert_eq!(line["fence"], held.fence);
    let left = line["expires_in_ms"].as_i64().expect("a number");
    assert!((3_540_000..=3_600_000).contains(&left), "{line}");
}

#[test]
fn exit_code_tells_whether_every_named_key_is_held() {
    let (held, free) = (key(), key());
    claimed(&held, &[]);
    lease(&["status", "--exit-code", &held])
        .output()
        .expect_code(0);
    lease(&["status", "--exit-code", &held, &free])
        .output()
        .expect_code(1);
    lease(&["status", "--exit-code", &format!("{free}*")])
        .output()
        .expect_code(1);
    lease(&["status", &free]).output().expect_code(0);
}

#[test]
fn a_row_cannot_write_to_the_terminal() {
    let evil = format!("\u{1b}]0;owned\u{7}\u{9b}2J-{}", key());
    claimed(&evil, &["--name", "h\u{1b}[31m"]);
    for args in [&["status"][..], &["status", "--format", "json"]] {
        let out = lease(args).output().expect_code(0).stdout;
        assert!(out.contains("owned"), "{out}");
        let steers = |c: char| c.is_control() && c != '\n';
        assert!(!out.contains(steers), "{out:?}");
    }
    let held = lease(&["claim", "--", &evil]).output().expect_code(75);
    assert!(!held.stderr.contains('\u{1b}'), "{held:?}");
}

#[test]
fn rows_without_an_end_or_a_beginning_are_reported_in_the_same_words() {
    let database = database(shared());
    let url = shared().url_for("postgres", &database);
    shared().psql_in(
        &database,
        "CREATE TABLE public.lease (key text PRIMARY KEY, holder text, fence bigint, acquired_at timestamptz,
             expires_at timestamptz);
         INSERT INTO public.lease VALUES ('endless', 'hand', 7, clock_timestamp(), 'infinity'),
             ('closed', '', 7, clock_timestamp(), 'infinity'), ('over', 'hand', 7, '-infinity', '-infinity')",
    );
    let call = |words: &[&str]| Lease::new(words).url(&url).output();
    let out = call(&["status", "endless", "closed", "over"]).expect_code(0);
    let ends: Vec<(&str, &str)> = out
        .stdout
        .lines()
        .skip(1)
        .map(|line| {
            let mut words = line.split_whitespace();
            (
                words.nth(1).expect("a state"),
                // Before LAST RUN, which is not recorded.
                words.nth_back(1).expect("an end"),
            )
        })
        .collect();
    assert_eq!(
        ends,
        [
            ("cooling", "never"),
            ("held", "never"),
            ("expired", "expired")
        ],
        "{out}"
    );
    let told = [
        (
            "endless",
            "endless is held by hand (fence 7), never expires",
        ),
        ("closed", "closed is cooling forever"),
    ];
    for (key, told) in told {
        let out = call(&["claim", key]).expect_code(75);
        assert!(out.stderr.contains(told), "{out}");
    }
    call(&["claim", "over"]).expect_code(0);
}

#[test]
fn a_missing_table_means_no_leases_and_is_not_created() {
    let server = shared();
    let database = database(server);
    let call = |args: &[&str]| Lease::new(args).url(server.url_for("postgres", &database));
    let out = call(&["status"]).output().expect_code(0);
    assert_eq!(
        (out.stdout.as_str(), out.stderr.as_str()),
        (
            "",
            "lease: no leases\nlease: table public.lease does not exist yet (the first claim creates it; see --table)\n"
        )
    );
    let out = call(&["status", "--format", "json"])
        .output()
        .expect_code(0);
    assert_eq!(out.stdout, "[]\n");
    assert!(
        call(&["status", "nightly"])
            .output()
            .expect_code(0)
            .stdout
            .contains("free")
    );
    assert_eq!(
        server.psql_in(&database, "SELECT to_regclass('public.lease') IS NULL"),
        "t"
    );
}

#[test]
fn a_role_that_may_only_select_sees_the_leases() {
    let server = Server::start_plain();
    Lease::new(["claim", "nightly"])
        .on(&server)
        .output()
        .expect_code(0);
    server.psql("CREATE ROLE reader LOGIN; GRANT SELECT ON public.lease TO reader");
    let call = |args: &[&str]| Lease::new(args).url(server.url_for("reader", "postgres"));
    assert!(
        call(&["status"])
            .output()
            .expect_code(0)
            .stdout
            .contains("nightly")
    );
    let out = call(&["claim", "nightly"]).output().expect_code(69);
    assert!(
        out.stderr
            .contains(r#"GRANT SELECT, INSERT, UPDATE ON public.lease TO "reader""#),
        "{out:?}"
    );
    assert_eq!(out.stderr.lines().count(), 1);
    server.psql("REVOKE ALL ON public.lease FROM reader");
    let out = call(&["status"]).output().expect_code(69);
    assert!(
        out.stderr
            .contains(r#"GRANT SELECT ON public.lease TO "reader""#),
        "{out:?}"
    );
}

#[test]
fn status_takes_no_lock_that_a_claim_could_wait_for() {
    let key = key();
    claimed(&key, &[]);
    let mut client = shared().client();
    let mut transaction = client.transaction().expect("a transaction");
    transaction
        .execute(
            "UPDATE public.lease SET fence = fence WHERE key = $1",
            &[&key],
        )
        .expect("the row is locked");
    lease(&["status", &key]).output().expect_code(0);
}

#[test]
fn watch_redraws_until_interrupted() {
    let key = key();
    let watching = lease(&["status", "--watch", "100ms", &key]).spawn();
    watching.wait_for_line("free");
    let held = claimed(&key, &[]);
    watching.wait_for_line(&held.holder);
    watching.signal(Signal::SIGINT);
    watching.wait().expect_code(0);
    // Without an interval, the word after it is a key.
    let watching = lease(&["status", "--watch", &key]).spawn();
    watching.wait_for_line(&held.holder);
    watching.signal(Signal::SIGTERM);
    watching.wait().expect_code(0);
}

#[test]
fn a_reader_that_stops_early_is_not_an_error() {
    for _ in 0..5 {
        claimed(&key(), &[]);
    }
    let out = around("bash", "set -o pipefail; \"$LEASE\" status | head -1")
        .on(shared())
        .output()
        .expect_code(0);
    assert!(out.stdout.starts_with("KEY"), "{out:?}");
}

#[test]
fn a_lease_that_nobody_holds_is_held_for_no_longer() {
    let key = key();
    claimed(&key, &["--ttl", "2s"]);
    let line = || json(&["status", "--format", "json", &key]).remove(0);
    until("it has expired for longer than it was held", || {
        line()["expires_in_ms"].as_i64() < Some(-2300)
    });
    assert_eq!(line()["held_for_ms"], 2000);
    lease(&["release", "--force", &key]).output().expect_code(0);
    assert_eq!(line()["held_for_ms"], serde_json::Value::Null);
}
