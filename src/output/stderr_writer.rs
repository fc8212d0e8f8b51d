//! The messages of a run, written by a thread of their own.
//!
//! Writing to stderr can block, for example if nobody reads the pipe or Ctrl-S has stopped the terminal. The thread that
//! keeps the deadlines must not wait for that.

use std::io;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::Duration;

use super::message;
use super::wait_line::{self, WaitLine};
use super::{Level, Message, Verbosity, write_line};
use crate::clock::BootTime;

/// How often the line of a wait is drawn anew.
const REDRAW: Duration = Duration::from_secs(1);
/// How long to wait until the line of a wait is cleared. It takes longer only on a stopped terminal.
const CLEARED: Duration = Duration::from_millis(100);

/// Queues messages for a thread that writes them in order.
#[derive(Debug)]
pub struct StderrWriter {
    verbosity: Verbosity,
    lines: Sender<Line>,
    /// Whether the line of a wait may be on the terminal.
    shows_wait: bool,
}

#[derive(Debug)]
enum Line {
    Message(String),
    /// What the line of the wait is to say from now on.
    Wait(WaitLine),
    /// A request to clear the line of the wait, and to answer then; for good, or until it is drawn anew.
    ClearWait {
        for_good: bool,
        cleared: Sender<()>,
    },
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
            .spawn(move || write_all(&queue))?;
        Ok(Self {
            verbosity,
            lines,
            shows_wait: false,
        })
    }

    /// Writes a message, if its level is wanted. Its time is now, however long the line has to wait.
    pub fn write(&self, message: &Message) {
        if self.verbosity.wants(message.level) {
            // This cannot fail: the thread reads until this value is dropped.
            let _ = self.lines.send(Line::Message(message.line()));
        }
    }

    /// Whether the line of a wait would be seen. Otherwise a message must say who is waited for.
    #[must_use]
    pub fn can_show_a_wait(&self) -> bool {
        !self.verbosity.quiet && !message::is_json() && wait_line::is_possible()
    }

    /// Shows the line of a wait, or changes it. It is removed by [`StderrWriter::end_wait`].
    pub fn show_wait(&mut self, line: WaitLine) {
        if self.can_show_a_wait() {
            self.shows_wait = true;
            let _ = self.lines.send(Line::Wait(line));
        }
    }

    /// Removes the line of a wait. Returns when that is done, so that a job's first output does not mix with it, but after
    /// a tenth of a second whatever the terminal does.
    pub fn end_wait(&mut self) {
        self.clear_wait(true);
        self.shows_wait = false;
    }

    /// Removes the line of a wait, for a moment: this process is about to be stopped.
    pub fn pause_wait(&self) {
        self.clear_wait(false);
    }

    fn clear_wait(&self, for_good: bool) {
        if !self.shows_wait {
            return;
        }
        let (cleared, is_cleared) = mpsc::channel();
        let request = Line::ClearWait { for_good, cleared };
        if self.lines.send(request).is_ok() {
            let _ = is_cleared.recv_timeout(CLEARED);
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

/// The life of the thread.
fn write_all(queue: &Receiver<Line>) {
    let mut wait: Option<WaitLine> = None;
    loop {
        let next = if wait.is_some() {
            queue.recv_timeout(REDRAW)
        } else {
            queue.recv().map_err(|_| RecvTimeoutError::Disconnected)
        };
        match next {
            Ok(Line::Message(text)) => write_line(&text),
            Ok(Line::Wait(line)) => wait = Some(line),
            Ok(Line::ClearWait { for_good, cleared }) => {
                wait_line::clear();
                if for_good {
                    wait = None;
                }
                let _ = cleared.send(());
                continue;
            }
            Ok(Line::Flush(flushed)) => drop(flushed.send(())),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
        if let Some(line) = &wait {
            wait_line::draw(line, BootTime::now());
        }
    }
}
