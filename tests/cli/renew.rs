//! `lease renew`.

use crate::support::job::run_script;
use crate::support::rows::evicted;
use crate::support::table::{change, delete, lock_row};
use crate::support::{Output, key, shared, until};
use crate::{claimed, column, lease, left_of, literal, row_text, term, with_term, with_term_and};

#[test]
fn a_renewal_extends_and_prints_what_claim_prints() {
    let key = key();
    let held = claimed(&key, &["--ttl", "20s"]);
    let out = with_term("renew", &held)
        .args(["--ttl", "90s", "--format", "json"])
        .output();
    // Options after `--` are not options: the call above names the key last on purpose.
    out.expect_code(2);
    let out = with_term_and(&["renew", "--ttl", "90s", "--format", "json"], &held)
        .output()
        .expect_code(0);
    let renewed = term(&out.stdout);
    assert_eq!(renewed.fence, held.fence);
    left_of(90_000, renewed.expires_in_ms, &out);
}

#[test]
fn a_ttl_that_is_given_counts_from_now_and_a_default_never_shortens_a_lease() {
    let key = key();
    let held = claimed(&key, &["--ttl", "10m"]);
    let fence = held.fence.to_string();
    let ends = |verb: &str, more: &[&str], variable: &str| {
        let call = lease(&[verb, "--format", "json", "--holder", &held.holder]).args(more);
        let call = call
            .arg(&key)
            .env("FENCE", &fence)
            .env("LEASE_TTL", variable);
        call.output().expect_code(0)
    };
    let left = |out: &Output| term(&out.stdout).expires_in_ms;
    for verb in ["renew", "claim"] {
        let before = column(shared(), &key, "expires_at");
        for variable in ["", "1m"] {
            let kept = ends(verb, &[], variable);
            assert!((540_000..600_000).contains(&left(&kept)), "{kept:?}");
            assert_eq!(
                column(shared(), &key, "expires_at"),
                before,
                "{verb} {variable}"
            );
        }
        for (typed, variable, whole) in [
            (&["--ttl", "20s"][..], "10m", 20_000),
            (&[], "", 60_000),
            (&[], "10m", 600_000),
        ] {
            let out = ends(verb, typed, variable);
            left_of(whole, left(&out), &out);
        }
        let help = lease(&[verb, "-h"]).output().expect_code(0).stdout;
        let words = help.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words.contains("never shortens it"), "{help}");
    }
}

#[test]
fn the_rest_of_a_term_from_before_the_clock_was_set_back_is_ignored() {
    let key = key();
    let held = claimed(&key, &[]);
    for verb in ["renew", "claim"] {
        change(
            shared(),
            &key,
            "acquired_at = clock_timestamp() + interval '1h', expires_at = clock_timestamp() + interval '61min'",
        );
        let call = lease(&[verb, "--format", "json", "--holder", &held.holder, &key]);
        let out = call.env("FENCE", held.fence.to_string()).output();
        let out = out.expect_code(0);
        left_of(60_000, term(&out.stdout).expires_in_ms, &out);
    }
}

#[test]
fn a_job_that_renews_its_lease_by_itself_does_not_end_it_early() {
    let key = key();
    let script = "echo ready; read go
        $LEASE renew && $LEASE claim --holder \"$LEASE_HOLDER\" \"$LEASE_KEY\" && echo renewed; read end";
    // Its heartbeat comes after 20 minutes.
    let job = run_script(&["--ttl", "1h"], &key, script)
        .knowing_lease()
        .open_input()
        .on(shared())
        .spawn();
    job.wait_for_line("ready");
    let before = column(shared(), &key, "expires_at");
    job.write("go\n");
    job.wait_for_line("renewed");
    assert_eq!(column(shared(), &key, "expires_at"), before);
}

#[test]
fn a_heartbeat_brings_an_expiry_that_lies_far_ahead_back_to_the_ttl() {
    let key = key();
    let job = run_script(&["--ttl", "5s"], &key, "echo ready; read end")
        .open_input()
        .on(shared())
        .spawn();
    job.wait_for_line("ready");
    // As the server's clock leaves it that is set back by less than the lease has been held for.
    change(
        shared(),
        &key,
        "expires_at = clock_timestamp() + interval '1h'",
    );
    until("a heartbeat has put that right", || {
        column(
            shared(),
            &key,
            "expires_at <= clock_timestamp() + interval '5s'",
        ) == "t"
    });
}

#[test]
fn the_environment_names_the_term() {
    let key = key();
    let held = claimed(&key, &[]);
    let call = lease(&["renew"])
        .env("LEASE_KEY", &key)
        .env("LEASE_HOLDER", &held.holder);
    let out = call.clone().output().expect_code(2);
    assert!(
        out.stderr.contains("FENCE") && out.stderr.contains("--fence"),
        "{out:?}"
    );
    let out = call
        .env("FENCE", held.fence.to_string())
        .output()
        .expect_code(0);
    assert!(
        out.stdout
            .contains(&format!("export FENCE='{}'", held.fence))
    );
}

#[test]
fn an_expired_lease_is_never_brought_back() {
    let key = key();
    let held = claimed(&key, &["--ttl", "2s"]);
    until("it expires", || {
        column(shared(), &key, "expires_at < clock_timestamp()") == "t"
    });
    let before = row_text(shared(), &key);
    let out = with_term("renew", &held).output().expect_code(76);
    assert!(
        out.stderr.contains("expired before it was renewed"),
        "{out:?}"
    );
    assert_eq!(out.stdout, "");
    assert_eq!(row_text(shared(), &key), before, "the row is untouched");
}

