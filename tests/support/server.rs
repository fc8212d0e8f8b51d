//! Throwaway PostgreSQL servers.

use std::ffi::OsString;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::sync::{Mutex, OnceLock};

use nix::sys::signal::Signal;
use postgres::{Client, NoTls};

use super::ports::Port;
use super::{builder::Builder, keeper, lock, programs, rows, until};

/// The server that the tests of this process share: nothing special about it, and no test may stop it. It is started
/// on first use.
pub fn shared() -> &'static Server {
    static SHARED: OnceLock<Server> = OnceLock::new();
    SHARED.get_or_init(Server::start_plain)
}

/// A PostgreSQL server of its own, on 127.0.0.1 and on a socket, with the superuser `postgres` trusted on both.
/// Dropped, it is gone with everything it wrote.
#[derive(Debug)]
pub struct Server {
    pub(super) dir: PathBuf,
    pub(super) env: Vec<(String, OsString)>,
    port: Port,
    pub(super) postmaster: Mutex<Option<Child>>,
}

impl Server {
    /// Describes a server; `start` makes it.
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// A server as it comes.
    pub fn start_plain() -> Self {
        Self::builder().start()
    }

    /// A directory and a port, and nothing in them yet.
    pub(super) fn lay_out() -> Self {
        let dir = keeper::dir("s");
        programs::give(&dir);
        Self {
            dir,
            env: Vec::new(),
            port: Port::reserve(),
            postmaster: Mutex::new(None),
        }
    }

    /// Its data directory.
    pub fn data(&self) -> PathBuf {
        self.dir.join("data")
    }

    /// The directory of its socket, to be given as a host.
    pub fn socket_dir(&self) -> &Path {
        &self.dir
    }

    /// Its port, on 127.0.0.1 and in the socket's name.
    pub fn port(&self) -> u16 {
        self.port.number()
    }

    /// The superuser over TCP.
    pub fn url(&self) -> String {
        self.url_for("postgres", "postgres")
    }

    /// Any user and database over TCP; `user` may carry a password, as in `app:secret`.
    pub fn url_for(&self, user: &str, database: &str) -> String {
        self.port.url(user, database)
    }

    /// The superuser over the socket.
    pub fn socket_url(&self) -> String {
        let dir = self.dir.to_str().expect("a plain path").replace('/', "%2F");
        format!("postgresql://postgres@{dir}:{}/postgres", self.port())
    }

    /// Makes a database that no other test uses and returns the superuser's URL for it.
    pub fn create_database(&self) -> String {
        let name = format!("db_{}", super::serial());
        // Two at a time would fail: the template must have no other user.
        static ONE: Mutex<()> = Mutex::new(());
        let _one = lock(&ONE);
        self.psql(&format!("CREATE DATABASE {name} TEMPLATE template0"));
        self.url_for("postgres", &name)
    }

    /// A connection of the superuser, over the socket.
    pub fn client(&self) -> Client {
        self.client_in("postgres")
    }

    /// As [`client`](Self::client), in another database.
    pub fn client_in(&self, database: &str) -> Client {
        self.try_client(database)
            .unwrap_or_else(|error| panic!("cannot connect: {error}"))
    }

    /// The same in another database, if it can be reached.
    pub fn try_client(&self, database: &str) -> Result<Client, postgres::Error> {
        postgres::Config::new()
            .host_path(&self.dir)
            .port(self.port())
            .user("postgres")
            .dbname(database)
            .application_name("test")
            .connect(NoTls)
    }

    /// Runs SQL as superuser and returns its rows as `psql -XAt` would: columns parted by `|`, NULL as nothing.
    #[track_caller]
    pub fn psql(&self, sql: &str) -> String {
        self.psql_in("postgres", sql)
    }

    /// As [`psql`](Self::psql), in another database.
    #[track_caller]
    pub fn psql_in(&self, database: &str, sql: &str) -> String {
        self.try_psql_in(database, sql).unwrap_or_else(|error| {
            let detail = error
                .as_db_error()
                .map(ToString::to_string)
                .unwrap_or_default();
            panic!("{sql}: {error} {detail}")
        })
    }

    /// As [`psql_in`](Self::psql_in), for SQL that may fail.
    pub fn try_psql_in(&self, database: &str, sql: &str) -> Result<String, postgres::Error> {
        rows(&mut self.try_client(database)?, sql)
    }

    /// Appends lines to postgresql.conf. They count from the next start or reload.
    pub fn configure(&self, lines: &[String]) {
        let path = self.data().join("postgresql.conf");
        let mut conf = fs::OpenOptions::new()
            .append(true)
            .open(path)
            .expect("postgresql.conf");
        for line in lines {
            writeln!(conf, "{line}").expect("postgresql.conf");
        }
    }

    /// Changes a setting of the running server.
    pub fn set(&self, name: &str, value: &str) {
        self.psql(&format!("ALTER SYSTEM SET {name} = '{value}'"));
        self.psql("SELECT pg_reload_conf()");
        until(&format!("{name} is {value:?}"), || {
            self.psql(&format!("SHOW {name}")) == value
        });
    }

    /// Copies a file into the data directory, readable by the server alone.
    pub(super) fn install(&self, file: &Path, name: &str) {
        use std::os::unix::fs::PermissionsExt as _;
        let target = self.data().join(name);
        fs::copy(file, &target).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        fs::set_permissions(&target, fs::Permissions::from_mode(0o600)).expect("chmod");
        programs::give(&target);
    }

    /// What the server has logged so far.
    pub fn log(&self) -> String {
        fs::read(self.dir.join("log"))
            .map(|log| String::from_utf8_lossy(&log).into_owned())
            .unwrap_or_default()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.thaw();
        // Immediate shutdown: nothing is kept, but the shared memory is given back.
        self.end(Signal::SIGQUIT);
        let _ = fs::remove_dir_all(&self.dir);
    }
}
