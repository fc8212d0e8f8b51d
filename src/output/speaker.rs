//! Messages of a run, written by a thread of their own.
//!
//! Writing to stderr can block: a pipe that nobody empties, a terminal held by Ctrl-S. Whoever keeps a deadline must not
//! wait for that.

use std::fmt::Display;
use std::sync::mpsc::{self, Sender};
use std::thread;
use std::time::Duration;

use super::{Voice, say};

/// Queues messages for a thread that writes them in order.
#[derive(Debug)]
pub struct Speaker {
    voice: Voice,
    lines: Sender<Line>,
}

#[derive(Debug)]
enum Line {
    Say(String),
    /// All before it was written.
    Reached(Sender<()>),
}

impl Speaker {
    /// Starts the thread. Where there is none to be had, nothing is said: a job is not stopped for that.
    #[must_use]
    pub fn start(voice: Voice) -> Self {
        let (lines, queue) = mpsc::channel::<Line>();
        let _ = thread::Builder::new()
            .name("lease-stderr".to_owned())
            .spawn(move || {
                for line in queue {
                    match line {
                        Line::Say(text) => say(&text),
                        Line::Reached(reached) => drop(reached.send(())),
                    }
                }
            });
        Self { voice, lines }
    }

    /// Something that went wrong. Always said.
    pub fn error(&self, message: impl Display) {
        // The thread is gone only where it could not be started.
        let _ = self.lines.send(Line::Say(message.to_string()));
    }

    /// Something that is good to know. Not said under `--quiet`.
    pub fn info(&self, message: impl Display) {
        if !self.voice.quiet {
            self.error(message);
        }
    }

    /// A step. Said under `--verbose` only.
    pub fn step(&self, message: impl Display) {
        if self.voice.verbose {
            self.error(message);
        }
    }

    /// What tells steps from another thread.
    pub fn narrator(&self) -> impl Fn(&str) + Send + Sync + use<> {
        let verbose = self.voice.verbose;
        let lines = std::sync::Mutex::new(self.lines.clone());
        move |step| {
            if verbose && let Ok(lines) = lines.lock() {
                let _ = lines.send(Line::Say(step.to_owned()));
            }
        }
    }

    /// Waits until all was written, for at most `limit`.
    pub fn finish(self, limit: Duration) {
        let (reached, all_said) = mpsc::channel();
        if self.lines.send(Line::Reached(reached)).is_ok() {
            let _ = all_said.recv_timeout(limit);
        }
    }
}
