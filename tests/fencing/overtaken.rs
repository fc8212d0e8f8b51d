//! Every way in which a lease can pass to another holder while the first one still trusts it: the second holder writes,
//! then the first one does, and is refused.
//!
//! Nothing that overtakes waits for the ttl, which is long here, so the watchdog has no reason to step in: what refuses the
//! late write is the resource alone. The order is fixed by what each side has said, not by time.

use std::process::Command;

use pglease::fencing::SQLSTATE_STALE;

use crate::Resource;
use crate::page::recipe;
use crate::support::{Clock, Lease, Running, Server, keeper, programs, skip, until};

/// Two holders at once, each with a key of its own that is named after what `--on-loss` says: one job is told to stop and
/// writes before it obeys, the other one is not told at all.
const KEYS: [&str; 2] = ["stop", "continue"];

/// Writes once, and once more when its input is closed or it is told to stop: TERM reaches `cat` and the shell, and the
/// shell survives it.
pub(crate) const JOB: &str = r#"
trap : TERM
write() {
    psql -d "$RESOURCE" -XAtq -v ON_ERROR_STOP=1 -v VERBOSITY=verbose -v key="$LEASE_KEY" -v fence="$FENCE" <<'SQL'
BEGIN;
SELECT public.lease_check_fence(:'key', :fence);
INSERT INTO writes VALUES (:'key', :fence);
COMMIT;
SQL
}
write && echo has written with $FENCE
cat
write && echo has written again
"#;

/// How psql ends when a statement has failed.
pub(crate) const PSQL_FAILED: i32 = 3;

/// A resource, and the leases by which jobs write to it.
struct Scene {
    resource: Resource,
    leases: String,
}

impl Scene {
    /// Both in one database.
    fn new() -> Self {
        let resource = Resource::with_writes();
        let leases = resource.url.clone();
        Self { resource, leases }
    }

    /// The leases on a server of their own, which may lose what the resource remembers.
    fn with_leases_on(leases: String) -> Self {
        Self {
            resource: Resource::with_writes(),
            leases,
        }
    }

    /// `lease` with an option or two before the key.
    fn lease(&self, words: &[&str], key: &str) -> Lease {
        Lease::new(words).arg(key).url(&self.leases)
    }

    fn run(&self, key: &str) -> Lease {
        let path = std::env::var("PATH").unwrap_or_default();
        let words = [
            "run",
            "--on-loss",
            key,
            "--ttl",
            "10m",
            "--heartbeat",
            "200ms",
            // Time for the write of a job that was told to stop.
            "--grace",
            "30s",
            // What is frozen in the middle of a heartbeat has a row locked, for as long as this.
            "--db-timeout",
            "5s",
            "--wait",
            "1m",
        ];
        self.lease(&words, key)
            .args(["--", "sh", "-c", JOB])
            .env("RESOURCE", &self.resource.url)
            .env("PATH", format!("{}:{path}", programs::bindir().display()))
            .open_input()
    }

    /// A run for every key, each of which has written once.
    fn holders(&self) -> [Running; 2] {
        let runs = KEYS.map(|key| self.run(key).spawn());
        for run in &runs {
            run.wait_for_line("has written with");
        }
        runs
    }

    /// The same, and then each stands still with all that belongs to it.
    fn frozen_holders(&self) -> [Running; 2] {
        let runs = self.holders();
        runs.iter().for_each(Running::freeze);
        runs
    }

    /// Holders of before, whose terms are over. What still knows their fences knows none of those who come now.
    fn former_holders(&self) {
        for key in KEYS {
            self.lease(&["claim", "--ttl", "2s"], key)
                .output()
                .expect_code(0);
        }
    }

    /// The fences of a key's writes, in the order in which they were made.
    fn fences(&self, key: &str) -> Vec<i64> {
        let rows = self.resource.connect().query(
            "SELECT fence FROM writes WHERE key = $1 ORDER BY at",
            &[&key],
        );
        rows.expect("rows").iter().map(|row| row.get(0)).collect()
    }

    /// The first holders wake up and write, the second ones do, and third ones after them.
    fn only_the_first_are_refused(&self, firsts: [Running; 2], seconds: [Running; 2]) {
        firsts.iter().for_each(Running::thaw);
        for (key, first) in KEYS.into_iter().zip(firsts) {
            first.wait_for_line(&format!("lease: {key} is lost"));
            if key == "continue" {
                first.close_input();
            }
            let first = first.wait();
            let [old, new] = self.fences(key)[..] else {
                panic!("{key}: {:?}: {first}", self.fences(key));
            };
            let refusal = format!(
                "ERROR:  {SQLSTATE_STALE}: fence {old} is stale: '{key}' has seen fence {new}"
            );
            assert!(first.stderr.contains(&refusal), "{refusal}: {first}");
            let wrote = format!("has written with {old}");
            assert_eq!(first.stdout.trim(), wrote, "{first}");
            first.expect_code(if key == "stop" { 76 } else { PSQL_FAILED });
        }
        for (key, second) in KEYS.into_iter().zip(seconds) {
            second.close_input();
            let second = second.wait().expect_code(0);
            assert!(second.stdout.contains("again"), "{second}");
            let third = self.run(key).spawn();
            third.close_input();
            third.wait().expect_code(0);

            let fences = self.fences(key);
            let [first, second, again, third, last] = fences[..] else {
                panic!("{key}: {fences:?}");
            };
            assert!(
                first < second && second == again && again < third && third == last,
                "{key}: {fences:?}"
            );
            assert_eq!(self.resource.remembered(key), Some(last), "{key}");
        }
    }
}

