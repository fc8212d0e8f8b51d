//! A started program: what it says, how it ends, and that nothing of it is left.

use std::fmt;
use std::io::Write as _;
use std::os::unix::process::ExitStatusExt as _;
use std::process::{ChildStdin, Command, ExitStatus};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;

use super::family::Family;
use super::stream::Stream;
use super::wait::{LIMIT, until_within};
use super::{lock, proc};

/// A program that was started and may still run. Dropped, it is killed together with every process that descends
/// from it.
#[derive(Debug)]
pub struct Running {
    line: String,
    started: Instant,
    // Before the streams: it is killed while they are still open, and does not die of a closed pipe.
    family: Family,
    stdin: Mutex<Option<ChildStdin>>,
    stdout: Stream,
    stderr: Stream,
}

impl Running {
    /// Starts a command whose output streams are pipes.
    #[track_caller]
    pub(super) fn start(command: &mut Command, line: String, mark: Option<String>) -> Self {
        let started = Instant::now();
        let mut child = command
            .spawn()
            .unwrap_or_else(|error| panic!("{line}: {error}"));
        Self {
            line,
            started,
            stdin: Mutex::new(child.stdin.take()),
            stdout: Stream::collect(child.stdout.take().expect("a pipe").into()),
            stderr: Stream::collect(child.stderr.take().expect("a pipe").into()),
            family: Family::of(child, mark),
        }
    }

    /// Its process id; of the wrapper, when it is wrapped by a program that forks.
    pub fn pid(&self) -> i32 {
        self.family.pid()
    }

    /// The moment just before it was started.
    pub fn started(&self) -> Instant {
        self.started
    }

    /// What it has written to stdout so far.
    pub fn stdout(&self) -> String {
        self.stdout.text()
    }

    /// What it has written to stderr so far.
    pub fn stderr(&self) -> String {
        self.stderr.text()
    }

    /// Waits until a complete line of either stream contains `part`, and returns the line. Panics after [`LIMIT`], and
    /// at once when the program has ended without saying it.
    #[track_caller]
    pub fn wait_for_line(&self, part: &str) -> String {
        until_within(&format!("{self} says {part:?}"), LIMIT, || {
            let over = self.exit().is_some() && self.stdout.ended() && self.stderr.ended();
            let found = [self.stdout(), self.stderr()].iter().find_map(|text| {
                let lines = text
                    .split_inclusive('\n')
                    .filter(|line| line.ends_with('\n'));
                lines
                    .map(str::trim_end)
                    .find(|line| line.contains(part))
                    .map(str::to_owned)
            });
            assert!(
                found.is_some() || !over,
                "{self} ended without saying {part:?}\n{}",
                self.said()
            );
            found.ok_or_else(|| self.said())
        })
    }

    /// Waits until it has been silent on neither stream: the first byte of anything.
    #[track_caller]
    pub fn wait_for_output(&self) {
        until_within(&format!("{self} says something"), LIMIT, || {
            !self.stdout().is_empty() || !self.stderr().is_empty()
        });
    }

    /// How it ended, if it has.
    pub fn exit(&self) -> Option<ExitStatus> {
        self.family.exit()
    }

    /// Waits for its end, even if other processes still hold its pipes. What it wrote itself can be read completely
    /// afterwards.
    #[track_caller]
    pub fn wait_exit(&self, limit: Duration) -> ExitStatus {
        until_within(&format!("{self} ends"), limit, || {
            self.exit().ok_or_else(|| self.said())
        })
    }

    /// Waits for its end and the end of its streams, for at most [`LIMIT`].
    #[track_caller]
    pub fn wait(self) -> Output {
        self.wait_within(LIMIT)
    }

