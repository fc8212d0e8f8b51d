//! Where a test of `lease purge` happens.

use crate::support::{Lease, Output, Server, shared};
use crate::{database, term};

/// A lease table in a database of its own.
pub(super) struct Place {
    pub(super) server: &'static Server,
    pub(super) database: String,
}

impl Place {
    pub(super) fn with(init: &[&str]) -> Self {
        let server = shared();
        let place = Self {
            server,
            database: database(server),
        };
        if !init.is_empty() {
            place.lease(init).expect_code(0);
        }
        place
    }

    pub(super) fn new() -> Self {
        Self::with(&["init"])
    }

    pub(super) fn call(&self, args: &[&str]) -> Lease {
        Lease::new(args).url(self.server.url_for("postgres", &self.database))
    }

    #[track_caller]
    pub(super) fn lease(&self, args: &[&str]) -> Output {
        self.call(args).output()
    }

    #[track_caller]
    pub(super) fn sql(&self, text: &str) -> String {
        self.server.psql_in(&self.database, text)
    }

    /// A fence of `key`, which is released again.
    #[track_caller]
    pub(super) fn used(&self, key: &str) -> i64 {
        let term = term(
            &self
                .lease(&["claim", "--format", "json", key])
                .expect_code(0)
                .stdout,
        );
        let fence = term.fence.to_string();
        self.lease(&["release", "--holder", &term.holder, "--fence", &fence, key])
            .expect_code(0);
        term.fence
    }

    /// Moves everything that has happened to these keys so many days into the past.
    pub(super) fn age(&self, keys: &str, days: u32) {
        self.sql(&format!(
            "ALTER TABLE public.lease DISABLE TRIGGER USER;
             UPDATE public.lease
                SET acquired_at = acquired_at - interval '{days} days', expires_at = expires_at - interval '{days} days',
                    fence = fence - {days} * 86400000000
              WHERE key LIKE '{keys}';
             ALTER TABLE public.lease ENABLE TRIGGER USER;"
        ));
        if self.has_history() {
            self.sql(&format!(
                "UPDATE public.lease_history
                    SET acquired_at = acquired_at - interval '{days} days', ended_at = ended_at - interval '{days} days',
                        fence = fence - {days} * 86400000000
                  WHERE key LIKE '{keys}'"
            ));
        }
    }

    pub(super) fn has_history(&self) -> bool {
        !self
            .sql("SELECT to_regclass('public.lease_history')")
            .is_empty()
    }

    /// The keys that have a row.
    pub(super) fn keys(&self) -> String {
        self.sql("SELECT string_agg(key, ' ' ORDER BY key COLLATE \"C\") FROM public.lease")
    }

    /// The keys of all runs.
    pub(super) fn runs(&self) -> String {
        self.sql("SELECT string_agg(key, ' ' ORDER BY key, fence) FROM public.lease_history")
    }

    /// Every row, with its version.
    pub(super) fn all(&self) -> String {
        self.sql("SELECT l::text || xmin FROM public.lease AS l ORDER BY key")
            + &self.sql("SELECT h::text || xmin FROM public.lease_history AS h ORDER BY h")
    }
}
