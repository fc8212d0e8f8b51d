//! A real PgBouncer in front of a throwaway server.

use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;
use std::process::Child;
use std::sync::Mutex;

use nix::sys::signal::Signal;
use postgres::{Client, NoTls};

use super::ports::Port;
use super::proc::Process;
use super::{Server, keeper, lock, programs, rows, until};

/// For how long a client keeps its connection to the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Until it disconnects.
    Session,
    /// Until its transaction ends.
    Transaction,
    /// Until its statement ends; transactions are refused.
    Statement,
}

impl Mode {
    fn word(self) -> &'static str {
        match self {
            Self::Session => "session",
            Self::Transaction => "transaction",
            Self::Statement => "statement",
        }
    }
}

/// A PgBouncer on 127.0.0.1. It knows the users `postgres` and `app` and asks for no password. Dropped, it is gone.
#[derive(Debug)]
pub struct Pooler {
    dir: PathBuf,
    port: Port,
    child: Mutex<Option<Child>>,
}

impl Pooler {
    /// Whether PgBouncer is installed. A test that finds it missing says so with [`super::skip`].
    pub fn is_available() -> bool {
        programs::find("pgbouncer").is_some()
    }

    /// Starts a pooler with at most `size` connections for each pair of user and database.
    pub fn start(server: &Server, mode: Mode, size: usize) -> Self {
        Self::start_with(server, mode, size, &[])
    }

    /// As [`start`](Self::start), with more lines for the section `[pgbouncer]`; the last one for a setting counts.
    pub fn start_with(server: &Server, mode: Mode, size: usize, lines: &[&str]) -> Self {
        let pooler = Self {
            dir: keeper::dir("p"),
            port: Port::reserve(),
            child: Mutex::new(None),
        };
        let mut ini = format!(
            "[databases]\n* = host={} port={}\n\n[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {}\n\
             unix_socket_dir = {dir}\nauth_type = trust\nauth_file = {dir}/users\nadmin_users = postgres\n\
             pool_mode = {}\ndefault_pool_size = {size}\nmax_client_conn = 500\n",
            server.socket_dir().display(),
            server.port(),
            pooler.port(),
            mode.word(),
            dir = pooler.dir.display(),
        );
        for line in lines {
            writeln!(ini, "{line}").expect("a string");
        }
        fs::write(pooler.dir.join("pgbouncer.ini"), ini).expect("pgbouncer.ini");
        fs::write(
            pooler.dir.join("users"),
            "\"postgres\" \"\"\n\"app\" \"\"\n",
        )
        .expect("users");
        programs::give(&pooler.dir);
        pooler.launch();
        pooler
    }

    /// Starts a pooler that was stopped, on the same port.
    pub fn launch(&self) {
        let log = fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(self.dir.join("log"))
            .expect("a log");
        let child = programs::command(programs::find("pgbouncer").expect("pgbouncer is installed"))
            .arg(self.dir.join("pgbouncer.ini"))
            .env(keeper::MARK, &self.dir)
            .stdout(log.try_clone().expect("a log"))
            .stderr(log)
            .spawn()
            .expect("pgbouncer starts");
        *lock(&self.child) = Some(child);
        until("the pooler takes connections", || {
            let ended = lock(&self.child)
                .as_mut()
                .is_none_or(|child| child.try_wait().expect("wait").is_some());
            assert!(!ended, "the pooler did not start:\n{}", self.log());
            self.try_console().is_ok()
        });
    }

    /// Kills it: its clients find their connections closed, new ones are refused.
    pub fn stop(&self) {
        if let Some(mut child) = lock(&self.child).take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    /// Stops it with every socket open: connections are accepted (the kernel does) and nothing is answered.
    pub fn freeze(&self) {
        let process = self.process();
        process.signal(Signal::SIGSTOP);
        until("the pooler is stopped", || {
            Process::find(process.pid).is_some_and(|now| now.is_stopped())
        });
    }

    /// Lets a frozen pooler go on.
    pub fn thaw(&self) {
        self.process().signal(Signal::SIGCONT);
    }

    fn process(&self) -> Process {
        let pid = lock(&self.child).as_ref().map(|child| child.id() as i32);
        pid.and_then(Process::find).expect("the pooler runs")
    }

    /// Its port on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.port.number()
    }

    /// The superuser through the pooler.
    pub fn url(&self) -> String {
        self.url_for("postgres", "postgres")
    }

    /// Any user and database through the pooler.
    pub fn url_for(&self, user: &str, database: &str) -> String {
        self.port.url(user, database)
    }

    fn try_console(&self) -> Result<Client, postgres::Error> {
        Client::connect(&self.url_for("postgres", "pgbouncer"), NoTls)
    }

    /// Runs a command of the pooler's console, as in `SHOW POOLS`, and returns its rows, columns parted by `|`.
    pub fn console(&self, command: &str) -> String {
        let mut client = self.try_console().expect("the pooler's console");
        rows(&mut client, command).unwrap_or_else(|error| panic!("{command}: {error}"))
    }

    /// What it has logged so far.
    pub fn log(&self) -> String {
        fs::read_to_string(self.dir.join("log")).unwrap_or_default()
    }
}

impl Drop for Pooler {
    fn drop(&mut self) {
        self.stop();
        let _ = fs::remove_dir_all(&self.dir);
    }
}
