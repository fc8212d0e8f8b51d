//! The programs of PostgreSQL, and the user that may run them.

use std::fs;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use nix::unistd::{User, geteuid};

/// The `lease` that is tested: the one that cargo has built for the tests, or the one that LEASE_TEST_PROGRAM names, such as
/// a release build.
pub fn lease() -> &'static str {
    static LEASE: OnceLock<String> = OnceLock::new();
    LEASE.get_or_init(|| {
        let given = std::env::var("LEASE_TEST_PROGRAM");
        let path = given.unwrap_or_else(|_| env!("CARGO_BIN_EXE_lease").to_owned());
        assert!(
            Path::new(&path).is_absolute(),
            "LEASE_TEST_PROGRAM is not an absolute path"
        );
        path
    })
}

/// The directory with `initdb` and `postgres`: in PATH, where pg_config says, or the newest of Debian's.
/// To test with another version, put its directory first in PATH.
pub fn bindir() -> &'static Path {
    static BINDIR: OnceLock<PathBuf> = OnceLock::new();
    BINDIR.get_or_init(|| {
        let path = std::env::var_os("PATH").unwrap_or_default();
        std::env::split_paths(&path)
            .chain(pg_config())
            .chain(debian())
            .find_map(|dir| {
                // Where a link to initdb leads, its companions lie.
                let initdb = dir.join("initdb").canonicalize().ok()?;
                let dir = initdb.parent()?;
                dir.join("pg_basebackup").is_file().then(|| dir.to_owned())
            })
            .expect("no PostgreSQL server programs found; run the tests with tests/sandbox, or install Debian's postgresql")
    })
}

fn pg_config() -> Option<PathBuf> {
    let output = Command::new("pg_config")
        .arg("--bindir")
        .stderr(Stdio::null())
        .output()
        .ok()?;
    Some(PathBuf::from(
        String::from_utf8(output.stdout).ok()?.trim_end(),
    ))
}

fn debian() -> Vec<PathBuf> {
    let mut found: Vec<(u32, PathBuf)> = fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten()
        .filter_map(|entry| entry.ok())
        .filter_map(|entry| {
            Some((
                entry.file_name().to_str()?.parse().ok()?,
                entry.path().join("bin"),
            ))
        })
        .collect();
    found.sort();
    found.into_iter().rev().map(|(_, dir)| dir).collect()
}

/// The major version of the server, 15 for 15.18.
pub fn version() -> u32 {
    static VERSION: OnceLock<u32> = OnceLock::new();
    *VERSION.get_or_init(|| {
        let output = Command::new(bindir().join("postgres"))
            .arg("--version")
            .output()
            .expect("postgres --version");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        text.split(|c: char| !c.is_ascii_digit())
            .find_map(|word| word.parse().ok())
            .unwrap_or_else(|| panic!("no version in {text:?}"))
    })
}

/// psql itself. Debian's command of that name is a wrapper, which sets PGHOST, PGPORT and PGSYSCONFDIR as it likes.
pub fn psql() -> PathBuf {
    bindir().join("psql")
}

/// The path of a program that lies in PATH or where Debian keeps programs for administrators.
pub fn find(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .chain(["/usr/sbin".into(), "/sbin".into()])
        .map(|dir| dir.join(name))
        .find(|file| file.is_file())
}

/// The user for servers when the tests run as root, which PostgreSQL and PgBouncer refuse; `None` for anyone else.
pub fn unprivileged() -> Option<&'static User> {
    static USER: OnceLock<Option<User>> = OnceLock::new();
    USER.get_or_init(|| {
        let named = |name| User::from_name(name).ok().flatten();
        geteuid().is_root().then(|| {
            named("postgres")
                .or_else(|| named("nobody"))
                .expect("a user postgres or nobody")
        })
    })
    .as_ref()
}

/// A command that runs as [`unprivileged`], without the variables of libpq, in English, and out of reach of a terminal's signals.
pub fn command(program: impl AsRef<Path>) -> Command {
    let mut command = Command::new(program.as_ref());
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("PG") {
            command.env_remove(name);
        }
    }
    command.env_remove(super::keeper::MARK);
    command
        .env("LC_ALL", "C")
        .current_dir("/")
        .stdin(Stdio::null())
        .process_group(0);
    if let Some(user) = unprivileged() {
        command.uid(user.uid.as_raw()).gid(user.gid.as_raw());
    }
    command
}

/// Runs a command to its end. Panics with what it said if it fails.
#[track_caller]
pub fn run(command: &mut Command) -> Vec<u8> {
    let output = command
        .output()
        .unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(
        output.status.success(),
        "{command:?}: {}\n{}{}",
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    output.stdout
}

/// Gives a file or a directory, and all below it, to [`unprivileged`].
pub fn give(path: &Path) {
    let Some(user) = unprivileged() else { return };
    std::os::unix::fs::lchown(path, Some(user.uid.as_raw()), Some(user.gid.as_raw()))
        .unwrap_or_else(|error| panic!("chown {}: {error}", path.display()));
    if path.is_dir() && !path.is_symlink() {
        for entry in fs::read_dir(path).expect("a directory") {
            give(&entry.expect("an entry").path());
        }
    }
}
