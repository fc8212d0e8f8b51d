//! The messages of a run, written by a thread of their own.
//!
//! Writing to stderr can block, for example if nobody reads the pipe or Ctrl-S has stopped the terminal. The thread that
//! keeps the deadlines must not wait for that.

use std::fmt::Display;
use std::io;
use std::sync::mpsc::{self, Sender};
use std::thread;
use std::time::Duration;

use super::{Verbosity, write_message};

/// Queues messages for a thread that writes them in order.
#[derive(Debug)]
pub struct StderrWriter {
    verbosity: Verbosity,
    lines: Sender<Line>,
}

#[derive(Debug)]
enum Line {
    Message(String),
    /// A request to answer once every message before it is written.
    Flush(Sender<()>),
}

impl StderrWriter {
    /// Starts the thread.
    ///
    /// # Errors
    /// When no thread can be started. Without it, the loss of the lease could not be reported.
    pub fn start(verbosity: Verbosity) -> io::Result<Self> {
        let (lines, queue) = mpsc::channel::<Line>();
        thread::Builder::new()
            .name("lease-stderr".to_owned())
            .spawn(move || {
                for line in queue {
                    match line {
                        Line::Message(text) => write_message(&text),
                        Line::Flush(flushed) => drop(flushed.send(())),
                    }
                }
            })?;
        Ok(Self { verbosity, lines })
    }

    /// Writes an error, whatever the verbosity.
    pub fn error(&self, message: impl Display) {
        // This cannot fail: the thread reads until this value is dropped.
        let _ = self.lines.send(Line::Message(message.to_string()));
    }

    /// Writes information, unless `--quiet` is given.
    pub fn info(&self, message: impl Display) {
        if !self.verbosity.quiet {
            self.error(message);
        }
    }

    /// Writes a step, if `--verbose` is given.
    pub fn step(&self, message: impl Display) {
        if self.verbosity.verbose {
            self.error(message);
        }
    }

    /// A function that reports steps from another thread.
    pub fn step_reporter(&self) -> impl Fn(&str) + Send + Sync + use<> {
        self.reporter(self.verbosity.verbose)
    }

    /// A function that reports information from another thread.
    pub fn info_reporter(&self) -> impl Fn(&str) + Send + Sync + use<> {
        self.reporter(!self.verbosity.quiet)
    }

    fn reporter(&self, is_wanted: bool) -> impl Fn(&str) + Send + Sync + use<> {
        let lines = std::sync::Mutex::new(self.lines.clone());
        move |message| {
            if is_wanted && let Ok(lines) = lines.lock() {
                let _ = lines.send(Line::Message(message.to_owned()));
            }
        }
    }

    /// Waits until all messages are written, for at most `limit`.
    pub fn finish(self, limit: Duration) {
        let (flushed, all_written) = mpsc::channel();
        if self.lines.send(Line::Flush(flushed)).is_ok() {
            let _ = all_written.recv_timeout(limit);
        }
    }
}
