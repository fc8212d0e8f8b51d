//! A server's clock that a test can set.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::builder::Builder;
use super::server::Server;
use super::{keeper, programs};

/// A clock that goes as the machine's does, but for an offset that a test may change at any moment.
///
/// It is what libfaketime makes of a file. Timers and timeouts are not touched, only what is asked for the time of day.
#[derive(Debug)]
pub struct Clock {
    library: String,
    file: PathBuf,
}

impl Clock {
    /// A clock that is right as yet; `None` where faketime is not installed.
    pub fn new() -> Option<Self> {
        programs::find("faketime")?;
        // It knows where its library lies.
        let library = programs::run(Command::new("faketime").args([
            "-f",
            "+0",
            "sh",
            "-c",
            "echo \"$LD_PRELOAD\"",
        ]));
        let clock = Self {
            library: String::from_utf8(library)
                .expect("a path")
                .trim_end()
                .to_owned(),
            file: keeper::dir("clock").join("offset"),
        };
        clock.set("+0");
        Some(clock)
    }

    /// The library to preload, for a program that is to go by a clock of another kind.
    pub fn library(&self) -> &str {
        &self.library
    }

    /// Sets it so far off, as `+1h` or `-30m`; `+0` is right. It applies to every later reading.
    pub fn set(&self, offset: &str) {
        // It is read at each look at the clock, so it must never be incomplete.
        let new = self.file.with_extension("new");
        fs::write(&new, offset).expect("a file");
        fs::rename(new, &self.file).expect("a file");
    }

    /// Makes and starts a server that goes by this clock.
    pub fn start(&self, server: Builder) -> Server {
        let server = server
            .env("LD_PRELOAD", &self.library)
            .env("FAKETIME_TIMESTAMP_FILE", &self.file)
            .env("FAKETIME_NO_CACHE", "1")
            .env("FAKETIME_DONT_FAKE_MONOTONIC", "1")
            .start();
        // The library would leave these behind when the server is killed. All that will use them have them open.
        let pid = server.pid().expect("the server runs");
        for name in ["faketime_shm_", "sem.faketime_sem_"] {
            let _ = fs::remove_file(Path::new("/dev/shm").join(format!("{name}{pid}")));
        }
        server
    }
}
