//! Reading what a program writes.

use std::fs::File;
use std::io::{ErrorKind, PipeWriter, Read as _, pipe};
use std::os::fd::{AsFd as _, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::JoinHandle;

use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use super::lock;

/// What has been read from one output stream.
///
/// A thread waits for bytes, so that the program never blocks on a full pipe. Whoever wants to know takes what is
/// there by itself, under the same lock: after the program's end nothing that it wrote can be missing.
/// Dropped, it closes its end.
#[derive(Debug)]
pub(super) struct Stream {
    source: Arc<Mutex<Source>>,
    collector: Option<(PipeWriter, JoinHandle<()>)>,
}

#[derive(Debug)]
struct Source {
    pipe: File,
    bytes: Vec<u8>,
    ended: bool,
}

impl Source {
    /// Takes what is there.
    fn drain(&mut self) {
        let mut chunk = [0; 65536];
        while !self.ended {
            match self.pipe.read(&mut chunk) {
                Ok(0) => self.ended = true,
                Ok(count) => self.bytes.extend_from_slice(&chunk[..count]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                // A terminal whose other side is closed gives EIO.
                Err(_) => self.ended = true,
            }
        }
    }
}

impl Stream {
    /// Begins to read.
    pub(super) fn collect(end: OwnedFd) -> Self {
        fcntl(&end, FcntlArg::F_SETFL(OFlag::O_NONBLOCK)).expect("an end that does not block");
        let watched = end.try_clone().expect("a second handle");
        let source = Arc::new(Mutex::new(Source {
            pipe: end.into(),
            bytes: Vec::new(),
            ended: false,
        }));
        let (closed, close) = pipe().expect("a pipe");
        let shared = Arc::clone(&source);
        let thread = std::thread::spawn(move || {
            loop {
                let mut ends = [&watched.as_fd(), &closed.as_fd()]
                    .map(|end| PollFd::new(*end, PollFlags::POLLIN));
                let _ = poll(&mut ends, PollTimeout::NONE);
                let over = ends[1].any() == Some(true);
                let mut source = lock(&shared);
                source.drain();
                if over || source.ended {
                    return;
                }
            }
        });
        Self {
            source,
            collector: Some((close, thread)),
        }
    }

    fn drained(&self) -> MutexGuard<'_, Source> {
        let mut source = lock(&self.source);
        source.drain();
        source
    }

    /// Whether no process can write to it any more.
    pub(super) fn ended(&self) -> bool {
        self.drained().ended
    }

    /// All bytes up to now.
    pub(super) fn bytes(&self) -> Vec<u8> {
        self.drained().bytes.clone()
    }

    /// All bytes up to now, as text.
    pub(super) fn text(&self) -> String {
        String::from_utf8_lossy(&self.drained().bytes).into_owned()
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        if let Some((close, thread)) = self.collector.take() {
            drop(close);
            let _ = thread.join();
        }
    }
}