#[test]
fn a_holder_whose_lease_was_released_by_force_is_refused() {
    let scene = Scene::new();
    let firsts = scene.frozen_holders();
    for key in KEYS {
        let out = scene.lease(&["release", "--force"], key).output();
        out.expect_code(0);
    }
    let seconds = scene.holders();
    scene.only_the_first_are_refused(firsts, seconds);
}

#[test]
fn a_holder_whose_row_was_deleted_by_hand_is_refused() {
    for sql in [
        "DELETE FROM public.lease",
        "TRUNCATE public.lease",
        "DROP TABLE public.lease",
    ] {
        let scene = Scene::new();
        let firsts = scene.frozen_holders();
        let mut client = scene.resource.connect();
        client.batch_execute(sql).expect(sql);
        let seconds = scene.holders();
        scene.only_the_first_are_refused(firsts, seconds);
    }
}

/// Forward, the lease of the first is over before its time. Back again, the second's fence and the beginning of its term
/// lie an hour ahead: it stays the holder, and the third's fence is still larger.
#[test]
fn a_holder_whose_lease_ended_by_a_clock_that_went_forward_and_back_is_refused() {
    let Some(clock) = Clock::new() else {
        return skip("faketime");
    };
    let server = clock.start(Server::builder());
    let scene = Scene::with_leases_on(server.url());
    let firsts = scene.frozen_holders();
    clock.set("+1h");
    let seconds = scene.holders();
    clock.set("+0");
    until("the second holders are renewed by the right time", || {
        let left = "SELECT bool_and(expires_at < clock_timestamp() + interval '30 minutes') FROM public.lease";
        server.psql(left) == "t"
    });
    scene.only_the_first_are_refused(firsts, seconds);
}

/// The one case in which a fence goes back: the row is lost, and the clock is behind what it was. The resource then lets
/// nobody in, until the clock has caught up or somebody tells it to forget.
#[test]
fn where_the_row_is_lost_and_the_clock_went_back_a_new_holder_is_refused() {
    let Some(clock) = Clock::new() else {
        return skip("faketime");
    };
    let server = clock.start(Server::builder());
    clock.set("+1h");
    let scene = Scene::with_leases_on(server.url());
    let writes_at_once = || {
        let run = scene.run("continue").spawn();
        run.close_input();
        run.wait()
    };
    writes_at_once().expect_code(0);
    clock.set("+0");
    server.psql("DELETE FROM public.lease");
    let refused = writes_at_once().expect_code(PSQL_FAILED);
    assert!(refused.stderr.contains(SQLSTATE_STALE), "{refused}");
    let [first, again] = scene.fences("continue")[..] else {
        panic!("{:?}", scene.fences("continue"));
    };
    assert_eq!(first, again);

    let forget = recipe("postgresql-forget").replace("invoices", "continue");
    let mut resource = scene.resource.connect();
    resource.batch_execute(&forget).expect("deletes");
    writes_at_once().expect_code(0);
    assert!(scene.fences("continue")[2] < first);
}

#[test]
fn a_holder_who_is_not_in_the_dump_that_was_restored_is_refused() {
    let scene = Scene::new();
    scene.former_holders();
    let dir = keeper::dir("dump");
    programs::give(&dir);
    let program = |name: &str| -> Command {
        let mut command = programs::command(programs::bindir().join(name));
        command.args(["--dbname", &scene.leases]);
        command
    };
    let dump = dir.join("lease.sql");
    programs::run(
        program("pg_dump")
            .args(["--table=public.lease", "--clean", "--file"])
            .arg(&dump),
    );
    let firsts = scene.frozen_holders();
    programs::run(
        program("psql")
            .args(["-Xq1", "-v", "ON_ERROR_STOP=1", "-f"])
            .arg(&dump),
    );
    let seconds = scene.holders();
    scene.only_the_first_are_refused(firsts, seconds);
}

/// The resource lives on a third server. On the standby it would have lost the first's writes together with its claim, and
/// with them all that the first could be said to overtake.
#[test]
fn a_holder_whose_claim_was_lost_in_a_failover_is_refused() {
    let primary = Server::start_plain();
    let standby = primary.standby(false);
    let scene = Scene::with_leases_on(format!(
        "postgresql://postgres@127.0.0.1:{},127.0.0.1:{}/postgres?target_session_attrs=read-write",
        primary.port(),
        standby.port()
    ));
    scene.former_holders();
    standby.catch_up_with(&primary);
    standby.fall_behind();
    let firsts = scene.frozen_holders();
    primary.crash();
    standby.promote();
    let seconds = scene.holders();
    scene.only_the_first_are_refused(firsts, seconds);
}
