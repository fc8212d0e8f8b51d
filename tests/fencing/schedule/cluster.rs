//! The servers with the leases: a primary, and a standby that takes its place again and again without its last writes.

use std::sync::{Arc, RwLock};

use pglease::store::Store;
use postgres::{Client, NoTls};

use super::history::History;
use crate::leases_at;
use crate::support::Server;

pub(super) struct Cluster(RwLock<Pair>);

#[derive(Clone)]
struct Pair {
    primary: Arc<Server>,
    standby: Arc<Server>,
}

impl Cluster {
    pub(super) fn start() -> Self {
        let primary = Server::start_plain();
        let standby = primary.standby(false);
        Self(RwLock::new(Pair {
            primary: Arc::new(primary),
            standby: Arc::new(standby),
        }))
    }

    fn pair(&self) -> Pair {
        self.0.read().expect("the pair").clone()
    }

    /// Both servers, whichever of them is the primary.
    pub(super) fn url(&self) -> String {
        let pair = self.pair();
        format!(
            "postgresql://postgres@127.0.0.1:{},127.0.0.1:{}/postgres?target_session_attrs=read-write",
            pair.primary.port(),
            pair.standby.port()
        )
    }

    pub(super) fn store(&self) -> Store {
        leases_at(&self.url())
    }

    /// What another client does to the row. Whether it was done: now and then there is no server to do it.
    pub(super) fn sql(&self, sql: &str) -> bool {
        Client::connect(&self.url(), NoTls)
            .is_ok_and(|mut client| client.batch_execute(sql).is_ok())
    }

    /// The standby falls behind, terms are granted that it does not hear of, the primary dies, and the standby takes its
    /// place and gets a standby of its own.
    pub(super) fn fail_over(&self, history: &History) {
        let Pair { primary, standby } = self.pair();
        standby.fall_behind();
        let known = standby.psql("SELECT coalesce(max(fence), 0) FROM public.lease");
        let known: i64 = known.parse().expect("a fence");
        history.await_or_fail("a term that the standby does not know", || {
            history.newest_term() > known
        });
        primary.crash();
        standby.promote();
        let next = Arc::new(standby.standby(false));
        *self.0.write().expect("the pair") = Pair {
            primary: standby,
            standby: next,
        };
        history.note("failovers");
    }
}
