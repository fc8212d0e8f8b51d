//! A thousand random steps on one resource, one after another, so that each answer is known beforehand: claims,
//! renewals, releases, expiries, rows deleted and restored, holders whose term is over and that still write.

use std::collections::HashMap;

use pglease::fencing::SQLSTATE_STALE;
use pglease::lease::{Claim, Holder, Key, Renewal, Term};
use pglease::store::Store;
use pglease::timing::{Extension, Ttl};
use postgres::Client;

use crate::support::LIMIT;
use crate::{Resource, check, leases, report, state};

/// A term, and its place in the order in which the server granted them.
#[derive(Clone)]
struct GrantedTerm {
    term: Term,
    serial: usize,
}

struct Schedule {
    store: Store,
    client: Client,
    key: Key,
    /// Everything that was ever granted, in order. Each holder may be frozen and wake up later.
    terms: Vec<GrantedTerm>,
    /// The latest term whose write was accepted.
    accepted: Option<GrantedTerm>,
    /// A copy of the row, as a dump or a replica that lags has it.
    copy: Option<(String, i64)>,
    seen: HashMap<&'static str, u32>,
}

const ROUNDS: u32 = 1_000;

impl Schedule {
    fn new(resource: &Resource) -> Self {
        let store = leases(resource);
        store.make_table(None).expect("a table");
        Self {
            store,
            client: resource.connect(),
            key: "k".parse().expect("a key"),
            terms: Vec::new(),
            accepted: None,
            copy: None,
            seen: HashMap::new(),
        }
    }

    fn note(&mut self, what: &'static str) {
        *self.seen.entry(what).or_default() += 1;
    }

    fn claim(&mut self, random: &mut fastrand::Rng) {
        let ttl = Ttl::new(LIMIT * 10).expect("a ttl");
        // Often one that was here before: a claim of the holder's own extends its term.
        let holder = match self.terms.last() {
            Some(last) if random.u8(..4) == 0 => last.term.holder.clone(),
            _ => Holder::fresh("h").expect("a holder"),
        };
        let sent = self
            .store
            .claim(&self.key, &holder, Extension::To(ttl), LIMIT, None)
            .expect("an answer");
        let term = match sent.answer {
            Claim::Granted(grant) => grant.term,
            Claim::Held(_) | Claim::NotDue(_) => return self.note("claims in vain"),
        };
        if self.terms.iter().any(|earlier| earlier.term == term) {
            return self.note("claims that extended");
        }
        let largest = self.terms.iter().map(|earlier| earlier.term.fence).max();
        assert!(Some(term.fence) > largest, "{term:?} after {largest:?}");
        self.note("terms");
        let serial = self.terms.len();
        self.terms.push(GrantedTerm { term, serial });
    }

    fn write(&mut self, random: &mut fastrand::Rng) {
        if self.terms.is_empty() {
            return;
        }
        // One of the last few: the holder, or one who does not know yet that it no longer is.
        let back = random.usize(..self.terms.len().min(5));
        let term = self.terms[self.terms.len() - 1 - back].clone();
        let answer = state(check(&mut self.client, "r", term.term.fence.get()));
        let newest = self.accepted.as_ref().map_or(0, |term| term.serial);
        if term.serial < newest {
            assert_eq!(
                answer, SQLSTATE_STALE,
                "term {} wrote after term {newest}",
                term.serial
            );
            self.note("stale writes refused");
        } else {
            assert_eq!(
                answer, "",
                "term {} was refused after term {newest}",
                term.serial
            );
            self.note("writes");
            self.accepted = Some(term);
        }
    }

    fn renew(&mut self) {
        let Some(term) = self.terms.last().cloned() else {
            return;
        };
        let ttl = Ttl::new(LIMIT * 10).expect("a ttl");
        match self
            .store
            .renew(&term.term, Extension::To(ttl), LIMIT)
            .expect("an answer")
            .answer
        {
            Renewal::Renewed(_) => self.note("renewals"),
            Renewal::Lost(_) => self.note("renewals in vain"),
        }
    }

    fn release(&mut self, random: &mut fastrand::Rng) {
        if self.terms.is_empty() {
            return;
        }
        // Now and then one that comes late, for a term that is long over.
        let back = if random.u8(..4) == 0 {
            random.usize(..self.terms.len())
        } else {
            0
        };
        let term = self.terms[self.terms.len() - 1 - back].term.clone();
        self.store
            .release(&term, std::time::Duration::ZERO, LIMIT)
            .expect("an answer");
        self.note("releases");
    }

    /// What another client does to the row.
    fn sql(&mut self, what: &'static str, sql: &str) {
        self.client
            .batch_execute(sql)
            .unwrap_or_else(|error| panic!("{sql}: {error}"));
        self.note(what);
    }

    fn copy(&mut self) {
        let row = self.client.query_opt(
            "SELECT holder, fence FROM public.lease WHERE key = 'k'",
            &[],
        );
        self.copy = row.expect("a table").map(|row| (row.get(0), row.get(1)));
    }

    /// The row becomes what it was, as after a failover or a restore that lost the last writes.
    fn restore(&mut self, expired: bool) {
        self.sql("restores", "DELETE FROM public.lease");
        if let Some((holder, fence)) = self.copy.clone() {
            let expires = if expired { "-1 hour" } else { "1 hour" };
            self.client
                .execute(
                    "INSERT INTO public.lease VALUES
                         ('k', $1, $2, clock_timestamp() - interval '1 day', clock_timestamp() + $3::text::interval)",
                    &[&holder, &fence, &expires],
                )
                .expect("the row");
        }
    }

    fn step(&mut self, random: &mut fastrand::Rng) {
        match random.u8(..100) {
            0..30 => self.claim(random),
            30..60 => self.write(random),
            60..65 => self.renew(),
            65..75 => self.release(random),
            75..85 => self.sql(
                "expiries",
                "UPDATE public.lease SET acquired_at = clock_timestamp() - interval '1 day',
                        expires_at = clock_timestamp()",
            ),
            85..90 => self.sql("deletions", "DELETE FROM public.lease"),
            90..95 => self.copy(),
            _ => self.restore(random.bool()),
        }
    }
}

#[test]
fn in_a_thousand_random_steps_no_write_of_an_older_holder_follows_a_newer_ones() {
    let resource = Resource::new();
    let mut schedule = Schedule::new(&resource);
    let seed = fastrand::u64(..);
    report(&format!("seed {seed}"));
    let mut random = fastrand::Rng::with_seed(seed);
    for _ in 0..ROUNDS {
        schedule.step(&mut random);
    }
    let mut seen: Vec<_> = schedule.seen.into_iter().collect();
    seen.sort();
    report(&format!("{seen:?}"));
    for what in [
        "terms",
        "claims that extended",
        "writes",
        "stale writes refused",
        "deletions",
        "restores",
    ] {
        assert!(
            seen.iter().any(|(seen, _)| *seen == what),
            "a schedule without {what}: {seen:?}"
        );
    }
}
