//! Signals to events, in the order in which they came.
//!
//! One handler writes the number of each signal into a pipe, one thread reads it there. The order matters: if a TSTP
//! and the CONT after it were swapped, the job would stay stopped. signal-hook's own iterator sorts pending signals by
//! number.
//!
//! The sender of a signal makes no difference. If the job's group has the terminal, the kernel sends a Ctrl-C to that
//! group alone. Otherwise the Ctrl-C reaches `lease`, which passes it on like a signal of kill(1).
#![allow(unsafe_code)] // Registering a signal handler is unsafe by nature; each use says why it is sound.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::mpsc::Sender;
use std::thread;

use nix::fcntl::OFlag;
use nix::unistd::pipe2;

use crate::job::Signal;
use crate::process;

/// The signals that are passed on to the job, besides the real-time signals: those that people, service managers and
/// container runtimes send to a process. Signals that a process causes itself (SEGV, PIPE, XCPU...) are not passed on.
/// Nor are TTIN and TTOU, which concern only the terminal and this process's own group.
const PASSED_ON: [Signal; 11] = [
    Signal::HUP,
    Signal::INT,
    Signal::QUIT,
    Signal::USR1,
    Signal::USR2,
    Signal::ALRM,
    Signal::TERM,
    Signal::CONT,
    Signal::TSTP,
    Signal::WINCH,
    Signal::PWR,
];

/// A signal that this process received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Caught {
    /// It is passed on to the job.
    Signal(Signal),
    /// A child ended, stopped or was continued: ask [`process::reap`].
    Child,
}

impl Caught {
    /// The signal by which the terminal reports that a process in this process's own group tried to use it from the
    /// background.
    #[must_use]
    pub const fn wants_terminal(self) -> Option<Signal> {
        match self {
            Self::Signal(signal @ (Signal::TTIN | Signal::TTOU)) => Some(signal),
            Self::Signal(_) | Self::Child => None,
        }
    }
}

/// Catches signals from now on and sends them to `events`, until its receiver is dropped. The handlers stay installed
/// for the rest of the process's life.
///
/// Call it before the first thread and the job are started: threads inherit the mask, and no signal may be lost in
/// between. A signal that was ignored when the program started is not caught (nohup(1)). CHLD is caught in any case,
/// because without it the end of a child would go unnoticed.
///
/// # Errors
/// There is no free descriptor, or the thread cannot be created.
pub fn listen<E>(events: Sender<E>) -> io::Result<()>
where
    E: From<Caught> + Send + 'static,
{
    let (read, write) = pipe2(OFlag::O_CLOEXEC)?;
    // The reader may block, the handler may not. The pipe holds 65,536 unread signals.
    nix::fcntl::fcntl(&write, nix::fcntl::FcntlArg::F_SETFL(OFlag::O_NONBLOCK))?;
    // signal-hook drops a signal that arrives between the installation of the handler and the registration of its
    // action. So signals are blocked until both are done.
    process::block_all()?;
    let real_time = libc::SIGRTMIN()..=libc::SIGRTMAX();
    for signal in PASSED_ON
        .into_iter()
        .chain([Signal::TTIN, Signal::TTOU])
        .chain(real_time.map(Signal::new))
    {
        if !process::ignored_at_start(signal) {
            catch(signal, &write)?;
        }
    }
    catch(Signal::CHLD, &write)?;
    process::unblock_all()?;
    thread::Builder::new()
        .name("signals".to_owned())
        .spawn(move || pass_on(read, write, &events))?;
    process::block_ttou()
}

fn catch(signal: Signal, pipe: &OwnedFd) -> io::Result<()> {
    let pipe = pipe.as_raw_fd();
    let owner = std::process::id();
    let byte = [signal.number().to_le_bytes()[0]];
    let note = move || {
        // A child between fork and exec still has this handler and the pipe. Its signals are not ours.
        if std::process::id() == owner {
            // SAFETY: write(2) is async-signal-safe, the buffer has the length that is given, and the descriptor stays
            // open for as long as the process lives.
            unsafe { libc::write(pipe, byte.as_ptr().cast(), 1) };
        }
    };
    // SAFETY: the action makes two system calls, allocates nothing, takes no lock and does not panic.
    unsafe { signal_hook::low_level::register(signal.number(), note) }?;
    Ok(())
}

/// The body of the thread. It keeps the write end open, so that the handlers' descriptor never belongs to another file.
fn pass_on<E: From<Caught>>(read: OwnedFd, write: OwnedFd, events: &Sender<E>) {
    let mut pipe = File::from(read);
    let mut byte = [0];
    while pipe.read_exact(&mut byte).is_ok() {
        let signal = Signal::new(byte[0].into());
        let caught = if signal == Signal::CHLD {
            Caught::Child
        } else {
            Caught::Signal(signal)
        };
        if events.send(E::from(caught)).is_err() {
            break;
        }
    }
    // It is not closed, because a handler may run at any time.
    std::mem::forget(write);
}
