//! A thousand rounds and more of claims, renewals, releases, expiries, freezes, writes, deletions and failovers, in whatever
//! order six clients of one resource come to them.

mod clients;
mod cluster;
mod history;

use std::thread;

use fastrand::Rng;

use self::clients::{Hand, run};
use self::cluster::Cluster;
use self::history::History;
use crate::support::Lease;
use crate::{Resource, check, report, state};

/// How many rounds there are at the least.
const ROUNDS: u32 = 1_000;

/// How often a standby takes over, spread over the rounds.
const FAILOVERS: u32 = 5;

/// What must happen at least once.
const KINDS: [&str; 11] = [
    "terms",
    "claims in vain",
    "claims that extended",
    "writes",
    "stale writes refused",
    "renewals",
    "releases",
    "expiries",
    "deletions",
    "runs",
    "frozen runs overtaken",
];

struct Scene {
    cluster: Cluster,
    /// On a server of its own, which forgets nothing.
    resource: Resource,
    history: History,
}

impl Scene {
    /// Of the lease and of the resource.
    const KEY: &str = "k";

    fn new() -> Self {
        let cluster = Cluster::start();
        cluster.store().make_table(None).expect("a table");
        Self {
            cluster,
            resource: Resource::with_writes(),
            history: History::default(),
        }
    }

    /// How many writes with this fence the resource has accepted.
    fn writes_of(&self, fence: i64) -> i64 {
        self.resource
            .connect()
            .query_one("SELECT count(*) FROM writes WHERE fence = $1", &[&fence])
            .expect("the table")
            .get(0)
    }
}

#[test]
fn in_a_thousand_random_rounds_with_failovers_no_write_of_an_older_holder_follows_a_newer_ones() {
    let scene = Scene::new();
    let history = &scene.history;
    thread::scope(|scope| {
        let _ends = history.until_dropped();
        for _ in 0..4 {
            scope.spawn(|| {
                let mut hand = Hand::new(&scene);
                let mut random = Rng::new();
                history.rounds_of(|| hand.turn(&mut random));
            });
        }
        for _ in 0..2 {
            scope.spawn(|| {
                let mut random = Rng::new();
                history.rounds_of(|| run(&scene, &mut random));
            });
        }
        for failover in 1..=FAILOVERS {
            history.await_or_fail("the rounds go on", || {
                history.rounds() >= ROUNDS / FAILOVERS * failover
            });
            scene.cluster.fail_over(history);
        }
        history.await_or_fail("a round of every kind", || {
            KINDS.iter().all(|kind| history.count(kind) > 0)
        });
    });
    report(&format!(
        "{} rounds: {}",
        history.rounds(),
        history.counts()
    ));
    the_fences_of_the_writes_never_go_down(&scene);
    who_comes_now_is_let_in(&scene);
}

/// The resource's own order: each write has a number, taken while its fence's row was locked.
fn the_fences_of_the_writes_never_go_down(scene: &Scene) {
    let rows = scene
        .resource
        .connect()
        .query("SELECT fence FROM writes ORDER BY at", &[]);
    let fences: Vec<i64> = rows.expect("rows").iter().map(|row| row.get(0)).collect();
    for pair in fences.windows(2) {
        assert!(
            pair[0] <= pair[1],
            "{} was written after {}",
            pair[1],
            pair[0]
        );
    }
    assert_eq!(
        scene.resource.remembered(Scene::KEY),
        fences.last().copied()
    );
}

/// The other half: a resource that refuses everybody would be as safe.
fn who_comes_now_is_let_in(scene: &Scene) {
    assert!(scene.cluster.sql("DELETE FROM public.lease"), "a server");
    let out = Lease::new(["claim", Scene::KEY, "--format", "json"])
        .url(scene.cluster.url())
        .output()
        .expect_code(0);
    let grant: serde_json::Value = serde_json::from_str(&out.stdout).expect("JSON");
    let fence = grant["fence"].as_i64().expect("a fence");
    let mut client = scene.resource.connect();
    assert_eq!(state(check(&mut client, Scene::KEY, fence)), "");
}
