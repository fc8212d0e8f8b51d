//! The history of runs, as its rows show it: what they say, and that they never stand in the way of a lease.

#[path = "../support/mod.rs"]
mod support;

mod elsewhere;
mod ends;
mod forged;
mod install;
mod others;
mod rights;
mod robust;

use support::table::literal;
use support::{Lease, Server, shared};

/// How a term is shown by [`Database::terms`].
const SHOWN: &str = "concat_ws(' ', coalesce(ended, 'running'), 'by ' || ended_by, 'on ' || ended_by_host, \
    'pid ' || ended_by_pid, 'code ' || exit_code, 'signal ' || exit_signal)";

/// A database of its own.
struct Database<'a> {
    server: &'a Server,
    name: String,
}

impl<'a> Database<'a> {
    /// One without a lease table.
    fn on(server: &'a Server) -> Self {
        let url = server.create_database();
        let name = url.rsplit('/').next().unwrap_or_default().to_owned();
        Self { server, name }
    }
}

impl Database<'static> {
    /// One without a lease table, on the server that all tests of this binary share.
    fn empty() -> Self {
        Database::on(shared())
    }

    /// One with a lease table and its history.
    fn ready() -> Self {
        let database = Self::empty();
        database.lease(&["init"]).output().expect_code(0);
        database
    }
}

impl Database<'_> {
    /// The URL for a role.
    fn url_for(&self, role: &str) -> String {
        self.server.url_for(role, &self.name)
    }

    /// A connection of the superuser.
    fn client(&self) -> postgres::Client {
        self.server.try_client(&self.name).expect("a connection")
    }

    /// `lease` with these arguments, as superuser.
    fn lease(&self, args: &[&str]) -> Lease {
        self.lease_as("postgres", args)
    }

    /// `lease` with these arguments, as a role that can log in.
    fn lease_as(&self, role: &str, args: &[&str]) -> Lease {
        Lease::new(args).url(self.url_for(role))
    }

    /// Runs a script under a key.
    fn run(&self, key: &str, script: &str) -> Lease {
        self.lease(&["run", key, "--", "sh", "-c", script])
    }

    /// Claims a key that is free.
    #[track_caller]
    fn claim(&self, key: &str, more: &[&str]) -> Term {
        let call = self.lease(&["claim", "--format", "json", key]).args(more);
        Term::read(&call.output().expect_code(0).stdout)
    }

    /// SQL as superuser.
    #[track_caller]
    fn sql(&self, sql: &str) -> String {
        self.server.psql_in(&self.name, sql)
    }

    /// The same with a key in the place of KEY.
    #[track_caller]
    fn sql_for(&self, key: &str, sql: &str) -> String {
        self.sql(&sql.replace("KEY", &literal(key)))
    }

    /// Claims a key, lets its term expire, and answers when that was.
    #[track_caller]
    fn expired(&self, key: &str) -> String {
        self.claim(key, &[]);
        self.expire(key)
    }

    /// Lets a term expire at this moment, and answers which one it was.
    #[track_caller]
    fn expire(&self, key: &str) -> String {
        self.sql_for(
        key,
        "UPDATE public.lease SET expires_at = clock_timestamp() WHERE key = KEY RETURNING expires_at",
    )
    }

    /// How the terms of a key have ended, the oldest first, and what is known about that.
    #[track_caller]
    fn terms(&self, key: &str) -> Vec<String> {
        self.history(key, SHOWN)
    }

    /// An expression over the rows of a key, the oldest first.
    #[track_caller]
    fn history(&self, key: &str, expression: &str) -> Vec<String> {
        let rows = self.sql_for(
            key,
            &format!(
                "SELECT {expression} FROM public.lease_history WHERE key = KEY ORDER BY acquired_at, fence"
            ),
        );
        rows.lines().map(str::to_owned).collect()
    }
}

/// The database of the tests that need no table of their own. Each uses its own keys.
fn here() -> &'static Database<'static> {
    static HERE: std::sync::OnceLock<Database<'static>> = std::sync::OnceLock::new();
    HERE.get_or_init(Database::ready)
}

/// A term as `claim --format json` prints it.
struct Term {
    key: String,
    holder: String,
    fence: String,
}

impl Term {
    #[track_caller]
    fn read(json: &str) -> Self {
        let value: serde_json::Value = serde_json::from_str(json).expect("one JSON object");
        Self {
            key: value["key"].as_str().expect("a key").to_owned(),
            holder: value["holder"].as_str().expect("a holder").to_owned(),
            fence: value["fence"].to_string(),
        }
    }

    /// The arguments that name it, for `renew` and `release`.
    fn named(&self) -> [&str; 5] {
        ["--holder", &self.holder, "--fence", &self.fence, &self.key]
    }
}
