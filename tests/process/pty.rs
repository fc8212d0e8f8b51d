//! A person at a terminal: a shell on a pseudo-terminal, what is typed, and what is shown.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use nix::pty::{Winsize, openpty};

use super::support::{LIMIT, Lease, lock, proc, shared};

/// Ctrl-C.
pub(super) const CTRL_C: &str = "\x03";
/// Ctrl-Z.
pub(super) const CTRL_Z: &str = "\x1a";

/// A terminal with a program on it, which is the leader of its session.
pub(super) struct Terminal {
    master: File,
    shown: Arc<Mutex<String>>,
    /// Up to where the test has read.
    seen: usize,
    child: Child,
    mark: String,
}

impl Terminal {
    /// A terminal with an interactive shell. `$LEASE` is the built binary, and the database is there.
    pub(super) fn shell() -> Self {
        let mut terminal = Self::with(&["bash", "--norc", "--noprofile", "--noediting", "-i"]);
        // What is typed is not shown, so that what is shown is what was answered.
        terminal.type_in("stty -echo; PS1=; PS2=; echo shell''-ready\n");
        terminal.wait_for("shell-ready");
        terminal
    }

    /// A terminal with this program.
    pub(super) fn with(words: &[&str]) -> Self {
        let size = Winsize {
            ws_row: 24,
            ws_col: 200,
            ws_xpixel: 0,
            ws_ypixel: 0,
        };
        let pair = openpty(&size, None).expect("a pseudo-terminal");
        let (slave, master) = (File::from(pair.slave), File::from(pair.master));
        let end = || Stdio::from(slave.try_clone().expect("a descriptor"));
        let mark = format!("{}-{}", std::process::id(), super::support::serial());
        let call = Lease::program("setsid")
            .args(["--ctty", "--wait"])
            .args(words)
            .env("LEASE", env!("CARGO_BIN_EXE_lease"))
            .env("TERM", "dumb")
            .env("ON_TERMINAL", &mark)
            .on(shared());
        let mut command: Command = call.command();
        let child = command
            .stdin(end())
            .stdout(end())
            .stderr(end())
            .spawn()
            .expect("setsid(1)");
        drop(slave);
        let shown = Arc::new(Mutex::new(String::new()));
        let (sink, mut source) = (shown.clone(), master.try_clone().expect("a descriptor"));
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            // EIO once nobody has the other end.
            while let Ok(got @ 1..) = source.read(&mut bytes) {
                lock(&sink).push_str(&String::from_utf8_lossy(&bytes[..got]));
            }
        });
        Self {
            master,
            shown,
            seen: 0,
            child,
            mark,
        }
    }

    /// Types this.
    pub(super) fn type_in(&mut self, text: &str) {
        self.master.write_all(text.as_bytes()).expect("a terminal");
    }

    /// Waits until this is shown after what was waited for before.
    #[track_caller]
    pub(super) fn wait_for(&mut self, part: &str) {
        let start = Instant::now();
        loop {
            let shown = lock(&self.shown).clone();
            if let Some(at) = shown[self.seen..].find(part) {
                self.seen += at + part.len();
                return;
            }
            assert!(start.elapsed() < LIMIT, "{part:?} is not shown: {shown}");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Types this again and again until that is shown. After a Ctrl-C: a shell throws away what it has read of a line.
    #[track_caller]
    pub(super) fn type_until_shown(&mut self, text: &str, part: &str) {
        let start = Instant::now();
        while !lock(&self.shown)[self.seen..].contains(part) && start.elapsed() < LIMIT {
            self.type_in(text);
            std::thread::sleep(Duration::from_millis(200));
        }
        self.wait_for(part);
    }

    /// All that was shown.
    pub(super) fn shown(&self) -> String {
        lock(&self.shown).clone()
    }

    /// The living processes on this terminal that have this name.
    pub(super) fn named(&self, name: &str) -> Vec<proc::Process> {
        let mut found = proc::with_env("ON_TERMINAL", &self.mark);
        found.retain(|process| process.name == name);
        found
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let start = Instant::now();
        loop {
            let left = proc::with_env("ON_TERMINAL", &self.mark);
            for process in &left {
                process.signal(nix::sys::signal::Signal::SIGKILL);
            }
            let _ = self.child.kill();
            let over = self.child.try_wait().is_ok_and(|end| end.is_some());
            if (over && left.is_empty()) || start.elapsed() > LIMIT {
                return;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}
