//! Fencing to the end: the check in PostgreSQL against a real server, and the recipes of lease-fencing(7).

#[path = "../support/mod.rs"]
mod support;

mod frozen;
mod hostile;
mod install;
mod neighbours;
mod order;
mod overtaken;
mod page;
mod recipes;
mod refused;
mod schedule;
mod sequence;
mod speed;

use std::io::Write as _;
use std::sync::Arc;
use std::thread;

use pglease::connect::Settings;
use pglease::fencing;
use pglease::sql::Table;
use pglease::store::{Reporter, Store};
use postgres::{Client, NoTls};
use support::{LIMIT, shared, until};

/// A database of its own with the check installed in `public`.
struct Resource {
    url: String,
}

impl Resource {
    fn new() -> Self {
        let resource = Self::bare();
        install(&mut resource.connect(), "public");
        resource
    }

    /// Nothing installed yet.
    fn bare() -> Self {
        Self {
            url: shared().create_database(),
        }
    }

    /// The check, and a table for writes that keeps their order: a write takes its number while its fence is locked.
    fn with_writes() -> Self {
        let resource = Self::new();
        let table =
            "CREATE TABLE writes (key text, fence bigint, at bigint GENERATED ALWAYS AS IDENTITY)";
        resource.connect().batch_execute(table).expect("a table");
        resource
    }

    fn connect(&self) -> Client {
        Client::connect(&self.url, NoTls).expect("a connection")
    }

    /// As another role.
    fn connect_as(&self, role: &str) -> Client {
        let url = self.url.replace("//postgres@", &format!("//{role}@"));
        Client::connect(&url, NoTls).expect("a connection")
    }

    /// What is remembered for a resource.
    fn remembered(&self, resource: &str) -> Option<i64> {
        self.connect()
            .query_opt(
                "SELECT fence FROM public.lease_fence WHERE resource = $1",
                &[&resource],
            )
            .expect("the table")
            .map(|row| row.get(0))
    }
}

/// The leases of a database, as every verb of `lease` uses them.
fn leases(resource: &Resource) -> Store {
    leases_at(&resource.url)
}

fn leases_at(url: &str) -> Store {
    let settings = Settings::resolve_in(Some(url), &|_| None).expect("settings");
    let table = Table::parse("public.lease").expect("a table");
    let silent = Reporter {
        step: Arc::new(|_| {}),
        warning: Arc::new(|_| {}),
    };
    Store::new(settings, table, LIMIT, silent)
}

/// Does `second` on a connection of its own, which must wait, and then `then`, which must let it continue.
fn once_it_waits<T: Send>(
    resource: &Resource,
    second: impl FnOnce(&mut Client) -> T + Send,
    then: impl FnOnce(),
) -> T {
    let mut client = resource.connect();
    let pid: i32 = client
        .query_one("SELECT pg_backend_pid()", &[])
        .expect("a pid")
        .get(0);
    let mut watch = resource.connect();
    thread::scope(|scope| {
        let waiting = scope.spawn(move || second(&mut client));
        until("the second one waits", || {
            assert!(
                !waiting.is_finished(),
                "it did not wait: the lock is missing"
            );
            let blocked = watch.query_one("SELECT cardinality(pg_blocking_pids($1)) > 0", &[&pid]);
            blocked.expect("a server").get::<_, bool>(0)
        });
        then();
        waiting.join().expect("an answer")
    })
}

/// Installs as `lease init` does: in one transaction.
fn try_install(client: &mut Client, schema: &str) -> Result<(), postgres::Error> {
    let ddl = fencing::ddl(&pglease::sql::quote(schema));
    let done = client.batch_execute(&format!("BEGIN; {ddl} COMMIT"));
    if done.is_err() {
        client.batch_execute("ROLLBACK").expect("a connection");
    }
    done
}

#[track_caller]
fn install(client: &mut Client, schema: &str) {
    try_install(client, schema).unwrap_or_else(|error| panic!("{}", told(&error)));
}

/// Checks a fence, on its own or in the transaction that is open.
fn check(
    client: &mut impl postgres::GenericClient,
    resource: &str,
    fence: i64,
) -> Result<(), postgres::Error> {
    client
        .execute(
            "SELECT public.lease_check_fence($1, $2)",
            &[&resource, &fence],
        )
        .map(|_| ())
}

/// The SQLSTATE of a failure, or "" where there was none.
fn state(result: Result<(), postgres::Error>) -> String {
    result.map_or_else(
        |error| {
            error
                .code()
                .map_or_else(|| error.to_string(), |code| code.code().to_owned())
        },
        |()| String::new(),
    )
}

fn told(error: &postgres::Error) -> String {
    error.as_db_error().map_or_else(
        || error.to_string(),
        |e| {
            format!(
                "{}: {} / {}",
                e.code().code(),
                e.message(),
                e.hint().unwrap_or_default()
            )
        },
    )
}

/// A line on the real standard error: a measurement is worth seeing when the test passes, too.
fn report(text: &str) {
    let thread = thread::current();
    let _ = writeln!(
        std::io::stderr(),
        "{}: {text}",
        thread.name().unwrap_or("fencing")
    );
}

/// A role of its own, which is gone with the server.
fn role(client: &mut Client) -> String {
    let name = format!("role_{}_{}", std::process::id(), support::serial());
    client
        .batch_execute(&format!("CREATE ROLE {name} LOGIN"))
        .expect("a role");
    name
}
