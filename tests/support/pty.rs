//! A real terminal: what a program does with Ctrl-C, Ctrl-Z and the foreground shows only there.

use std::fmt;
use std::fs::File;
use std::io::Write as _;
use std::num::NonZero;
use std::os::fd::{AsFd as _, AsRawFd as _};
use std::os::unix::process::CommandExt as _;
use std::process::{ExitStatus, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use nix::pty::{Winsize, openpty};

use super::family::Family;
use super::process::Lease;
use super::stream::Stream;
use super::wait::{LIMIT, until_within};
use super::{keeper, lock, proc};

/// Ctrl-C.
pub const INTERRUPT: &str = "\x03";
/// Ctrl-\.
pub const QUIT: &str = "\x1c";
/// Ctrl-Z.
pub const SUSPEND: &str = "\x1a";
/// Ctrl-D.
pub const END: &str = "\x04";

/// An interactive shell with default settings, `bash` or `dash`, in which `$LEASE` is the built binary.
pub fn interactive(shell: &str) -> Lease {
    let words: &[&str] = match shell {
        "bash" => &["--norc", "--noprofile", "--noediting", "-i"],
        _ => &["-i"],
    };
    Lease::program(shell).args(words).knowing_lease()
}

/// A terminal with a program as the leader of its session: `lease` itself, or a shell in which to type.
/// Dropped, everything that runs in it is killed.
#[derive(Debug)]
pub struct Terminal {
    line: String,
    // Before the window: it is killed while that is still open, and gets no HUP of its own.
    family: Family,
    window: Mutex<Window>,
    /// Up to where on the screen the test has waited.
    seen: AtomicUsize,
}

#[derive(Debug)]
enum Window {
    Open { keyboard: File, screen: Stream },
    Closed(String),
}

impl Terminal {
    /// Starts a program in a terminal of 24 lines and 80 columns. All three streams are the terminal.
    #[track_caller]
    pub fn spawn(program: &Lease) -> Self {
        let size = Winsize {
            ws_row: 24,
            ws_col: 80,
            ws_xpixel: 0,
            ws_ypixel: 0,
        };
        let pair = openpty(Some(&size), None).expect("a terminal");
        let stdio = || Stdio::from(pair.slave.try_clone().expect("a handle of the terminal"));
        // A test process forks from several threads; none of them may keep another one's terminal open.
        for end in [&pair.master, &pair.slave] {
            nix::fcntl::fcntl(
                end,
                nix::fcntl::FcntlArg::F_SETFD(nix::fcntl::FdFlag::FD_CLOEXEC),
            )
            .expect("fcntl");
        }
        let mut command = program.command();
        command.stdin(stdio()).stdout(stdio()).stderr(stdio());
        if program.variable("TERM").is_none() {
            command.env("TERM", "xterm");
        }
        take_terminal(&mut command);
        let child = command
            .spawn()
            .unwrap_or_else(|error| panic!("{}: {error}", program.line()));
        Self {
            line: program.line(),
            family: Family::of(child, program.variable(keeper::MARK)),
            window: Mutex::new(Window::Open {
                keyboard: pair
                    .master
                    .try_clone()
                    .expect("a handle of the terminal")
                    .into(),
                screen: Stream::collect(pair.master),
            }),
            seen: AtomicUsize::new(0),
        }
    }

    /// Types: text, or one of the control characters above. A line ends with `\r` or `\n`.
    pub fn type_in(&self, text: &str) {
        self.with_keyboard(|mut keyboard| {
            keyboard
                .write_all(text.as_bytes())
                .expect("a terminal that takes input")
        });
    }

    fn with_keyboard<T>(&self, what: impl FnOnce(&File) -> T) -> T {
        match &*lock(&self.window) {
            Window::Open { keyboard, .. } => what(keyboard),
            Window::Closed(_) => panic!("{self} is closed"),
        }
    }

    /// Everything that was written to the terminal, what was typed and echoed too. Lines end with `\r\n`.
    pub fn screen(&self) -> String {
        match &*lock(&self.window) {
            Window::Open { screen, .. } => screen.text(),
            Window::Closed(screen) => screen.clone(),
        }
    }

    /// What a person sees, line by line, on a terminal of so many rows and columns; and whether that is the alternate
    /// screen.
    pub fn seen(&self, (rows, columns): (u16, u16)) -> (Vec<String>, bool) {
        let size = |count| NonZero::new(count).expect("a size");
        let mut parser = vt100::Parser::new(size(rows), size(columns), 0);
        parser.process(self.screen().as_bytes());
        let screen = parser.screen();
        let lines = screen.rows(0, columns);
        let lines = lines.map(|line| line.trim_end().to_owned()).collect();
        (lines, screen.alternate_screen())
    }

    /// Waits until `part` has been written to the terminal. Mind that what was typed is echoed: wait for something
    /// that only an answer contains.
    #[track_caller]
    pub fn wait_for(&self, part: &str) {
        until_within(&format!("{self} shows {part:?}"), LIMIT, || {
            let screen = self.screen();
            if screen.contains(part) {
                Ok(())
            } else {
                Err(format!("\n{screen}"))
            }
        });
    }

    /// Waits until `part` has been written after all that was waited for in this way before.
    #[track_caller]
    pub fn wait_for_next(&self, part: &str) {
        let seen = self.seen.load(Ordering::SeqCst);
        until_within(&format!("{self} shows {part:?} next"), LIMIT, || {
            let screen = self.screen();
            match screen[seen..].find(part) {
                Some(at) => {
                    self.seen.store(seen + at + part.len(), Ordering::SeqCst);
                    Ok(())
                }
                None => Err(format!("\n{screen}")),
            }
        });
    }

    /// Types `text` again and again until `part` is shown next. After a Ctrl-C: a shell throws away what it has read
    /// of a line.
    #[track_caller]
    pub fn type_until_next(&self, text: &str, part: &str) {
        let (start, seen) = (Instant::now(), self.seen.load(Ordering::SeqCst));
        while !self.screen()[seen..].contains(part) && start.elapsed() < LIMIT {
            self.type_in(text);
            std::thread::sleep(Duration::from_millis(200));
        }
        self.wait_for_next(part);
    }

    /// Waits until `part` has been written `count` times.
    #[track_caller]
    pub fn wait_for_times(&self, part: &str, count: usize) {
        until_within(
            &format!("{self} shows {part:?} {count} times"),
            LIMIT,
            || {
                let screen = self.screen();
                if screen.matches(part).count() >= count {
                    Ok(())
                } else {
                    Err(format!("\n{screen}"))
                }
            },
        );
    }

    /// The process id of the program.
    pub fn pid(&self) -> i32 {
        self.family.pid()
    }

    /// The process group in the foreground.
    #[allow(unsafe_code)]
    pub fn foreground(&self) -> i32 {
        // SAFETY: the descriptor is open, and the call only reads. nix's wrapper cannot return the 0 of a terminal
        // without a foreground.
        self.with_keyboard(|keyboard| unsafe { libc::tcgetpgrp(keyboard.as_raw_fd()) })
    }

    /// Changes its size; the foreground gets WINCH.
    #[allow(unsafe_code)]
    pub fn resize(&self, rows: u16, columns: u16) {
        let size = Winsize {
            ws_row: rows,
            ws_col: columns,
            ws_xpixel: 0,
            ws_ypixel: 0,
        };
        // SAFETY: the descriptor is open, and TIOCSWINSZ reads the structure that it is given.
        let result = self.with_keyboard(|keyboard| unsafe {
            libc::ioctl(keyboard.as_raw_fd(), libc::TIOCSWINSZ, &raw const size)
        });
        assert_eq!(result, 0, "a terminal that takes a size");
    }

    /// The settings of the line, to see whether a program has put them back.
    pub fn settings(&self) -> nix::sys::termios::Termios {
        self.with_keyboard(|keyboard| {
            nix::sys::termios::tcgetattr(keyboard.as_fd()).expect("a terminal")
        })
    }

    /// How the program ended, if it has.
    pub fn exit(&self) -> Option<ExitStatus> {
        self.family.exit()
    }

    /// Waits for the program's end.
    #[track_caller]
    pub fn wait_exit(&self, limit: Duration) -> ExitStatus {
        until_within(&format!("{self} ends"), limit, || {
            self.exit().ok_or_else(|| format!("\n{}", self.screen()))
        })
    }

    /// Every living process that descends from the program, itself included.
    pub fn processes(&self) -> Vec<proc::Process> {
        self.family.processes()
    }

    /// Those of [`processes`](Self::processes) that have this name.
    pub fn named(&self, name: &str) -> Vec<proc::Process> {
        self.family.named(name)
    }

    /// Closes the window: the session gets HUP, its reads and writes fail. Processes are watched as before.
    pub fn hang_up(&self) {
        let mut window = lock(&self.window);
        if let Window::Open { screen, .. } = &*window {
            *window = Window::Closed(screen.text());
        }
    }
}

impl fmt::Display for Terminal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the terminal of `{}`", self.line)
    }
}

#[allow(unsafe_code)]
fn take_terminal(command: &mut std::process::Command) {
    // SAFETY: ioctl is async-signal-safe and allocates nothing. By now descriptor 0 is the terminal, and the child
    // leads a session that has none.
    unsafe {
        command.pre_exec(|| match libc::ioctl(0, libc::TIOCSCTTY, 0) {
            -1 => Err(std::io::Error::last_os_error()),
            _ => Ok(()),
        });
    }
}
