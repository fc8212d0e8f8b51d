//! `lease claim`.

use std::path::Path;
use std::time::Duration;

use nix::sys::signal::Signal;
use pglease::cli::help_text::{self, Block};

use crate::support::job::around;
use crate::support::table::{change, delete};
use crate::support::{Lease, Output, key, programs, shared, skip, until};
use crate::{claimed, column, fields, lease, left_of, term, with_term};

#[test]
fn a_free_lease_is_granted_and_printed_for_eval() {
    let key = key();
    let out = lease(&["claim", &key]).output().expect_code(0);
    let lines: Vec<&str> = out.stdout.lines().collect();
    assert_eq!(lines[0], format!("export LEASE_KEY='{key}'"));
    assert!(
        lines[1].starts_with("export LEASE_HOLDER='") && lines[1].ends_with('\''),
        "{out:?}"
    );
    assert!(lines[2].starts_with("export FENCE='"), "{out:?}");
    assert!(
        lines[3].starts_with("export LEASE_EXPIRES_AT='2") && lines[3].ends_with("Z'"),
        "{out:?}"
    );
    assert_eq!(lines[4], "export LEASE_NEW='1'");
    assert_eq!(lines.len(), 5);
    assert_eq!(out.stderr, "");
}

#[test]
fn json_is_one_object_with_the_documented_fields() {
    let key = key();
    let out = lease(&["claim", "--format", "json", "--ttl", "90s", &key])
        .output()
        .expect_code(0);
    let value: serde_json::Value = serde_json::from_str(&out.stdout).expect("one JSON object");
    assert_eq!(
        fields(&value),
        [
            "acquired_at",
            "expires_at",
            "expires_in_ms",
            "fence",
            "holder",
            "key",
            "new"
        ]
    );
    left_of(90_000, term(&out.stdout).expires_in_ms, &out);
}

#[test]
fn a_held_lease_is_exit_75_and_names_holder_and_expiry_on_stderr() {
    let key = key();
    let term = claimed(&key, &[]);
    let out = lease(&["claim", &key]).output().expect_code(75);
    assert_eq!(out.stdout, "");
    assert!(
        out.stderr
            .starts_with(&format!("lease: {key} is held by {}", term.holder)),
        "{out:?}"
    );
    assert!(out.stderr.contains("expires in 5"), "{out:?}");
    assert_eq!(out.stderr.lines().count(), 1);
    let quiet = lease(&["claim", "-q", "-E", "9", &key])
        .output()
        .expect_code(9);
    assert_eq!((quiet.stdout.as_str(), quiet.stderr.as_str()), ("", ""));
}

#[test]
fn the_same_holder_extends_and_keeps_its_fence() {
    let key = key();
    let first = claimed(&key, &["--ttl", "20s"]);
    let call = ["claim", "--format", "json", "--ttl", "60s", "--holder"];
    let out = lease(&call).args([&first.holder, &key]).output();
    let again = term(&out.stdout);
    assert_eq!(first.fence, again.fence);
    left_of(60_000, again.expires_in_ms, &out);
    assert_eq!(
        column(shared(), &key, "expires_at - acquired_at > '59s'"),
        "t"
    );
}

#[test]
fn the_fence_grows_across_release_expiry_force_and_a_row_deleted_by_hand() {
    let key = key();
    let mut fences = vec![claimed(&key, &["--ttl", "2s"]).fence];
    until("the lease expires", || {
        lease(&["status", "--exit-code", &key]).output().code == Some(1)
    });
    let second = claimed(&key, &[]);
    fences.push(second.fence);
    with_term("release", &second).output().expect_code(0);
    fences.push(claimed(&key, &[]).fence);
    lease(&["release", "--force", &key]).output().expect_code(0);
    fences.push(claimed(&key, &[]).fence);
    delete(shared(), &key);
    fences.push(claimed(&key, &[]).fence);
    assert!(fences.windows(2).all(|w| w[0] < w[1]), "{fences:?}");
}

#[test]
fn a_fence_ahead_of_the_clock_is_followed_by_one_more() {
    let key = key();
    let term = claimed(&key, &[]);
    with_term("release", &term).output().expect_code(0);
    change(shared(), &key, "fence = 8000000000000000000");
    assert_eq!(claimed(&key, &[]).fence, 8_000_000_000_000_000_001);
}

