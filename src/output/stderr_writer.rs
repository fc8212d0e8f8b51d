//! The messages of a run, written by a thread of their own.
//!
//! Writing to stderr can block, for example if nobody reads the pipe or Ctrl-S has stopped the terminal. The thread that
//! keeps the deadlines must not wait for that.

use std::io;
use std::sync::mpsc::{self, Sender};
use std::thread;
use std::time::Duration;

use super::{Level, Message, Verbosity, write_line};

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
                        Line::Message(line) => write_line(&line),
                        Line::Flush(flushed) => drop(flushed.send(())),
                    }
                }
            })?;
        Ok(Self { verbosity, lines })
    }

    /// Writes a message, if its level is wanted. Its time is now, however long the line has to wait.
    pub fn write(&self, message: &Message) {
        if self.verbosity.wants(message.level) {
            // This cannot fail: the thread reads until this value is dropped.
            let _ = self.lines.send(Line::Message(message.line()));
        }
    }

    /// A function that reports an event of this level from another thread.
    pub fn reporter(
        &self,
        level: Level,
        event: &'static str,
    ) -> impl Fn(&str) + Send + Sync + use<> {
        let is_wanted = self.verbosity.wants(level);
        let lines = std::sync::Mutex::new(self.lines.clone());
        move |text| {
            if is_wanted && let Ok(lines) = lines.lock() {
                let line = Message::new(level, event, text).line();
                let _ = lines.send(Line::Message(line));
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
