//! Every way for a term to end, and what its row says then.

use crate::here;
use crate::support::key;
use crate::support::table::lock_row;

#[test]
fn a_released_term_says_the_exit_code_of_its_job_and_ends_before_its_expiry() {
    let (here, key) = (here(), key());
    for code in [0, 7, 255] {
        here.run(&key, &format!("exit {code}"))
            .output()
            .expect_code(code);
    }
    assert_eq!(
        here.terms(&key),
        ["released code 0", "released code 7", "released code 255"]
    );
    let within = "ended_at BETWEEN acquired_at AND acquired_at + interval '60s'";
    assert_eq!(here.history(&key, within), ["t", "t", "t"]);
}

#[test]
fn a_job_that_a_signal_has_ended_leaves_the_signal_and_no_code() {
    let (here, key) = (here(), key());
    let out = here.run(&key, "kill -KILL $$").output();
    assert_eq!(out.signal.or(out.code.map(|code| code - 128)), Some(9));
    let out = here.run(&key, "kill -40 $$").output();
    assert_eq!(out.signal.or(out.code.map(|code| code - 128)), Some(40));
    assert_eq!(
        here.terms(&key),
        ["released signal 9", "released signal 40"]
    );
}

#[test]
fn a_command_that_could_not_be_started_leaves_the_exit_code_that_says_so() {
    let (here, key) = (here(), key());
    for (command, code) in [("./no-such-job", 127), ("/etc/passwd", 126)] {
        here.lease(&["run", &key, "--", command])
            .output()
            .expect_code(code);
    }
    assert_eq!(here.terms(&key), ["released code 127", "released code 126"]);
}

#[test]
fn a_script_says_how_its_work_ended_or_nothing_is_known_about_it() {
    let (here, key) = (here(), key());
    for code in [None, Some("0"), Some("3")] {
        let term = here.claim(&key, &[]);
        let said = code.map(|code| ["--job-code", code]);
        here.lease(&["release"])
            .args(said.iter().flatten())
            .args(term.named())
            .output()
            .expect_code(0);
    }
    assert_eq!(
        here.terms(&key),
        ["released", "released code 0", "released code 3"]
    );
}

#[test]
fn a_run_whose_lease_had_expired_before_its_release_is_lost_at_the_expiry_and_keeps_its_code() {
    let (here, key) = (here(), key());
    let script = "echo works; read line; exit 5";
    let running = here.run(&key, script).open_input().spawn();
    running.wait_for_line("works");
    let expiry = here.expire(&key);
    running.close_input();
    running.wait().expect_code(76);
    assert_eq!(here.terms(&key), ["lost code 5"]);
    assert_eq!(here.history(&key, "ended_at"), [expiry]);
}

#[test]
fn a_run_that_could_not_renew_in_time_has_vanished_for_all_that_the_database_knows() {
    let (here, key) = (here(), key());
    let script = "echo works; exec sleep 600";
    let running = here
        .lease(&["run", "--ttl", "2s", "--grace", "200ms", &key, "--", "sh"])
        .args(["-c", script])
        .spawn();
    running.wait_for_line("works");
    let mut client = here.client();
    let mut transaction = client.transaction().expect("a transaction");
    lock_row(&mut transaction, &key);
    let out = running.wait().expect_code(76);
    assert!(out.stderr.contains("could not be renewed in time"), "{out}");
    transaction.commit().expect("the row is unlocked");
    assert_eq!(here.terms(&key), ["running"]);
    let expiry = here.sql_for(&key, "SELECT expires_at FROM public.lease WHERE key = KEY");
    here.lease(&["claim", "--wait", "1m", &key])
        .output()
        .expect_code(0);
    assert_eq!(here.terms(&key), ["expired", "running"]);
    assert_eq!(here.history(&key, "ended_at")[0], expiry);
}

#[test]
fn a_forced_release_names_the_role_the_host_and_the_process_that_did_it() {
    let (here, key) = (here(), key());
    here.sql(
        "CREATE ROLE operator LOGIN; GRANT SELECT, INSERT, UPDATE ON public.lease TO operator",
    );
    here.claim(&key, &[]);
    let forced = here
        .lease_as("operator", &["release", "--force", &key])
        .spawn();
    let pid = forced.pid();
    forced.wait().expect_code(0);
    let host = hostname::get().expect("a name");
    let told = format!("forced by operator on {} pid {pid}", host.display());
    assert_eq!(here.terms(&key), [told]);
}

