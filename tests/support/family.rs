//! A program that a test has started, with every process that descends from it.

use std::process::{Child, ExitStatus};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::wait::LIMIT;
use super::{keeper, lock, proc};

/// The program and its descendants, who are told by a variable of the environment, so that no change of group or
/// session hides one. Dropped, all of them are killed.
#[derive(Debug)]
pub(super) struct Family {
    mark: Option<String>,
    child: Mutex<Child>,
}

impl Family {
    /// The family of a child whose environment has this value for [`keeper::MARK`].
    pub(super) fn of(child: Child, mark: Option<String>) -> Self {
        Self {
            mark,
            child: Mutex::new(child),
        }
    }

    /// The process id of the program itself.
    pub(super) fn pid(&self) -> i32 {
        lock(&self.child).id() as i32
    }

    /// How the program ended, if it has.
    pub(super) fn exit(&self) -> Option<ExitStatus> {
        lock(&self.child).try_wait().expect("wait")
    }

    /// Sends a signal to the program alone. Nothing happens when it has ended.
    pub(super) fn signal(&self, signal: Signal) {
        // Under the lock, it is not reaped between the look and the signal: its pid is still its own.
        let mut child = lock(&self.child);
        if child.try_wait().expect("wait").is_none() {
            kill(Pid::from_raw(child.id() as i32), signal)
                .unwrap_or_else(|error| panic!("{signal} to process {}: {error}", child.id()));
        }
    }

    /// Every living process of it, the program included.
    pub(super) fn processes(&self) -> Vec<proc::Process> {
        self.mark
            .as_ref()
            .map(|mark| proc::with_env(keeper::MARK, mark))
            .unwrap_or_default()
    }

    /// Every living process of it that has this name.
    pub(super) fn named(&self, name: &str) -> Vec<proc::Process> {
        let mut found = self.processes();
        found.retain(|process| process.name == name);
        found
    }
}

impl Drop for Family {
    fn drop(&mut self) {
        let start = Instant::now();
        loop {
            let _ = lock(&self.child).kill();
            let left = self.processes();
            left.iter()
                .for_each(|process| process.signal(Signal::SIGKILL));
            if self.exit().is_some() && left.is_empty() || start.elapsed() > LIMIT {
                return;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}
