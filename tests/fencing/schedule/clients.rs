//! Those who claim, write, renew and release: some in this process, many steps a second, some as jobs of the real `lease
//! run`.

use std::time::Duration;

use fastrand::Rng;
use pglease::fencing::SQLSTATE_STALE;
use pglease::lease::{Claim, Holder, Key, Renewal, Term};
use pglease::timing::{Extension, Ttl};
use postgres::{Client, Error, IsolationLevel};

use super::Scene;
use crate::overtaken::{JOB, PSQL_FAILED};
use crate::support::{self, LIMIT, Running, programs, until};
use crate::{check, state};

const LEVELS: [IsolationLevel; 3] = [
    IsolationLevel::ReadCommitted,
    IsolationLevel::RepeatableRead,
    IsolationLevel::Serializable,
];

/// A client with the steps of the library, which can do at any time what a frozen machine does when it wakes up: write for
/// a term of long ago.
pub(super) struct Hand<'a> {
    scene: &'a Scene,
    key: Key,
    resource: Client,
    /// Every term it ever had, the latest one last.
    terms: Vec<Term>,
}

impl<'a> Hand<'a> {
    pub(super) fn new(scene: &'a Scene) -> Self {
        Self {
            scene,
            key: Scene::KEY.parse().expect("a key"),
            resource: scene.resource.connect(),
            terms: Vec::new(),
        }
    }

    pub(super) fn turn(&mut self, random: &mut Rng) {
        match random.u8(..100) {
            0..35 => self.claim(random),
            35..70 => self.write(random),
            70..75 => self.renew(),
            75..85 => self.release(random),
            85..94 => self.sql(
                "expiries",
                "UPDATE public.lease SET acquired_at = clock_timestamp() - interval '1 day',
                        expires_at = clock_timestamp()",
            ),
            _ => self.sql("deletions", "DELETE FROM public.lease"),
        }
    }

    fn note(&self, what: &'static str) {
        self.scene.history.note(what);
    }

    fn claim(&mut self, random: &mut Rng) {
        let ttl = Ttl::new(LIMIT * 10).expect("a ttl");
        // Often one that was here before: a claim of the holder's own extends its term.
        let holder = match self.terms.last() {
            Some(last) if random.u8(..4) == 0 => last.holder.clone(),
            _ => Holder::fresh("hand").expect("a holder"),
        };
        let asked = self.scene.history.now();
        let sent =
            self.scene
                .cluster
                .store()
                .claim(&self.key, &holder, Extension::To(ttl), LIMIT, None);
        let term = match sent.map(|sent| sent.answer) {
            Ok(Claim::Granted(grant)) => grant.term,
            Ok(Claim::Held(_) | Claim::NotDue(_)) => return self.note("claims in vain"),
            Err(_) => return self.note("claims without an answer"),
        };
        if self.terms.contains(&term) {
            return self.note("claims that extended");
        }
        let fence = term.fence.get();
        self.scene
            .history
            .granted(asked, term.holder.as_str(), fence);
        self.terms.push(term);
    }

    /// For one of its last terms: as the holder, or as one who does not know yet that it no longer is.
    fn write(&mut self, random: &mut Rng) {
        let Some(back) = self.terms.len().checked_sub(1) else {
            return;
        };
        let fence = self.terms[back - random.usize(..=back.min(2))].fence.get();
        let level = LEVELS[random.usize(..LEVELS.len())];
        let seconds = random.f64() / 50.0;
        let sent = self.scene.history.now();
        match state(self.try_write(fence, level, seconds)).as_str() {
            "" => self.scene.history.accepted(sent, fence),
            SQLSTATE_STALE => self.note("stale writes refused"),
            // A newer fence has come after this transaction's snapshot.
            "40001" => self.note("writes to be repeated"),
            other => panic!("a write failed with {other:?}"),
        }
    }

    /// The write takes so long, as one of many rows does.
    fn try_write(&mut self, fence: i64, level: IsolationLevel, seconds: f64) -> Result<(), Error> {
        let builder = self.resource.build_transaction().isolation_level(level);
        let mut transaction = builder.start()?;
        check(&mut transaction, Scene::KEY, fence)?;
        transaction.execute("INSERT INTO writes VALUES ($1, $2)", &[&Scene::KEY, &fence])?;
        transaction.execute("SELECT pg_sleep($1)", &[&seconds])?;
        transaction.commit()
    }