#[test]
fn an_evicted_run_stays_forced_whatever_its_job_does_afterwards() {
    let (here, key) = (here(), key());
    let running = here
        .lease(&[
            "run",
            &key,
            "--",
            "sh",
            "-c",
            "echo works; read line; exit 0",
        ])
        .open_input()
        .spawn();
    running.wait_for_line("works");
    let steal = "UPDATE public.lease SET holder = '' WHERE key = KEY";
    let as_told = "SELECT set_config('lease.run', '{\"ended\":\"forced\"}', true)";
    here.sql_for(&key, &format!("BEGIN; {as_told}; {steal}; COMMIT"));
    running.close_input();
    running.wait().expect_code(76);
    assert_eq!(here.terms(&key), ["forced by postgres"]);
}

#[test]
fn no_eviction_is_reported_for_a_term_that_had_expired_already() {
    let (here, forced, deleted, moved) = (here(), key(), key(), key());
    for key in [&forced, &deleted, &moved] {
        here.expired(key);
    }
    here.lease(&["release", "--force", &forced]).output();
    let as_told = "SELECT set_config('lease.run', '{\"ended\":\"forced\"}', true)";
    here.sql_for(
        &forced,
        &format!("BEGIN; {as_told}; UPDATE public.lease SET holder = '' WHERE key = KEY; COMMIT"),
    );
    here.sql_for(&deleted, "DELETE FROM public.lease WHERE key = KEY");
    here.sql_for(
        &moved,
        "UPDATE public.lease SET key = KEY || '-b' WHERE key = KEY",
    );
    for key in [forced, deleted, moved] {
        assert_eq!(here.terms(&key), ["expired"], "{key}");
    }
}

#[test]
fn an_expired_term_that_another_holder_takes_over_ended_at_its_expiry() {
    let (here, key) = (here(), key());
    let expiry = here.expired(&key);
    here.run(&key, "exit 0").output().expect_code(0);
    assert_eq!(here.terms(&key), ["expired", "released code 0"]);
    assert_eq!(here.history(&key, "ended_at")[0], expiry);
}

#[test]
fn the_same_holder_goes_on_with_its_term_until_it_expires_and_has_another_one_then() {
    let (here, key) = (here(), key());
    let again = || here.claim(&key, &["--holder", "web-1"]);
    let first = again();
    here.lease(&["renew"])
        .args(first.named())
        .output()
        .expect_code(0);
    assert_eq!(again().fence, first.fence);
    assert_eq!(here.terms(&key), ["running"]);
    here.expire(&key);
    let third = again();
    assert_eq!(here.terms(&key), ["expired", "running"]);
    assert_eq!(here.history(&key, "fence"), [first.fence, third.fence]);
    // A program with statements of its own, which begins another term before its last one has expired.
    here.sql_for(
        &key,
        "UPDATE public.lease SET fence = fence + 1 WHERE key = KEY",
    );
    assert_eq!(here.terms(&key), ["expired", "released", "running"]);
}

#[test]
fn a_first_claim_is_one_term_with_the_fence_and_the_time_that_the_lease_has() {
    let (here, key) = (here(), key());
    let term = here.claim(&key, &[]);
    assert_eq!(here.history(&key, "fence"), [term.fence.as_str()]);
    let same = "SELECT count(*) FROM public.lease JOIN public.lease_history USING (key, fence, holder, acquired_at)
                 WHERE key = KEY";
    assert_eq!(here.sql_for(&key, same), "1");
}

#[test]
fn a_run_whose_job_releases_its_lease_has_lost_it_as_its_exit_code_says() {
    let here = here();
    for said in [&[][..], &["--job-code", "0"]] {
        let key = key();
        // Repeating one's own release is still no error.
        let script =
            "\"$0\" release \"$@\" && \"$0\" release \"$@\" && echo released; read line; exit 0";
        let running = here
            .lease(&["run", &key, "--", "sh", "-c", script])
            .arg(crate::support::programs::lease())
            .args(said)
            .open_input()
            .spawn();
        running.wait_for_line("released");
        running.close_input();
        running.wait().expect_code(76);
        let code = if said.is_empty() { "" } else { " code 0" };
        assert_eq!(here.terms(&key), [format!("lost{code}")]);
        let out = here
            .lease(&["history", "--failed", &key])
            .output()
            .expect_code(0);
        assert!(out.stdout.contains("lost"), "{out}");
    }
}
