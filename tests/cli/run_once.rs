//! `run --once-per`: a job that has succeeded within the period is not started.

use crate::support::table::lock_row;
use crate::support::{Lease, Output, key, shared, until};
use crate::{claimed, database, lease, row_text, with_term_and};

fn once(period: &str, key: &str, script: &str) -> Lease {
    let job = ["run", "--once-per", period, key, "--", "sh", "-c", script];
    lease(&job)
}

#[track_caller]
fn says(out: &Output, part: &str) {
    assert!(out.stderr.contains(part), "{out:?}");
}

#[test]
fn a_job_that_has_failed_runs_again_and_one_that_has_succeeded_does_not() {
    let key = key();
    for code in [3, 4, 0] {
        let out = once("1h", &key, &format!("echo ran; exit {code}")).output();
        assert_eq!(out.expect_code(code).stdout, "ran\n");
    }
    let before = row_text(shared(), &key);
    let out = once("1h", &key, "echo ran").output().expect_code(75);
    let host = hostname::get().expect("a name");
    assert_eq!(out.stdout, "");
    says(&out, &format!("lease: {key} succeeded "));
    says(
        &out,
        &format!(" ago on {}: not due for another 59m ", host.display()),
    );
    assert_eq!(out.stderr.lines().count(), 1);
    assert_eq!(row_text(shared(), &key), before, "nothing is written");
    let job = ["--once-per", "1h", "-E", "0", &key, "--", "echo", "ran"];
    for quiet in [&[][..], &["-q"]] {
        let out = lease(&["run"]).args(quiet).args(job).output();
        assert_eq!(out.expect_code(0).stdout, "");
    }
}

#[test]
fn a_job_runs_again_when_the_period_is_over() {
    let key = key();
    once("1h", &key, "exit 0").output().expect_code(0);
    until("a second has passed", || {
        let out = once("1s", &key, "echo ran").output();
        out.code == Some(0) && out.stdout == "ran\n"
    });
}

#[test]
fn a_job_that_was_killed_evicted_or_not_started_is_not_a_success() {
    let key = key();
    lease(&["run", "--once-per", "1h", &key, "--", "./no-such-job"])
        .output()
        .expect_code(127);
    once("1h", &key, "kill $$").output();
    let term = claimed(&key, &[]);
    lease(&["release", "--force", &key]).output().expect_code(0);
    with_term_and(&["release", "--job-code", "0"], &term)
        .output()
        .expect_code(76);
    // Without --job-code, it is unknown how the script ended.
    let term = claimed(&key, &[]);
    with_term_and(&["release"], &term).output().expect_code(0);
    let out = once("1h", &key, "echo ran").output().expect_code(0);
    assert_eq!(out.stdout, "ran\n");
}

#[test]
fn a_script_that_says_it_has_succeeded_counts() {
    let key = key();
    let term = claimed(&key, &[]);
    with_term_and(&["release", "--job-code", "0"], &term)
        .output()
        .expect_code(0);
    let out = once("1h", &key, "echo ran").output().expect_code(75);
    assert_eq!(out.stdout, "");
}

#[test]
fn who_waits_for_a_run_that_then_succeeds_is_done() {
    let key = key();
    let first = once("1h", &key, "echo works; read line")
        .open_input()
        .spawn();
    first.wait_for_line("works");
    let wait = ["run", "--once-per", "1h", "--wait", "forever", &key];
    let second = lease(&wait).args(["--", "echo", "ran"]).spawn();
    second.wait_for_line("waiting: ");
    first.close_input();
    first.wait();
    // The job has read no line, which is a failure: so the second one runs.
    let out = second.wait().expect_code(0);
    assert_eq!(out.stdout, "ran\n");

    let third = key + "-again";
    let first = once("1h", &third, "echo works; cat").open_input().spawn();
    first.wait_for_line("works");
    let wait = ["run", "--once-per", "1h", "--wait", "forever", &third];
    let second = lease(&wait).args(["--", "echo", "ran"]).spawn();
    second.wait_for_line("waiting: ");
    first.close_input();
    first.wait().expect_code(0);
    let out = second.wait().expect_code(75);
    assert_eq!(out.stdout, "");
    says(&out, ": not due for another ");
}

