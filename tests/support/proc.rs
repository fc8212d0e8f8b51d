//! Witnesses: what the kernel says about processes, read from /proc.

use std::fs;
use std::os::unix::ffi::OsStrExt as _;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// One process at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Process {
    /// Its process id.
    pub pid: i32,
    /// Its name, at most 15 bytes.
    pub name: String,
    /// `R` running, `S` sleeping, `D` in the kernel, `T` stopped, `t` traced, `Z` zombie.
    pub state: char,
    /// Its parent.
    pub parent: i32,
    /// Its process group.
    pub group: i32,
    /// Its session.
    pub session: i32,
    /// The foreground process group of its terminal; -1 without one.
    pub foreground: i32,
    /// When it started, in clock ticks since boot. With the pid it names one process for good.
    pub started: u64,
}

impl Process {
    /// Reads `/proc/<pid>/stat`; `None` when there is no such process.
    pub fn find(pid: i32) -> Option<Self> {
        let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
        let stat = String::from_utf8_lossy(&stat);
        // The name stands in parentheses and may itself contain any of ") (".
        let (head, tail) = (stat.find('(')?, stat.rfind(')')?);
        let fields: Vec<&str> = stat[tail + 1..].split_whitespace().collect();
        let number = |at: usize| fields.get(at)?.parse::<i64>().ok();
        Some(Self {
            pid,
            name: stat[head + 1..tail].to_owned(),
            state: fields.first()?.chars().next()?,
            parent: number(1)? as i32,
            group: number(2)? as i32,
            session: number(3)? as i32,
            foreground: number(5)? as i32,
            started: number(19)? as u64,
        })
    }

    /// Whether it has ended and only waits for its parent to notice.
    pub fn is_zombie(&self) -> bool {
        matches!(self.state, 'Z' | 'X')
    }

    /// Whether it is stopped by a signal.
    pub fn is_stopped(&self) -> bool {
        self.state == 'T'
    }

    /// Whether it stands still, for one that STOP was sent to. A shell that waits in vfork(2) until its stopped child executes
    /// a program can't stop before that, and does nothing either.
    pub fn stands_still(&self) -> bool {
        matches!(self.state, 'T' | 'D')
    }

    /// Whether this very process, and not a later one with its pid, still runs.
    pub fn is_alive(&self) -> bool {
        Self::find(self.pid).is_some_and(|now| now.started == self.started && !now.is_zombie())
    }

    /// Its arguments, each followed by a zero byte. Empty for a zombie.
    pub fn cmdline(&self) -> Vec<u8> {
        fs::read(format!("/proc/{}/cmdline", self.pid)).unwrap_or_default()
    }

    /// Its arguments joined by blanks, for messages and searches.
    pub fn command(&self) -> String {
        let words = self.cmdline();
        let words = words.strip_suffix(&[0]).unwrap_or(&words);
        String::from_utf8_lossy(words).replace('\0', " ")
    }

    /// The value of a variable in the environment that it was started with.
    pub fn env(&self, name: &str) -> Option<Vec<u8>> {
        let environ = fs::read(format!("/proc/{}/environ", self.pid)).ok()?;
        let value = environ
            .split(|byte| *byte == 0)
            .find_map(|entry| entry.strip_prefix(name.as_bytes())?.strip_prefix(b"="))?;
        Some(value.to_vec())
    }

    /// Sends a signal to this very process; nothing happens if it has ended.
    pub fn signal(&self, signal: Signal) {
        if self.is_alive() {
            let _ = kill(Pid::from_raw(self.pid), signal);
        }
    }
}

/// Every process, zombies too.
pub fn all() -> Vec<Process> {
    let Ok(entries) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    entries
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter_map(Process::find)
        .collect()
}

fn living(mut wanted: impl FnMut(&Process) -> bool) -> Vec<Process> {
    let mut found = all();
    found.retain(|process| !process.is_zombie() && wanted(process));
    found
}

/// The living processes that were started with `name=value` in their environment, forked children of theirs too.
pub fn with_env(name: &str, value: &str) -> Vec<Process> {
    living(|process| {
        process
            .env(name)
            .is_some_and(|found| found == value.as_bytes())
    })
}

/// Whether no living process was started with `name=value` in its environment.
pub fn no_process_with_env(name: &str, value: &str) -> bool {
    with_env(name, value).is_empty()
}

/// The living processes whose arguments, joined by blanks, contain `part`.
pub fn with_command(part: &str) -> Vec<Process> {
    living(|process| process.command().contains(part))
}

/// The living processes that work in `dir` or below it.
pub fn working_in(dir: &std::path::Path) -> Vec<Process> {
    living(|process| {
        fs::read_link(format!("/proc/{}/cwd", process.pid)).is_ok_and(|cwd| {
            // A directory that was removed shows as "<path> (deleted)".
            cwd.starts_with(dir)
                || cwd
                    .as_os_str()
                    .as_bytes()
                    .starts_with(dir.as_os_str().as_bytes())
        })
    })
}

/// The living children of a process.
pub fn children(pid: i32) -> Vec<Process> {
    living(|process| process.parent == pid)
}

/// The children of a process that have ended and that it has not waited for.
pub fn zombies(parent: i32) -> Vec<Process> {
    let mut found = all();
    found.retain(|process| process.parent == parent && process.is_zombie());
    found
}

/// The living members of a process group.
pub fn group(group: i32) -> Vec<Process> {
    living(|process| process.group == group)
}
