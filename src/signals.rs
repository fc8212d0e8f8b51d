//! Signals to events, in the order in which they came.
//!
//! One handler writes the number of each signal into a pipe, one thread reads it there. Order matters: a TSTP and the
//! CONT after it, swapped, would leave the job stopped. signal-hook's own iterator sorts what is pending by number.
//!
//! What a signal's sender was does not matter for what happens to it. A Ctrl-C reaches `lease` only if the job's group
//! does not have the terminal, and then has to be passed on like a signal of kill(1); if it has the terminal, the kernel
//! sends it to the job's group alone.
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

/// What is passed on to the job besides the real-time signals: everything that people, service managers and container
/// runtimes send to tell a process something. Not those that a process brings upon itself (SEGV, PIPE, XCPU...), nor TTIN
/// and TTOU, which are between the terminal and this process's own group.
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

/// A signal that this process got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Caught {
    /// To be passed on.
    Signal(Signal),
    /// A child ended, stopped or was continued: ask [`process::reap`].
    Child,
}

impl Caught {
    /// The signal by which the terminal says that somebody in this process's own group wanted it, and does not have it.
    #[must_use]
    pub const fn wants_terminal(self) -> Option<Signal> {
        match self {
            Self::Signal(signal @ (Signal::TTIN | Signal::TTOU)) => Some(signal),
            Self::Signal(_) | Self::Child => None,
        }
    }
}

/// Catches signals from now on and sends them to `events`, until its receiver is gone. For the rest of the process's life:
/// the handlers are not taken back.
///
/// To be called before the first thread is started and before the job is: the threads inherit the mask, and no signal
/// may come between. A signal that was ignored when the program started is not caught (nohup(1)), except CHLD, without
/// which no child's end would be known.
///
/// # Errors
/// When there is no descriptor or thread to be had.
pub fn listen<E>(events: Sender<E>) -> io::Result<()>
where
    E: From<Caught> + Send + 'static,
{
    let (read, write) = pipe2(OFlag::O_CLOEXEC)?;
    // The reader may sleep, the handler may not. The pipe holds 65,536 signals that nobody has read yet.
    nix::fcntl::fcntl(&write, nix::fcntl::FcntlArg::F_SETFL(OFlag::O_NONBLOCK))?;
    // Between the handler's installation and the entry of its action, signal-hook drops a signal: neither the default nor
    // the action gets it. What comes now waits until all is in place.
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
        // A child between fork and exec still has this handler, and the pipe. What it gets is its own affair.
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

/// The thread's life. It keeps the write end, so that the handlers' descriptor is never another file's.
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
    // Not closed: a handler may run at any time.
    std::mem::forget(write);
}
