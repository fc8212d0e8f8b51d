//! What may happen to the processes of a server: it starts, stops, crashes, freezes.

use std::fs;
use std::process::{Child, Stdio};
use std::sync::MutexGuard;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;

use super::proc::{self, Process};
use super::server::Server;
use super::{lock, programs, until};

impl Server {
    /// Starts the server and waits until it takes connections. On a server that is down; its port stays the same.
    pub fn start(&self) {
        self.start_without_waiting();
        until("the server takes connections", || {
            let pid_file =
                fs::read_to_string(self.data().join("postmaster.pid")).unwrap_or_default();
            let ended = self
                .postmaster()
                .as_mut()
                .is_none_or(|child| child.try_wait().expect("wait").is_some());
            assert!(!ended, "the server did not start:\n{}", self.log());
            // Its last line tells the state; a standby calls itself "standby" before it is ready for reads.
            let ready = |line: &str| line.starts_with("ready") || line.starts_with("standby");
            pid_file.lines().nth(7).is_some_and(ready) && self.try_client("postgres").is_ok()
        });
    }

    /// Starts the server and returns at once, for who wants to see it while it starts.
    pub fn start_without_waiting(&self) {
        let mut postmaster = self.postmaster();
        assert!(postmaster.is_none(), "the server runs already");
        // Left by a server that was killed; its pid may be another process's by now, and the server would not start.
        let _ = fs::remove_file(self.data().join("postmaster.pid"));
        let log = fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(self.dir.join("log"))
            .expect("a log");
        let child = programs::command(programs::bindir().join("postgres"))
            .arg("-D")
            .arg(self.data())
            .arg("-k")
            .arg(&self.dir)
            .args(["-p", &self.port().to_string()])
            .envs(self.env.iter().map(|(name, value)| (name, value)))
            .stdout(log.try_clone().expect("a log"))
            .stderr(log)
            .stdin(Stdio::null())
            .spawn()
            .expect("postgres starts");
        *postmaster = Some(child);
    }

    /// Shuts the server down in order: open connections are ended with 57P01.
    pub fn stop(&self) {
        self.thaw();
        self.end(Signal::SIGINT);
    }

    /// Stops and starts the server.
    pub fn restart(&self) {
        self.stop();
        self.start();
    }

    /// Kills every process of the server at one instant, as when the power goes: what was only in its memory is lost.
    pub fn crash(&self) {
        self.freeze();
        let processes = self.processes();
        for process in &processes {
            process.signal(Signal::SIGKILL);
        }
        self.end(Signal::SIGKILL);
        until("the server's processes are gone", || {
            !processes.iter().any(Process::is_alive)
        });
        self.remove_segment();
    }

    pub(super) fn end(&self, signal: Signal) {
        let Some(mut child) = self.postmaster().take() else {
            return;
        };
        let _ = nix::sys::signal::kill(nix::unistd::Pid::from_raw(child.id() as i32), signal);
        let start = Instant::now();
        while child.try_wait().expect("wait").is_none() {
            if start.elapsed() > Duration::from_secs(20) {
                let _ = child.kill();
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// The small piece of System V memory that a server which was killed leaves behind.
    fn remove_segment(&self) {
        let pid_file = fs::read_to_string(self.data().join("postmaster.pid")).unwrap_or_default();
        if let Some(id) = pid_file
            .lines()
            .nth(6)
            .and_then(|line| line.split_whitespace().nth(1))
        {
            let _ = std::process::Command::new("ipcrm")
                .args(["-m", id])
                .stderr(Stdio::null())
                .status();
        }
    }

    fn postmaster(&self) -> MutexGuard<'_, Option<Child>> {
        lock(&self.postmaster)
    }

    /// The pid of the postmaster, while the server runs.
    pub fn pid(&self) -> Option<i32> {
        self.postmaster().as_ref().map(|child| child.id() as i32)
    }

    /// Every process of the server, the postmaster first.
    pub fn processes(&self) -> Vec<Process> {
        let Some(pid) = self.pid() else {
            return Vec::new();
        };
        Process::find(pid)
            .into_iter()
            .chain(proc::children(pid))
            .collect()
    }

    /// Stops every process of the server: it accepts connections (the kernel does) and answers nothing, with every
    /// socket open.
    pub fn freeze(&self) {
        // The postmaster first; it could else start another one.
        until("every process of the server is stopped", || {
            let processes = self.processes();
            processes
                .iter()
                .for_each(|process| process.signal(Signal::SIGSTOP));
            processes
                .iter()
                .all(|process| process.is_stopped() || !process.is_alive())
        });
    }

    /// Lets a frozen server go on.
    pub fn thaw(&self) {
        for process in self.processes().iter().rev() {
            process.signal(Signal::SIGCONT);
        }
    }
}
