//! Throwaway servers, and `psql` beside them.

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::LazyLock;
use std::time::{Duration, Instant};

/// How long anything may take that has to happen.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);

/// A port of this machine that nobody listens on.
pub(crate) const NOBODY: u16 = 1;

/// Runs a server, and removes it when the pipe that it reads from closes: at the end of the test, however that ends.
/// initdb and postgres refuse to run as root, so they run as the owner of their directory.
const GUARD: &str = r#"
set -u
dir=$1 bin=$2; shift 2
if [ "$(id -u)" = 0 ]; then drop="setpriv --reuid=postgres --regid=postgres --clear-groups"; else drop=""; fi
cd "$dir"
$drop "$bin/postgres" -D "$dir/data" -k "$dir" "$@" >"$dir/log" 2>&1 </dev/null &
server=$!
echo started
cat >/dev/null
kill -QUIT $server 2>/dev/null
wait $server
rm -rf "$dir"
"#;

/// A server of its own: data, socket and log in one directory under /tmp, whose name is short enough for a socket.
pub(crate) struct Server {
    pub(crate) dir: PathBuf,
    pub(crate) port: u16,
    guard: Child,
    pipe: Option<ChildStdin>,
}

/// The directory of the newest server programs.
pub(crate) fn programs() -> PathBuf {
    let mut found: Vec<PathBuf> = fs::read_dir("/usr/lib/postgresql")
        .expect("server programs in /usr/lib/postgresql")
        .filter_map(|e| Some(e.ok()?.path().join("bin")))
        .filter(|p| p.join("initdb").exists())
        .collect();
    found.sort();
    found.pop().expect("a PostgreSQL server is installed")
}

fn is_root() -> bool {
    nix::unistd::Uid::effective().is_root()
}

/// A command that runs as the user of the server.
pub(crate) fn as_server(program: impl AsRef<Path>) -> Command {
    if !is_root() {
        return Command::new(program.as_ref());
    }
    let mut command = Command::new("setpriv");
    command
        .args(["--reuid=postgres", "--regid=postgres", "--clear-groups"])
        .arg(program.as_ref());
    command
}