    fn renew(&mut self) {
        let Some(term) = self.terms.last() else {
            return;
        };
        let ttl = Ttl::new(LIMIT * 10).expect("a ttl");
        let sent = self
            .scene
            .cluster
            .store()
            .renew(term, Extension::To(ttl), LIMIT);
        match sent.map(|sent| sent.answer) {
            Ok(Renewal::Renewed(_)) => self.note("renewals"),
            Ok(Renewal::Lost(_)) => self.note("renewals in vain"),
            Err(_) => self.note("renewals without an answer"),
        }
    }

    /// Now and then late, for a term that is long over.
    fn release(&mut self, random: &mut Rng) {
        let Some(last) = self.terms.len().checked_sub(1) else {
            return;
        };
        let at = if random.u8(..4) == 0 {
            random.usize(..=last)
        } else {
            last
        };
        let store = self.scene.cluster.store();
        match store.release(&self.terms[at], Duration::ZERO, LIMIT) {
            Ok(_) => self.note("releases"),
            Err(_) => self.note("releases without an answer"),
        }
    }

    fn sql(&mut self, what: &'static str, sql: &str) {
        if self.scene.cluster.sql(sql) {
            self.note(what);
        }
    }
}

/// One `lease run` whose job writes, waits, and writes again. Every other one stands still in between, with all its
/// processes, until a holder of a newer fence has written.
pub(super) fn run(scene: &Scene, random: &mut Rng) {
    let asked = scene.history.now();
    let run = start(scene);
    let Some(fence) = first_write(&run) else {
        // The lease is held, or no server was to be had, or it was lost at once.
        let out = run.wait();
        assert!(
            matches!(out.code, Some(69 | 75 | 76 | PSQL_FAILED)),
            "{out}"
        );
        return scene.history.note("runs in vain");
    };
    scene
        .history
        .granted(asked, &format!("run {}", run.pid()), fence);
    scene.history.accepted(asked, fence);
    let overtaken = random.bool().then(|| freeze(scene, &run, fence)).flatten();
    run.close_input();
    let out = run.wait();
    match overtaken {
        Some(writes) => {
            assert_eq!(
                scene.writes_of(fence),
                writes,
                "written by one who was frozen: {out}"
            );
            assert!(matches!(out.code, Some(76 | PSQL_FAILED)), "{out}");
            scene.history.note("frozen runs overtaken");
        }
        None => {
            assert!(matches!(out.code, Some(0 | 76 | PSQL_FAILED)), "{out}");
            scene.history.note("runs");
        }
    }
}

/// Returns how often a run had written when a holder of a newer fence had. `None` if all ended before that.
fn freeze(scene: &Scene, run: &Running, fence: i64) -> Option<i64> {
    let is_overtaken = || scene.history.newest_write() > fence;
    run.freeze();
    until("somebody with a newer fence has written", || {
        is_overtaken() || scene.history.is_over()
    });
    let writes = is_overtaken().then(|| scene.writes_of(fence));
    run.thaw();
    writes
}

fn start(scene: &Scene) -> Running {
    let path = std::env::var("PATH").unwrap_or_default();
    support::job::run_script(&["--ttl", "3s", "--wait", "3s"], Scene::KEY, JOB)
        .url(scene.cluster.url())
        .env("RESOURCE", &scene.resource.url)
        .env("PATH", format!("{}:{path}", programs::bindir().display()))
        // A job that freezes with its transaction open must not keep its successor out.
        .env("PGOPTIONS", "-c idle_in_transaction_session_timeout=500")
        .open_input()
        .spawn()
}

/// The fence with which the job has written; `None` if the run has ended without that.
fn first_write(run: &Running) -> Option<i64> {
    until("the job has written, or the run has ended", || {
        let over = run.exit().is_some();
        let text = run.stdout();
        let fence = text
            .lines()
            .find_map(|line| line.strip_prefix("has written with "));
        match fence {
            Some(fence) => Some(Some(fence.parse().expect("a fence"))),
            None => over.then_some(None),
        }
    })
}
