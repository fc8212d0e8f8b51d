//! How a throwaway server is made.

use std::ffi::OsString;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use super::server::Server;
use super::{keeper, programs};

/// What a server is to be like. Made by [`Server::builder`].
#[derive(Debug, Default)]
pub struct Builder {
    conf: Vec<String>,
    hba: Vec<String>,
    env: Vec<(String, OsString)>,
    fsync: bool,
    certificate: Option<(PathBuf, PathBuf)>,
    client_ca: Option<PathBuf>,
}

impl Builder {
    /// A line for postgresql.conf; the last one for a setting counts.
    pub fn conf(mut self, line: impl Into<String>) -> Self {
        self.conf.push(line.into());
        self
    }

    /// A line for pg_hba.conf, or several. They stand in the order given and before the usual ones, which trust
    /// everyone on the socket and on the loopback.
    pub fn hba(mut self, line: impl Into<String>) -> Self {
        self.hba.push(line.into());
        self
    }

    /// Lets programs in a [`Network`](super::Network) reach it, too.
    pub fn for_networks(self) -> Self {
        self.conf("listen_addresses = '*'")
            .hba("host all all samenet trust")
    }

    /// A variable of the server's environment, at every start.
    pub fn env(mut self, name: impl Into<String>, value: impl Into<OsString>) -> Self {
        self.env.push((name.into(), value.into()));
        self
    }

    /// Whether the server waits for the disk. Off by default: only a crash of the machine could tell.
    pub fn fsync(mut self, on: bool) -> Self {
        self.fsync = on;
        self
    }

    /// Offers TLS with this certificate (chain) and key, which are copied.
    pub fn ssl(mut self, certificate: impl Into<PathBuf>, key: impl Into<PathBuf>) -> Self {
        self.certificate = Some((certificate.into(), key.into()));
        self
    }

    /// Checks client certificates against this CA. Combine it with an [`hba`](Self::hba) line that asks for one.
    pub fn client_ca(mut self, ca: impl Into<PathBuf>) -> Self {
        self.client_ca = Some(ca.into());
        self
    }

    /// Makes the server and starts it.
    pub fn start(self) -> Server {
        let mut server = Server::lay_out();
        server.env = self.env;
        let data = server.data();
        programs::run(
            std::process::Command::new("cp")
                .arg("-a")
                .arg(template())
                .arg(&data),
        );
        let hba: String = self.hba.iter().map(|line| format!("{line}\n")).collect();
        let usual = fs::read_to_string(data.join("pg_hba.conf")).expect("pg_hba.conf");
        fs::write(data.join("pg_hba.conf"), hba + &usual).expect("pg_hba.conf");
        if self.fsync {
            server.configure(&["fsync = on".to_owned()]);
        }
        if let Some((certificate, key)) = &self.certificate {
            server.install(certificate, "server.crt");
            server.install(key, "server.key");
            server.configure(&["ssl = on".to_owned()]);
        }
        if let Some(ca) = &self.client_ca {
            server.install(ca, "root.crt");
            server.configure(&["ssl_ca_file = 'root.crt'".to_owned()]);
        }
        server.configure(&self.conf);
        server.start();
        server
    }
}

/// A cluster that was made once and is copied for each server: initdb takes a second or more.
fn template() -> &'static Path {
    static TEMPLATE: OnceLock<PathBuf> = OnceLock::new();
    TEMPLATE.get_or_init(|| {
        let dir = keeper::dir("template");
        programs::give(&dir);
        let data = dir.join("cluster");
        programs::run(
            programs::command(programs::bindir().join("initdb"))
                .args([
                    "--no-sync",
                    "--no-instructions",
                    "--auth=trust",
                    "--username=postgres",
                ])
                .args(["--encoding=UTF8", "--locale=C", "--wal-segsize=1", "-D"])
                .arg(&data),
        );
        let mut conf = fs::OpenOptions::new()
            .append(true)
            .open(data.join("postgresql.conf"))
            .expect("postgresql.conf");
        // Shared memory in files, so that a server that is killed leaves nothing in /dev/shm.
        conf.write_all(
            b"\nfsync = off\nfull_page_writes = off\nmax_connections = 200\nshared_buffers = 16MB\n\
              wal_keep_size = 64MB\nlisten_addresses = '127.0.0.1'\nlog_line_prefix = '%m [%p] %a '\n\
              dynamic_shared_memory_type = mmap\nshared_memory_type = mmap\n",
        )
        .expect("postgresql.conf");
        data
    })
}