#[test]
fn a_renewal_that_waited_for_a_locked_row_past_the_expiry_is_too_late() {
    let key = key();
    let held = claimed(&key, &["--ttl", "1s"]);
    let mut client = shared().client();
    let mut transaction = client.transaction().expect("a transaction");
    lock_row(&mut transaction, &key);
    let renewing = with_term("renew", &held).spawn();
    until("the renewal waits", || {
        shared().psql("SELECT count(*) FROM pg_locks WHERE NOT granted") != "0"
            && column(shared(), &key, "expires_at < clock_timestamp()") == "t"
    });
    transaction.commit().expect("the row is unlocked");
    let out = renewing.wait().expect_code(76);
    assert!(out.stderr.contains("expired"), "{out:?}");
    assert_eq!(
        column(shared(), &key, "expires_at < clock_timestamp()"),
        "t"
    );
}

#[test]
fn each_way_of_losing_has_its_own_words() {
    let key = key();
    let held = claimed(&key, &[]);
    change(shared(), &key, "holder = 'thief', fence = fence + 1");
    let out = with_term("renew", &held).output().expect_code(76);
    assert!(
        out.stderr
            .contains(&format!("thief holds it now (fence {})", held.fence + 1)),
        "{out:?}"
    );
    delete(shared(), &key);
    let out = with_term("renew", &held).output().expect_code(76);
    assert!(out.stderr.contains("its row does not exist"), "{out:?}");
    let held = claimed(&key, &[]);
    lease(&["release", "--force", &key]).output().expect_code(0);
    let out = with_term("renew", &held).output().expect_code(76);
    assert!(out.stderr.contains(&evicted()), "{out:?}");
    let out = lease(&[
        "--table",
        "no_such_table",
        "renew",
        "--holder",
        "h",
        "--fence",
        "1",
        "k",
    ])
    .output();
    assert!(
        out.expect_code(76)
            .stderr
            .contains("table public.no_such_table does not exist")
    );
}

#[test]
fn a_term_is_key_holder_and_fence_together() {
    let key = key();
    let held = claimed(&key, &[]);
    let before = row_text(shared(), &key);
    for (holder, fence) in [
        (held.holder.as_str(), held.fence - 1),
        ("somebody", held.fence),
    ] {
        lease(&[
            "renew",
            "--holder",
            holder,
            "--fence",
            &fence.to_string(),
            &key,
        ])
        .output()
        .expect_code(76);
    }
    assert_eq!(row_text(shared(), &key), before);
}

#[test]
fn what_of_a_term_is_wrong_is_said_with_what_is_right() {
    let key = key();
    claimed(&key, &[]);
    let row = |holder: &str, expires: &str| {
        shared().psql(&format!(
            "UPDATE public.lease SET holder = '{holder}', fence = 50,
                    acquired_at = clock_timestamp() - interval '1h',
                    expires_at = clock_timestamp() + interval '{expires}' WHERE key = {}",
            literal(&key)
        ));
    };
    let (lost, wrong) = ("KEY is lost", "cannot renew KEY");
    let (held, over) = ("30min", "-30min");
    for (holder, expires, me, fence, what, told) in [
        (
            "a",
            held,
            "a",
            49,
            wrong,
            "a holds it with fence 50, not 49",
        ),
        (
            "a",
            held,
            "a",
            51,
            wrong,
            "a holds it with fence 50, not 51",
        ),
        ("a", held, "b", 50, wrong, "fence 50 belongs to a, not to b"),
        (
            "a",
            held,
            "b",
            51,
            wrong,
            "a holds it with fence 50, not b with fence 51",
        ),
        ("a", held, "b", 49, lost, "a holds it now (fence 50)"),
        (
            "a",
            over,
            "b",
            49,
            lost,
            "a claimed it (fence 50) and let it expire",
        ),
        (
            "a",
            over,
            "a",
            49,
            wrong,
            "a held it with fence 50, not 49, and let it expire",
        ),
        ("a", over, "b", 50, wrong, "fence 50 belongs to a, not to b"),
        (
            "",
            over,
            "a",
            49,
            lost,
            "another holder claimed and released it (fence 50)",
        ),
        (
            "",
            held,
            "a",
            51,
            wrong,
            "nobody holds it, and its last fence is 50, not 51",
        ),
    ] {
        row(holder, expires);
        let before = row_text(shared(), &key);
        for verb in ["renew", "release"] {
            let out = lease(&[verb, "--holder", me, "--fence", &fence.to_string(), &key])
                .output()
                .expect_code(76);
            let what = if verb == "renew" {
                what
            } else {
                "cannot release KEY"
            };
            let what = what.replace("KEY", &key);
            assert_eq!(out.stderr, format!("lease: {what}: {told}\n"));
            assert_eq!(out.stdout, "");
        }
        assert_eq!(row_text(shared(), &key), before, "the row is untouched");
    }
}

#[test]
fn an_error_is_reported_once() {
    for verb in [
        &["renew"][..],
        &["release"],
        &["claim", "-q", "--db-timeout", "1s"],
        &["status"],
        &["init"],
    ] {
        let mut call = lease(verb).url("host=/nowhere");
        if verb[0] != "status" && verb[0] != "init" {
            call = call.arg("k");
        }
        if verb[0] == "renew" || verb[0] == "release" {
            call = call.args(["--holder", "h", "--fence", "1"]);
        }
        let out = call.output().expect_code(69);
        assert_eq!(out.stderr.matches("/nowhere").count(), 1, "{out:?}");
    }
}
