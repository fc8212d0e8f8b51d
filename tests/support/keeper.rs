//! The keeper: a small process that outlives the tests and removes what they leave.
//!
//! Rust drops no statics, and nothing at all when a test process is killed. So everything lies below one directory,
//! and a shell waits at the other end of a pipe: when the pipe closes, the test process is gone, in whatever way.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, OnceLock};

/// The variable that marks the processes of the tests. Its value is a path below [`root`].
pub const MARK: &str = "TEST_PROCESS_OF";

/// Servers are told to shut down at once, so that they remove their shared memory; everything else is killed. Those
/// are ours that work below the directory (PostgreSQL rewrites its environment) or carry its name in their environment.
const SCRIPT: &str = r#"
trap '' HUP INT QUIT TERM
cat >/dev/null
root=$1
marked() { grep -lsF -- "$root/" /proc/[0-9]*/environ | cut -d/ -f3; }
inside() { find /proc/[0-9]*/cwd -maxdepth 0 -lname "$root*" 2>/dev/null | cut -d/ -f3; }
for pid in $(marked); do kill -KILL "$pid"; done
for pid in $(inside); do kill -CONT "$pid"; done
segments=
for file in "$root"/*/data/postmaster.pid; do
    [ -e "$file" ] || continue
    kill -QUIT "$(sed -n 1p "$file")"
    segments="$segments $(sed -n 7p "$file" | awk '{ print $2 }')"
done
tries=0
while [ -n "$(inside)" ] && [ $tries -lt 50 ]; do sleep 0.1; tries=$((tries + 1)); done
for pid in $(inside) $(marked); do kill -KILL "$pid"; done
for segment in $segments; do ipcrm -m "$segment"; done
for file in "$root"/*.netns; do
    if [ -e "$file" ]; then ip netns delete "$(cat "$file")"; fi
done
for disk in "$root"/*/of-a-test; do
    if [ -e "$disk" ]; then umount -l "$disk"; fi
done
rm -rf -- "$root"
"#;

static KEEPER: Mutex<Option<Child>> = Mutex::new(None);

/// The directory of this test process. Short, since the path of a socket has room for 107 bytes; below /tmp, since
/// the servers' user must be able to reach it. The first call starts the keeper.
pub fn root() -> &'static Path {
    static ROOT: OnceLock<PathBuf> = OnceLock::new();
    ROOT.get_or_init(|| {
        let root = tempfile::Builder::new()
            .prefix("lease-")
            .permissions(Permissions::from_mode(0o711))
            .tempdir_in("/tmp")
            .expect("a directory below /tmp")
            .keep();
        let keeper = Command::new("sh")
            .args(["-c", SCRIPT, "keeper"])
            .arg(&root)
            .current_dir("/")
            // Another test process, whose child this one may be, must not take the keeper for one of its own.
            .env_remove(MARK)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            // Ctrl-C at a terminal ends the tests; the keeper has work to do then.
            .process_group(0)
            .spawn()
            .expect("sh starts");
        *KEEPER.lock().expect("the keeper") = Some(keeper);
        at_exit(dismiss);
        root
    })
}

/// A new directory below [`root`].
pub fn dir(name: &str) -> PathBuf {
    let dir = root().join(format!("{name}{}", super::serial()));
    fs::create_dir(&dir).expect("a new directory");
    dir
}

/// Lets the keeper work and waits for it, so that nothing is left at the moment when the test process ends in peace.
extern "C" fn dismiss() {
    if let Ok(mut keeper) = KEEPER.lock()
        && let Some(mut keeper) = keeper.take()
    {
        drop(keeper.stdin.take());
        let _ = keeper.wait();
    }
}

#[allow(unsafe_code)]
fn at_exit(run: extern "C" fn()) {
    // SAFETY: the handler takes no arguments, does not unwind, and lives in the program's text.
    unsafe { libc::atexit(run) };
}