fn succeed(command: &mut Command) {
    let output = command.output().expect("it can be run");
    assert!(
        output.status.success(),
        "{command:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
}

/// Hands a file or directory to the user of the server.
pub(crate) fn give_to_server(path: &Path) {
    if is_root() {
        succeed(
            Command::new("chown")
                .arg("-R")
                .arg("postgres:postgres")
                .arg(path),
        );
    }
}

/// A directory for as long as this process lives. What is kept in a `static` is never dropped, so the directory goes with
/// the pipe of a guard.
pub(crate) struct Kept(PathBuf, Child);

impl Kept {
    pub(crate) fn new() -> Self {
        let dir = tempfile::Builder::new()
            .prefix("lc")
            .tempdir_in("/tmp")
            .unwrap()
            .keep();
        let mut guard = Command::new("sh");
        guard
            .args(["-c", "cat >/dev/null; rm -rf \"$0\""])
            .arg(&dir)
            .stdin(Stdio::piped());
        Self(dir, guard.spawn().unwrap())
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        drop(self.1.stdin.take());
        let _ = self.1.wait();
    }
}

/// An empty cluster, made once and copied for each server.
static TEMPLATE: LazyLock<Kept> = LazyLock::new(|| {
    let kept = Kept::new();
    let dir = kept.path().to_owned();
    give_to_server(&dir);
    succeed(
        as_server(programs().join("initdb"))
            .current_dir(&dir)
            .arg("-D")
            .arg(dir.join("data"))
            .args([
                "--no-sync",
                "-U",
                "postgres",
                "-A",
                "trust",
                "-E",
                "UTF8",
                "--locale=C",
            ]),
    );
    kept
});

impl Server {
    /// Starts a server with these lines of pg_hba.conf and postgresql.conf.
    pub(crate) fn start(hba: &str, conf: &str) -> Self {
        Self::start_with(hba, conf, |_| {})
    }

    /// The same, with a chance to put files into the data directory before the start.
    pub(crate) fn start_with(hba: &str, conf: &str, prepare: impl Fn(&Path)) -> Self {
        Self::launch(
            |dir| {
                succeed(
                    Command::new("cp")
                        .arg("-a")
                        .arg(TEMPLATE.path().join("data"))
                        .arg(dir),
                )
            },
            hba,
            conf,
            prepare,
        )
    }

    /// A standby of this server.
    pub(crate) fn standby(&self, hba: &str, conf: &str) -> Self {
        Self::launch(
            |dir| {
                succeed(
                    as_server(programs().join("pg_basebackup"))
                        .current_dir(dir)
                        .args(["--no-sync", "-c", "fast", "-R", "-U", "postgres", "-h"])
                        .arg(&self.dir)
                        .args(["-p", &self.port.to_string(), "-D"])
                        .arg(dir.join("data")),
                );
            },
            hba,
            conf,
            |_| {},
        )
    }

    fn launch(fill: impl Fn(&Path), hba: &str, conf: &str, prepare: impl Fn(&Path)) -> Self {
        for _ in 0..5 {
            // Somebody else may take the port in between; then the next one is tried.
            let dir = tempfile::Builder::new()
                .prefix("lc")
                .tempdir_in("/tmp")
                .unwrap()
                .keep();
            fs::set_permissions(&dir, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
            give_to_server(&dir);
            fill(&dir);
            let data = dir.join("data");
            fs::write(data.join("pg_hba.conf"), hba).unwrap();
            let mut text = fs::read_to_string(data.join("postgresql.conf")).unwrap();
            text.push_str("\nfsync = off\nshared_buffers = 1MB\nmax_connections = 30\n");
            text.push_str(conf);
            fs::write(data.join("postgresql.conf"), text).unwrap();
            prepare(&data);
            give_to_server(&data);
            let port = free_port();
            let mut guard = Command::new("sh")
                .args(["-c", GUARD, "guard"])
                .args([&dir, &programs()])
                .args([
                    "-p",
                    &port.to_string(),
                    "-c",
                    "listen_addresses=127.0.0.1,::1",
                ])
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .spawn()
                .unwrap();
            let mut line = String::new();
            BufReader::new(guard.stdout.take().unwrap())
                .read_line(&mut line)
                .unwrap();
            let pipe = guard.stdin.take();
            let server = Self {
                dir,
                port,
                guard,
                pipe,
            };
            if server.is_ready() {
                return server;
            }
        }
        panic!("no server would start");
    }

    /// Waits until the server says that it takes connections, or has ended.
    fn is_ready(&self) -> bool {
        let began = Instant::now();
        while began.elapsed() < PATIENCE {
            let log = fs::read_to_string(self.dir.join("log")).unwrap_or_default();
            // The second line is that of a standby which takes no connections at all.
            if log.contains("ready to accept") || log.contains("started streaming WAL") {
                return true;
            }
            if log.contains("database system is shut down") || log.contains("FATAL:  could not") {
                return false;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        panic!(
            "a server neither started nor ended: {}",
            fs::read_to_string(self.dir.join("log")).unwrap_or_default()
        );
    }

    /// Runs SQL as the superuser.
    pub(crate) fn sql(&self, sql: &str) -> String {
        let output = Command::new(crate::support::programs::psql())
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .args([
                "-X",
                "-A",
                "-t",
                "-q",
                "-v",
                "ON_ERROR_STOP=1",
                "-U",
                "postgres",
                "-d",
                "postgres",
                "-h",
            ])
            .arg(&self.dir)
            .args(["-p", &self.port.to_string(), "-c", sql])
            .output()
            .unwrap();
        assert!(
            output.status.success(),
            "{sql}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.pipe.take());
        let _ = self.guard.wait();
    }
}

/// A port that nobody listens on yet.
fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port()
}
