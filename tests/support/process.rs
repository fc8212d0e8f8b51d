//! The built binary under observation, and any other program that a test starts.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io::Write as _;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use nix::sys::signal::{SigHandler, Signal};

use super::running::{Output, Running};
use super::{Server, keeper, programs, serial};

/// A call of `lease` (or of another program) that is being put together.
///
/// It begins with an environment of PATH and an empty HOME: no LEASE_*, no PG*. It gets a session of its own, and so
/// no terminal, and a standard input that is empty.
#[derive(Clone, Debug)]
pub struct Lease {
    words: Vec<OsString>,
    env: BTreeMap<OsString, OsString>,
    dir: Option<PathBuf>,
    input: Option<Vec<u8>>,
    keep_input: bool,
}

impl Lease {
    /// The built `lease` with these arguments.
    pub fn new<A: AsRef<OsStr>>(args: impl IntoIterator<Item = A>) -> Self {
        Self::program(programs::lease()).args(args)
    }

    /// Another program, watched in the same way.
    pub fn program(program: impl AsRef<OsStr>) -> Self {
        let mut env = BTreeMap::new();
        env.insert("PATH".into(), std::env::var_os("PATH").unwrap_or_default());
        env.insert("HOME".into(), home().into());
        env.insert(
            keeper::MARK.into(),
            keeper::root().join(serial().to_string()).into(),
        );
        // Coverage and sanitizers report through these.
        for name in ["LLVM_PROFILE_FILE", "ASAN_OPTIONS", "TSAN_OPTIONS"] {
            if let Some(value) = std::env::var_os(name) {
                env.insert(name.into(), value);
            }
        }
        Self {
            words: vec![program.as_ref().into()],
            env,
            dir: None,
            input: None,
            keep_input: false,
        }
    }

    /// Another argument.
    pub fn arg(mut self, arg: impl AsRef<OsStr>) -> Self {
        self.words.push(arg.as_ref().into());
        self
    }

    /// More arguments.
    pub fn args<A: AsRef<OsStr>>(mut self, args: impl IntoIterator<Item = A>) -> Self {
        self.words
            .extend(args.into_iter().map(|arg| arg.as_ref().into()));
        self
    }

    /// Puts words in front of the program, as in `faketime -f +5m lease ...`.
    pub fn wrapped<A: AsRef<OsStr>>(mut self, wrapper: impl IntoIterator<Item = A>) -> Self {
        self.words.splice(
            0..0,
            wrapper.into_iter().map(|word| word.as_ref().to_owned()),
        );
        self
    }

    /// A variable of the environment.
    pub fn env(mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Self {
        self.env.insert(name.as_ref().into(), value.as_ref().into());
        self
    }

    /// Lets a shell find the built `lease` as `$LEASE`.
    pub fn knowing_lease(self) -> Self {
        self.env("LEASE", programs::lease())
    }

    /// The value of a variable that it is going to have.
    pub(super) fn variable(&self, name: &str) -> Option<String> {
        Some(self.env.get(OsStr::new(name))?.to_str()?.to_owned())
    }

    /// Takes a variable out of the environment.
    pub fn env_remove(mut self, name: impl AsRef<OsStr>) -> Self {
        self.env.remove(name.as_ref());
        self
    }

    /// The database, by LEASE_DATABASE_URL.
    pub fn url(self, url: impl AsRef<OsStr>) -> Self {
        self.env("LEASE_DATABASE_URL", url)
    }

    /// The database `postgres` of a server, as superuser over TCP.
    pub fn on(self, server: &Server) -> Self {
        let url = server.url();
        self.url(url)
    }

    /// The working directory.
    pub fn dir(mut self, dir: impl Into<PathBuf>) -> Self {
        self.dir = Some(dir.into());
        self
    }

    /// All of its standard input.
    pub fn input(mut self, input: impl Into<Vec<u8>>) -> Self {
        self.input = Some(input.into());
        self
    }

    /// Keeps its standard input open, to be written to with [`Running::write`].
    pub fn open_input(mut self) -> Self {
        self.keep_input = true;
        self
    }

    /// The command line, for messages.
    pub fn line(&self) -> String {
        let words: Vec<_> = self
            .words
            .iter()
            .map(|word| word.to_string_lossy())
            .collect();
        words.join(" ")
    }

    /// The same call for `std::process`, for what the methods here do not offer.
    pub fn command(&self) -> Command {
        let mut command = Command::new(&self.words[0]);
        command
            .args(&self.words[1..])
            .env_clear()
            .envs(&self.env)
            .stdin(Stdio::null());
        if let Some(dir) = &self.dir {
            command.current_dir(dir);
        }
        own_session(&mut command);
        command
    }

    /// Starts it.
    #[track_caller]
    pub fn spawn(&self) -> Running {
        let mut command = self.command();
        if self.input.is_some() || self.keep_input {
            command.stdin(Stdio::piped());
        }
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let running = Running::start(&mut command, self.line(), self.variable(keeper::MARK));
        if let Some(input) = self.input.clone() {
            let mut pipe = running.take_input();
            // On a thread: a program that does not read would block the test. One that has ended breaks the pipe.
            std::thread::spawn(move || pipe.write_all(&input));
        }
        running
    }

    /// Runs it to its end, which must come within [`LIMIT`].
    #[track_caller]
    pub fn output(&self) -> Output {
        self.spawn().wait()
    }
}

fn home() -> PathBuf {
    static HOME: std::sync::OnceLock<PathBuf> = std::sync::OnceLock::new();
    HOME.get_or_init(|| keeper::dir("home")).clone()
}

/// A session of its own: what is started does not take the terminal from the tests, nor get its signals. And no signal is
/// ignored at its start, as INT is for whatever a script runs in the background, the tests perhaps.
#[allow(unsafe_code)]
fn own_session(command: &mut Command) {
    // SAFETY: setsid and sigaction are async-signal-safe and allocate nothing; no handler function is installed.
    unsafe {
        command.pre_exec(|| {
            for signal in Signal::iterator() {
                if !matches!(signal, Signal::SIGKILL | Signal::SIGSTOP) {
                    nix::sys::signal::signal(signal, SigHandler::SigDfl)?;
                }
            }
            nix::unistd::setsid()?;
            Ok(())
        });
    }
}