#[test]
fn any_key_survives_the_quoting() {
    for text in [
        "it's",
        "a b\"c$(touch /tmp/never)`x`\\",
        "two\nlines",
        "ключ-é-✓",
        "-dash",
        "*",
        "'",
    ] {
        let key = format!("{text}-{}", key());
        let dashed = format!("{text}{}", key);
        for key in [key, dashed] {
            let script = r#"term=$("$LEASE" claim -- "$WANTED") || exit 9; eval "$term"; test "$LEASE_KEY" = "$WANTED" || exit 8
                "$LEASE" renew >/dev/null || exit 7; "$LEASE" release || exit 6"#;
            around("sh", script)
                .env("WANTED", &key)
                .on(shared())
                .output()
                .expect_code(0);
            assert_eq!(column(shared(), &key, "holder"), "", "{key:?} was released");
        }
    }
}

#[test]
fn a_second_shell_releases_with_the_printed_values() {
    let key = key();
    let printed = lease(&["claim", &key]).output().expect_code(0).stdout;
    around("sh", r#"eval "$1"; exec "$LEASE" release"#)
        .args(["sh", &printed])
        .on(shared())
        .output()
        .expect_code(0);
    assert_eq!(column(shared(), &key, "holder"), "");
}

#[test]
fn name_is_the_readable_part_and_the_environment_is_not_an_identity() {
    let key = key();
    let held = claimed(&key, &["--name", "web-3"]);
    assert!(
        held.holder.starts_with("web-3-") && held.holder.len() == "web-3-".len() + 12,
        "{held:?}"
    );
    let nested = lease(&["claim", &key])
        .env("LEASE_HOLDER", &held.holder)
        .env("FENCE", held.fence.to_string())
        .output();
    nested.expect_code(75);
}

#[test]
fn a_waiter_gets_the_lease_at_the_expiry_of_a_dead_holder() {
    let key = key();
    let first = claimed(&key, &["--ttl", "3s", "--name", "dead"]);
    let out = lease(&["claim", "--format", "json", "--wait", "1m", &key])
        .output()
        .expect_code(0);
    let second = term(&out.stdout);
    assert!(second.fence > first.fence);
    // By the server's clock: the second term began when the first had ended, and not a ttl later.
    let gap_us = second.fence - (first.fence + 3_000_000);
    assert!(
        (0..2_000_000).contains(&gap_us),
        "{gap_us} us after the expiry"
    );
    assert!(
        out.stderr.contains("waiting: ") && out.stderr.contains(&first.holder),
        "{out:?}"
    );
}

#[test]
fn a_waiter_gets_a_released_lease_long_before_its_expiry() {
    let key = key();
    let first = claimed(&key, &["--ttl", "10m"]);
    let waiter = lease(&["claim", "--wait", "forever", &key]).spawn();
    waiter.wait_for_line("waiting: ");
    with_term("release", &first).output().expect_code(0);
    waiter.wait().expect_code(0);
}

#[test]
fn a_wait_that_runs_out_is_exit_75() {
    let key = key();
    claimed(&key, &[]);
    let out = lease(&["claim", "--wait", "300ms", &key])
        .output()
        .expect_code(75);
    assert!(out.took >= Duration::from_millis(300), "{out:?}");
    assert!(
        out.stderr
            .lines()
            .last()
            .is_some_and(|l| l.contains("is held by")),
        "{out:?}"
    );
}

#[test]
fn a_claim_that_comes_second_names_who_came_first_and_not_who_had_it_before() {
    let key = key();
    claimed(&key, &["--ttl", "2s", "--holder", "gone"]);
    until("it expires", || {
        column(shared(), &key, "expires_at < clock_timestamp()") == "t"
    });
    let mut client = shared().client();
    let mut transaction = client.transaction().expect("a transaction");
    transaction
        .execute(
            "UPDATE public.lease SET holder = 'first', fence = fence + 1, expires_at = clock_timestamp() + interval '1h' WHERE key = $1",
            &[&key],
        )
        .expect("somebody takes it");
    let second = lease(&["claim", &key]).spawn();
    until("the claim waits", || {
        shared().psql("SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND application_name LIKE 'lease a_claim_that_comes%'") == "1"
    });
    transaction.commit().expect("it is taken");
    let out = second.wait().expect_code(75);
    let told = format!("lease: {key} is held by first (fence ");
    assert!(out.stderr.starts_with(&told), "{out:?}");
}

#[test]
fn an_interrupt_ends_a_wait_at_once_and_leaves_nothing_claimed() {
    for signal in [Signal::SIGINT, Signal::SIGTERM] {
        let key = key();
        let first = claimed(&key, &[]);
        let waiter = lease(&["claim", "--wait", "10m", &key]).spawn();
        waiter.wait_for_line("waiting: ");
        waiter.signal(signal);
        let asked = std::time::Instant::now();
        let out = waiter.wait().expect_signal(signal);
        assert!(asked.elapsed() < Duration::from_secs(5), "{out:?}");
        assert_eq!(out.stdout, "");
        assert_eq!(column(shared(), &key, "holder"), first.holder);
        with_term("release", &first).output().expect_code(0);
        assert_eq!(column(shared(), &key, "holder"), "");
    }
}

#[test]
fn a_claim_that_cannot_be_printed_is_released() {
    for stdout in [">/dev/full", ">&-"] {
        let key = key();
        let script = format!("\"$LEASE\" claim '{key}' {stdout}");
        let out = around("sh", &script).on(shared()).output().expect_code(125);
        assert!(out.stderr.contains("the lease was released"), "{out:?}");
        assert!(!out.stderr.contains("os error"), "{out:?}");
        assert_eq!(column(shared(), &key, "holder"), "");
    }
}

/// A job under `lease run` may claim again as its own holder.
#[test]
fn a_lease_that_its_holder_had_before_is_not_released_because_the_answer_cannot_be_printed() {
    let key = key();
    let held = claimed(&key, &["--ttl", "10m"]);
    let before = column(shared(), &key, "(holder, fence, expires_at)");
    let script = format!(
        "\"$LEASE\" claim --holder '{}' '{key}' >/dev/full",
        held.holder
    );
    let out = around("sh", &script).on(shared()).output().expect_code(125);
    let told = format!("{} held it before, and it expires at ", held.holder);
    assert!(out.stderr.contains(&told), "{out:?}");
    assert_eq!(
        column(shared(), &key, "(holder, fence, expires_at)"),
        before
    );
}

#[test]
fn a_wait_is_not_made_longer_by_a_database_that_does_not_answer() {
    let silent = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = silent.local_addr().expect("an address").port();
    let out = Lease::new(["claim", "--wait", "1s", "--db-timeout", "1h", "k"])
        .url(format!("postgres://app@127.0.0.1:{port}/app"))
        .output()
        .expect_code(69);
    assert!(out.took < Duration::from_secs(20), "{out:?}");
}

#[test]
fn a_claim_of_a_named_holder_tells_a_new_term_from_one_that_it_had() {
    let key = key();
    let claim = |more: &[&str]| {
        lease(&["claim", "-v", "--holder", "web-1"])
            .args(more)
            .arg(&key)
            .output()
            .expect_code(0)
    };
    let is_new = |out: &Output| {
        let value: serde_json::Value = serde_json::from_str(&out.stdout).expect("an object");
        value["new"].as_bool()
    };
    let first = claim(&["--format", "json"]);
    assert_eq!(is_new(&first), Some(true));
    assert!(
        first
            .stderr
            .contains(&format!("lease: claimed {key} until ")),
        "{first}"
    );
    let second = claim(&["--format", "json"]);
    assert_eq!(is_new(&second), Some(false));
    let line = format!("lease: extended {key} until ");
    let told = second.stderr.lines().find(|told| told.starts_with(&line));
    assert!(
        told.is_some_and(|told| told.ends_with("; web-1 held it already")),
        "{second}"
    );
    let third = claim(&[]);
    assert!(third.stdout.ends_with("export LEASE_NEW='0'\n"), "{third}");
    // A renewal begins no term.
    let held = term(&second.stdout);
    let renewed = with_term("renew", &held).output().expect_code(0).stdout;
    assert!(!renewed.contains("LEASE_NEW"), "{renewed}");
}

#[test]
fn the_script_of_the_manual_records_its_exit_code_and_releases_however_it_ends() {
    let page = help_text::sections("claim");
    let script = page.iter().flat_map(|section| section.blocks);
    let script = script.filter_map(|block| match block {
        Block::Code(code) if code.contains("trap ") => Some(*code),
        Block::Code(_) | Block::Text(_) | Block::Terms(_) => None,
    });
    let script = script.collect::<Vec<_>>().concat();
    assert!(script.contains("./second-half"), "{script}");
    let directory = Path::new(programs::lease()).parent().expect("a directory");
    for shell in ["dash", "bash"] {
        let Some(shell) = programs::find(shell) else {
            skip(shell);
            continue;
        };
        for (end, code) in [("true", 0), ("exit 7", 7), ("kill -TERM $$; sleep 0", 143)] {
            let key = key();
            let script = format!("PATH={}:$PATH\n{script}", directory.display())
                .replace("nightly", &key)
                .replace("./first-half", "true")
                .replace("./second-half", end);
            let call = Lease::program(&shell).args(["-c", &script]).on(shared());
            call.output().expect_code(code);
            let runs = lease(&["history", "--format", "json", &key]).output();
            let runs: serde_json::Value = serde_json::from_str(&runs.stdout).expect("JSON");
            assert_eq!(runs[0]["exit_code"], code, "{runs}");
            assert_eq!(runs[0]["ended"], "released", "{runs}");
        }
    }
}