#[test]
fn a_success_between_the_look_and_the_claim_is_seen_under_the_lock_of_the_row() {
    let key = key();
    once("1h", &key, "exit 3").output().expect_code(3);
    let before = row_text(shared(), &key);
    let mut client = shared().client();
    let mut other = client.transaction().expect("a transaction");
    lock_row(&mut other, &key);
    let late = once("1h", &key, "echo ran").spawn();
    let waits = format!(
        "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND application_name = left('lease {key}', 63)"
    );
    until("the claim waits for the row", || {
        shared().psql(&waits) == "1"
    });
    other
        .execute(
            "UPDATE public.lease_history SET exit_code = 0, ended_at = clock_timestamp() WHERE key = $1",
            &[&key],
        )
        .expect("the run has succeeded after all");
    other.commit().expect("the row is unlocked");
    let out = late.wait().expect_code(75);
    assert_eq!(out.stdout, "");
    says(&out, ": not due for another ");
    until("what the claim wrote is undone", || {
        row_text(shared(), &key) == before
    });
    let out = lease(&["history", &key]).output().expect_code(0);
    assert_eq!(out.stdout.lines().count(), 2, "{out:?}");
}

#[test]
fn without_a_history_that_notes_it_nothing_is_claimed_and_the_error_says_what_to_do() {
    let server = shared();
    let database = database(server);
    let url = server.url_for("postgres", &database);
    let here = |args: &[&str]| Lease::new(args).url(&url);
    let job = ["run", "--once-per", "1h", "k", "--", "echo", "ran"];
    let refused = |why: &str, url: &str| {
        let out = Lease::new(job).url(url).output().expect_code(69);
        assert_eq!(out.stdout, "");
        says(&out, "--once-per needs the history of runs: ");
        says(&out, why);
        let held = "SELECT count(*) FROM public.lease WHERE holder <> ''";
        assert_eq!(server.psql_in(&database, held), "0");
    };
    here(&["init", "--no-history"]).output().expect_code(0);
    refused("public.lease_history does not exist (`lease init`", &url);
    here(&["init"]).output().expect_code(0);
    let sql = |statement: &str| server.psql_in(&database, statement);
    sql("CREATE ROLE once_job LOGIN; GRANT SELECT, INSERT, UPDATE ON public.lease TO once_job");
    let other = server.url_for("once_job", &database);
    refused(
        "(GRANT SELECT ON public.lease_history TO \"once_job\")",
        &other,
    );
    sql("GRANT SELECT ON public.lease_history TO once_job");
    let out = Lease::new(job).url(&other).output().expect_code(0);
    assert_eq!(out.stdout, "ran\n");
    sql("DELETE FROM public.lease_history; ALTER TABLE public.lease DISABLE TRIGGER USER");
    refused("public.lease_history has not noted this claim", &url);
    sql("ALTER TABLE public.lease ENABLE TRIGGER USER");
    sql("ALTER TABLE public.lease_history ADD CONSTRAINT nothing CHECK (false) NOT VALID");
    refused("public.lease_history has not noted this claim", &url);
    sql("ALTER TABLE public.lease_history DROP CONSTRAINT nothing");
    here(&job).output().expect_code(0);
}

#[test]
fn the_first_run_of_all_makes_the_table_and_its_history() {
    let server = shared();
    let database = database(server);
    let url = server.url_for("postgres", &database);
    for (code, printed) in [(0, "ran\n"), (75, "")] {
        let out = Lease::new(["run", "--once-per", "1h", "k", "--", "echo", "ran"]).url(&url);
        assert_eq!(out.output().expect_code(code).stdout, printed);
    }
}

#[test]
fn a_period_that_is_none_is_refused() {
    for wrong in ["0s", "999ms", "11years", "20", "-1h", "5M", ""] {
        let out = once(wrong, &key(), "true").output().expect_code(2);
        says(&out, "lease: --once-per: ");
    }
}

#[test]
fn a_role_that_may_not_claim_learns_it_before_the_job_is_due() {
    let database = database(shared());
    let url = shared().url_for("postgres", &database);
    let role = format!("reads_{database}");
    Lease::new(["run", "k", "--", "true"])
        .url(&url)
        .output()
        .expect_code(0);
    let job = ["run", "--once-per", "1h", "k", "--", "true"];
    let as_role = || {
        Lease::new(job)
            .url(shared().url_for(&role, &database))
            .output()
    };
    shared().psql_in(
        &database,
        &format!(
            "CREATE ROLE {role} LOGIN; GRANT SELECT, UPDATE ON public.lease TO {role};
             GRANT SELECT ON public.lease_history TO {role}"
        ),
    );
    let out = as_role().expect_code(69);
    says(&out, "permission denied for table lease (GRANT ");
    // Rights on the columns are enough.
    shared().psql_in(
        &database,
        &format!(
            "GRANT INSERT (key, holder, fence, acquired_at, expires_at) ON public.lease TO {role}"
        ),
    );
    as_role().expect_code(75);
}
