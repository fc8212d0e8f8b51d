//! Both on the same keys at the same time: `lease run` and that program, which goes through a pooler.

use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::ops::Add as _;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;

use super::witness::{Seen, judge};
use super::{Neighbour, its_own_table, its_table_with_the_safe_default};
use crate::support::job::{Journal, run_script};
use crate::support::{Mode, Pooler, shared, skip, until};
use crate::{Resource, report};

/// Few enough that both are after the same one most of the time.
const KEYS: usize = 4;

/// How many claims a side may be ahead of the other. Theirs are much faster; without a limit they would soon be done, and
/// `lease run` would have nobody beside it.
const LEAD: u32 = 10;

/// The connections that the pooler keeps to the server, for all who come to it.
const POOL: usize = 2;

#[derive(Default)]
struct Side {
    granted: AtomicU32,
    refused: AtomicU32,
}

impl Side {
    fn granted(&self) -> u32 {
        self.granted.load(Ordering::SeqCst)
    }

    fn refused(&self) -> u32 {
        self.refused.load(Ordering::SeqCst)
    }

    fn note(&self, granted: bool) {
        let counter = if granted {
            &self.granted
        } else {
            &self.refused
        };
        counter.fetch_add(1, Ordering::SeqCst);
    }

    /// Whether it has not yet had all its claims. Waits while it is too far ahead of the other side.
    fn goes_on(&self, other: &Self, claims: u32) -> bool {
        until("the other side keeps up", || {
            self.granted() < other.granted() + LEAD
        });
        self.granted() < claims
    }
}

/// Runs a job that does nothing but note its term, and answers whether it was granted.
fn our_turn(url: &str, key: &str, journal: &Journal) -> bool {
    // Builtins of the shell alone: each line is one write, and the last of them is over before the job is.
    let job = format!(
        "exec >>{}; echo \"in ours $FENCE\"; echo \"out ours $FENCE\"",
        journal.path()
    );
    let options = ["--ttl", "5m", "--db-timeout", "30s"];
    // Waited for by the system alone: to look after so many runs as closely as other tests do costs more than the runs.
    let mut run = run_script(&options, key, &job)
        .url(url)
        .wrapped(["timeout", "60"])
        .command();
    let out = run.output().expect("timeout(1)");
    match out.status.code() {
        Some(0) => true,
        Some(75) => false,
        _ => panic!("neither granted nor held by somebody else: {out:?}"),
    }
}

/// The same for the other program: `None` where it was not granted, else whether the release went over another connection to
/// the server than the claim.
fn their_turn(neighbour: &mut Neighbour, key: &str, journal: &mut File) -> Option<bool> {
    let term = neighbour.claim(key)?;
    let mut note = |way: &str| {
        let line = format!("{way} theirs {}\n", term.fence);
        journal.write_all(line.as_bytes()).expect("a journal");
    };
    note("in");
    neighbour.renew(&term);
    note("out");
    Some(neighbour.release(&term) != term.backend)
}

/// So many claims each. Returns what the journals say, once it is known that neither side had a free run.
fn side_by_side(resource: &Resource, claims: u32) -> Seen {
    let pooler = Pooler::start(shared(), Mode::Transaction, POOL);
    let database = resource.url.rsplit('/').next().expect("a database");
    let pooled = pooler.url_for("postgres", database);
    let journals: [Journal; KEYS] = Default::default();
    let (ours, theirs, moved) = (Side::default(), Side::default(), AtomicU32::new(0));
    thread::scope(|scope| {
        // Half of ours shares the pooler, too.
        for url in [&resource.url, &pooled].repeat(2) {
            let (ours, theirs, journals) = (&ours, &theirs, &journals);
            scope.spawn(move || {
                while ours.goes_on(theirs, claims) {
                    let at = fastrand::usize(..KEYS);
                    ours.note(our_turn(url, &format!("k{at}"), &journals[at]));
                }
            });
        }
        for _ in 0..2 {
            scope.spawn(|| {
                let mut neighbour = Neighbour::connect(&pooled);
                let append = |journal: &Journal| {
                    let file = OpenOptions::new().append(true).open(journal.path());
                    file.expect("a journal")
                };
                let mut files = journals.each_ref().map(append);
                while theirs.goes_on(&ours, claims) {
                    let at = fastrand::usize(..KEYS);
                    let turn = their_turn(&mut neighbour, &format!("k{at}"), &mut files[at]);
                    theirs.note(turn.is_some());
                    moved.fetch_add(u32::from(turn == Some(true)), Ordering::SeqCst);
                }
            });
        }
    });
    let judged = |(at, journal): (usize, &Journal)| {
        judge(&journal.lines()).unwrap_or_else(|why| panic!("k{at}: {why}"))
    };
    let seen = journals
        .iter()
        .enumerate()
        .map(judged)
        .fold(Seen::default(), Seen::add);
    let moved = moved.into_inner();
    report(&format!(
        "lease was granted {} of {} claims, the other program {} of {}, and released {moved} of them over another connection than it had claimed by; its fence went back {} times",
        ours.granted(),
        ours.granted() + ours.refused(),
        theirs.granted(),
        theirs.granted() + theirs.refused(),
        seen.back
    ));
    assert_eq!(
        (seen.ours, seen.theirs),
        (ours.granted(), theirs.granted()),
        "each has noted each of its terms"
    );
    assert!(
        seen.ours >= claims && seen.theirs >= claims,
        "{seen:?} of {claims}"
    );
    assert!(
        ours.refused() > 0 && theirs.refused() > 0,
        "they were never in each other's way, so nothing was tested"
    );
    assert!(moved > 0, "there was no pool of connections between");
    seen
}

#[test]
fn with_a_program_that_deletes_rows_there_are_never_two_holders_and_our_fence_only_grows() {
    if !Pooler::is_available() {
        return skip("PgBouncer");
    }
    let resource = Resource::bare();
    its_own_table(&resource.url);
    let seen = side_by_side(&resource, 200);
    // Far more often than by the race that even a safe default leaves.
    assert!(
        seen.back > 20,
        "with a default of 1 the other program was hardly ever in danger, so nothing was tested: {seen:?}"
    );
}

#[test]
fn with_the_safe_default_that_programs_fence_grows_too_but_for_a_rare_race() {
    if !Pooler::is_available() {
        return skip("PgBouncer");
    }
    let resource = Resource::bare();
    its_table_with_the_safe_default(&resource.url);
    let seen = side_by_side(&resource, 1_000);
    assert!(seen.back <= 100, "{seen:?}");
}
