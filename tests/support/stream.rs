//! Reading what a program writes.

use std::fs::File;
use std::io::{ErrorKind, Read as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard};

use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use super::lock;

/// What has been read from one output stream.
///
/// A thread waits for bytes, so that the program never blocks on a full pipe. Whoever wants to know takes what is
/// there by itself, under the same lock: after the program's end nothing that it wrote can be missing.
#[derive(Clone, Debug)]
pub(super) struct Stream(Arc<Mutex<Source>>);

#[derive(Debug)]
struct Source {
    pipe: File,
    bytes: Vec<u8>,
    ended: bool,
}

impl Stream {
    /// Begins to read.
    pub(super) fn collect(pipe: OwnedFd) -> Self {
        fcntl(&pipe, FcntlArg::F_SETFL(OFlag::O_NONBLOCK)).expect("a pipe that does not block");
        let watched = pipe.try_clone().expect("a second handle");
        let stream = Self(Arc::new(Mutex::new(Source {
            pipe: pipe.into(),
            bytes: Vec::new(),
            ended: false,
        })));
        let collector = stream.clone();
        std::thread::spawn(move || {
            while !collector.ended() {
                let _ = poll(
                    &mut [PollFd::new(watched.as_fd(), PollFlags::POLLIN)],
                    PollTimeout::NONE,
                );
            }
        });
        stream
    }

    /// Takes what is there.
    fn drained(&self) -> MutexGuard<'_, Source> {
        let mut source = lock(&self.0);
        let Source { pipe, bytes, ended } = &mut *source;
        let mut chunk = [0; 65536];
        while !*ended {
            match pipe.read(&mut chunk) {
                Ok(0) => *ended = true,
                Ok(count) => bytes.extend_from_slice(&chunk[..count]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => *ended = true,
            }
        }
        source
    }

    /// Whether nobody can write to it any more.
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
