//! Jobs under `lease run`, and witnesses that do not ask `lease`.

use std::fs;
use std::path::PathBuf;

use super::wait::until;
use super::{Lease, Server, keeper, proc, table};

/// `lease run` with these options, a key, and a command after `--`; without a database.
pub fn run<A: AsRef<std::ffi::OsStr>>(options: &[&str], key: &str, command: &[A]) -> Lease {
    Lease::new(["run"])
        .args(options)
        .arg(key)
        .arg("--")
        .args(command)
}

/// As [`run`], with a script for sh(1) as the command.
pub fn run_script(options: &[&str], key: &str, script: &str) -> Lease {
    run(options, key, &["sh", "-c", script])
}

/// A script around `lease`, which it finds as `$LEASE`; its first argument will be `$0`. Without a database.
pub fn around(shell: &str, script: &str) -> Lease {
    Lease::program(shell).args(["-c", script]).knowing_lease()
}

/// Every living process of the jobs that run under `key`, whatever group or session it is in: the kernel says so.
pub fn of_job(key: &str) -> Vec<proc::Process> {
    proc::with_env("LEASE_KEY", key)
}

/// Waits until no process of the jobs under `key` is left.
#[track_caller]
pub fn until_gone(key: &str) {
    until(&format!("no process of {key} is left"), || {
        let left = of_job(key);
        if left.is_empty() {
            Ok(())
        } else {
            Err(format!("{left:?}"))
        }
    });
}

/// Gives the row of `key` to another holder, with a larger fence, as a claim after the expiry would.
pub fn steal(server: &Server, key: &str) {
    table::change(
        server,
        key,
        "holder = 'thief-1', fence = fence + 1, acquired_at = clock_timestamp(), \
         expires_at = clock_timestamp() + interval '1 minute'",
    );
}

/// A file to which jobs append lines: in one piece each (O_APPEND), so that the lines stand in the order of the events.
#[derive(Debug)]
pub struct Journal(PathBuf);

impl Default for Journal {
    fn default() -> Self {
        Self::new()
    }
}

impl Journal {
    /// An empty one.
    pub fn new() -> Self {
        let path = keeper::dir("journal").join("lines");
        fs::write(&path, "").expect("a journal");
        Self(path)
    }

    /// Its path, which needs no quoting.
    pub fn path(&self) -> &str {
        self.0.to_str().expect("a plain path")
    }

    /// What was written so far, the last line only once it is complete.
    pub fn lines(&self) -> Vec<String> {
        let text = fs::read_to_string(&self.0).expect("a journal");
        text.split_inclusive('\n')
            .filter_map(|line| line.strip_suffix('\n'))
            .map(str::to_owned)
            .collect()
    }

    /// Waits until it contains this line.
    #[track_caller]
    pub fn wait_for(&self, line: &str) {
        self.wait_for_count(line, 1);
    }

    /// Waits until it contains this line so many times.
    #[track_caller]
    pub fn wait_for_count(&self, line: &str, count: usize) {
        until(&format!("the job notes {line:?} {count} times"), || {
            let lines = self.lines();
            if self.count(line) >= count {
                Ok(())
            } else {
                Err(format!("{lines:?}"))
            }
        });
    }

    /// How often it contains this line.
    pub fn count(&self, line: &str) -> usize {
        self.lines().iter().filter(|found| *found == line).count()
    }
}
