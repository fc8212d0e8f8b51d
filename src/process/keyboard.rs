//! The terminal that stdout is, for a program that shows a screen on it: its size, its modes, and the keys typed on it.
//!
//! Keys arrive one by one and are not echoed (`cbreak`), but they still send signals: Ctrl-C, Ctrl-Z, Ctrl-\. The modes
//! belong to the terminal, not to this process. So each change first looks who is in the foreground: a shell that has put
//! this process into the background has set its own.

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Read};
use std::os::fd::AsFd;
use std::os::unix::fs::OpenOptionsExt;
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SIGTTIN, SigSet};
use nix::sys::termios::{
    InputFlags, LocalFlags, SetArg, SpecialCharacterIndices, Termios, tcgetattr, tcsetattr,
};
use nix::unistd::{getpgrp, tcgetpgrp};

use super::inherited::ignored_at_start;
use crate::job::Signal;

/// How long a background process waits before it looks again whether it may read keys.
const BACKGROUND_PAUSE: Duration = Duration::from_millis(200);

/// The modes to restore.
static MODES: Mutex<Option<Termios>> = Mutex::new(None);

/// The size of a terminal, in characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    /// Lines.
    pub rows: usize,
    /// Characters of a line.
    pub columns: usize,
}

/// The size of the terminal that `stream` is. `None` if it is not a terminal, or has no size.
#[must_use]
pub fn terminal_size(stream: impl AsFd) -> Option<Size> {
    let (columns, rows) = terminal_size::terminal_size_of(stream)?;
    Some(Size {
        rows: rows.0.into(),
        columns: columns.0.into(),
    })
}

/// Whether `stream` is the terminal that controls this process, and this process's group is in its foreground.
#[must_use]
pub fn is_foreground(stream: impl AsFd) -> bool {
    tcgetpgrp(stream) == Ok(getpgrp())
}

/// Whether a write to `stream` would not block now.
#[must_use]
pub fn takes_output(stream: impl AsFd) -> bool {
    let mut wanted = [PollFd::new(stream.as_fd(), PollFlags::POLLOUT)];
    poll(&mut wanted, PollTimeout::ZERO).is_ok()
        && wanted[0]
            .revents()
            .is_some_and(|found| found.contains(PollFlags::POLLOUT))
}

/// Whether a screen may be shown on stdout: it is the terminal that controls this process.
///
/// Not for an asynchronous list of a shell without job control (`lease ... &` in a script): it shares the script's group
/// and so its foreground. INT is ignored there (POSIX, 2.11), which tells it apart.
#[must_use]
pub fn stdout_can_show_a_screen() -> bool {
    !ignored_at_start(Signal::INT) && tcgetpgrp(io::stdout()).is_ok()
}

/// Sets the modes of the terminal to `cbreak`, and remembers the former ones. Ctrl-S is a key too, because a stopped
/// terminal would block this process.
///
/// # Errors
/// If the terminal is gone.
pub fn set_key_modes() -> io::Result<()> {
    let mut saved = MODES.lock().unwrap_or_else(PoisonError::into_inner);
    let now = tcgetattr(io::stdout())?;
    let mut modes = now.clone();
    modes.local_flags -= LocalFlags::ECHO | LocalFlags::ICANON;
    modes.input_flags -= InputFlags::IXON;
    modes.control_chars[SpecialCharacterIndices::VMIN as usize] = 1;
    modes.control_chars[SpecialCharacterIndices::VTIME as usize] = 0;
    tcsetattr(io::stdout(), SetArg::TCSANOW, &modes)?;
    // After a STOP without a warning, what is found may be our own.
    saved.get_or_insert(now);
    Ok(())
}

/// Restores the modes that [`set_key_modes`] found.
pub fn restore_modes() {
    let modes = MODES.try_lock().ok().and_then(|mut saved| saved.take());
    if let Some(modes) = modes {
        // At once: waiting for the output to drain could take for ever.
        let _: nix::Result<()> = tcsetattr(io::stdout(), SetArg::TCSANOW, &modes);
    }
}

/// Calls `on_key` with each byte that is typed, on a thread of its own, until `on_key` returns `false` or the terminal is
/// closed.
///
/// # Errors
/// If the terminal can't be opened, or no thread can be started.
pub fn read_keys(on_key: impl Fn(u8) -> bool + Send + 'static) -> io::Result<()> {
    // Opened anew, because a descriptor that does not block would not block for its other users either.
    let tty = OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_NOCTTY | libc::O_NONBLOCK)
        .open("/dev/tty")?;
    thread::Builder::new()
        .name("lease-keys".to_owned())
        .spawn(move || read_until(&tty, &on_key))?;
    Ok(())
}

fn read_until(mut tty: &File, on_key: &impl Fn(u8) -> bool) {
    // A read from the background then fails, and does not stop the process (tcsetpgrp(3)).
    let ttin: SigSet = [SIGTTIN].into_iter().collect();
    if ttin.thread_block().is_err() {
        return;
    }
    let mut typed = [0; 64];
    loop {
        let mut wanted = [PollFd::new(tty.as_fd(), PollFlags::POLLIN)];
        match poll(&mut wanted, PollTimeout::NONE) {
            Ok(_) | Err(Errno::EINTR) => {}
            Err(_) => return,
        }
        let gone = wanted[0]
            .revents()
            .is_some_and(|found| found.intersects(PollFlags::POLLHUP | PollFlags::POLLERR));
        if !gone && !is_foreground(tty) {
            // What is typed now is for somebody else.
            thread::sleep(BACKGROUND_PAUSE);
            continue;
        }
        match tty.read(&mut typed) {
            Ok(0) => return,
            Ok(count) => {
                if !typed[..count].iter().all(|key| on_key(*key)) {
                    return;
                }
            }
            Err(error)
                if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
            Err(_) if !gone => thread::sleep(BACKGROUND_PAUSE),
            Err(_) => return,
        }
    }
}