    /// As [`wait`](Self::wait), with a limit of its own.
    #[track_caller]
    pub fn wait_within(self, limit: Duration) -> Output {
        let status = self.wait_exit(limit);
        let took = self.started.elapsed();
        until_within(&format!("the streams of {self} are closed"), limit, || {
            if self.stdout.ended() && self.stderr.ended() {
                Ok(())
            } else {
                Err(self.said())
            }
        });
        Output {
            line: self.line.clone(),
            code: status.code(),
            signal: status.signal(),
            stdout: self.stdout(),
            stderr: self.stderr(),
            stdout_bytes: self.stdout.bytes(),
            took,
        }
    }

    /// Sends a signal to the program alone. Nothing happens when it has ended.
    pub fn signal(&self, signal: Signal) {
        self.family.signal(signal);
    }

    /// Writes to its standard input; see [`super::Lease::open_input`].
    pub fn write(&self, text: &str) {
        lock(&self.stdin)
            .as_mut()
            .expect("an open input")
            .write_all(text.as_bytes())
            .expect("a reader");
    }

    /// Closes its standard input.
    pub fn close_input(&self) {
        lock(&self.stdin).take();
    }

    pub(super) fn take_input(&self) -> ChildStdin {
        lock(&self.stdin).take().expect("a pipe")
    }

    /// Every living process that descends from it, itself included.
    pub fn processes(&self) -> Vec<proc::Process> {
        self.family.processes()
    }

    /// Those of [`processes`](Self::processes) that have this name.
    pub fn named(&self, name: &str) -> Vec<proc::Process> {
        self.family.named(name)
    }

    /// Waits until none of [`processes`](Self::processes) is left.
    #[track_caller]
    pub fn wait_gone(&self, limit: Duration) {
        until_within(&format!("nothing of {self} is left"), limit, || {
            let left = self.processes();
            if left.is_empty() {
                Ok(())
            } else {
                Err(format!("{left:?}"))
            }
        });
    }

    /// Stops every process that descends from it, itself included, as when its whole machine stands still.
    pub fn freeze(&self) {
        until_within(&format!("all of {self} is stopped"), LIMIT, || {
            let processes = self.processes();
            processes
                .iter()
                .for_each(|process| process.signal(Signal::SIGSTOP));
            processes.iter().all(proc::Process::stands_still)
        });
    }

    /// Lets a frozen program go on.
    pub fn thaw(&self) {
        self.processes()
            .iter()
            .for_each(|process| process.signal(Signal::SIGCONT));
    }

    fn said(&self) -> String {
        format!(
            "\n--- stdout\n{}--- stderr\n{}---",
            self.stdout(),
            self.stderr()
        )
    }
}

impl fmt::Display for Running {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` (pid {})", self.line, self.pid())
    }
}

/// How a program ended and what it said.
#[derive(Clone, Debug)]
pub struct Output {
    line: String,
    /// Its exit code; `None` when a signal ended it.
    pub code: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// What it wrote to stdout.
    pub stdout: String,
    /// What it wrote to stderr.
    pub stderr: String,
    /// stdout, where it need not be UTF-8.
    pub stdout_bytes: Vec<u8>,
    /// From just before its start to the moment when its end was noticed.
    pub took: Duration,
}

impl Output {
    /// Demands this exit code; shows everything otherwise.
    #[track_caller]
    pub fn expect_code(self, code: i32) -> Self {
        assert!(self.code == Some(code), "expected exit code {code}: {self}");
        self
    }

    /// Demands this death; shows everything otherwise.
    #[track_caller]
    pub fn expect_signal(self, signal: Signal) -> Self {
        assert!(
            self.signal == Some(signal as i32),
            "expected death by {signal}: {self}"
        );
        self
    }
}

impl fmt::Display for Output {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            line,
            code,
            signal,
            stdout,
            stderr,
            took,
            ..
        } = self;
        writeln!(
            f,
            "`{line}` ended with code {code:?}, signal {signal:?}, after {took:?}"
        )?;
        write!(f, "--- stdout\n{stdout}--- stderr\n{stderr}---")
    }
}
