//! What this process inherited: the signals that are ignored or blocked, the closed streams, the memory of its
//! arguments.

use std::ffi::CStr;
use std::io;
use std::mem::MaybeUninit;
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU64, AtomicUsize, Ordering};

use libc::{c_char, c_int};
use nix::sys::signal::{SigSet, SigmaskHow};

use crate::job::Signal;

/// One bit for each signal, bit 0 for signal 1, that was ignored when the program started.
static IGNORED: AtomicU64 = AtomicU64::new(0);

/// One bit for each of the descriptors 0, 1 and 2 that was closed when the program started. std's runtime opens
/// /dev/null in their place, so a later write would not fail.
static CLOSED: AtomicU64 = AtomicU64::new(0);

/// Whether this standard stream (0, 1 or 2) was closed when the program started.
#[must_use]
pub fn was_closed_at_start(stream: u8) -> bool {
    stream <= 2 && CLOSED.load(Ordering::Relaxed) & (1 << stream) != 0
}

/// The address and the length of this process's arguments, which the kernel shows as /proc/PID/cmdline.
static ARGUMENTS: AtomicPtr<c_char> = AtomicPtr::new(ptr::null_mut());
static ARGUMENTS_LENGTH: AtomicUsize = AtomicUsize::new(0);

/// Sets the command line that ps(1) and `pkill -f` see to `name`. Async-signal-safe.
///
/// Only for a forked process that no longer reads its arguments: they are overwritten.
pub(crate) fn rename_forked(name: &CStr) {
    let (to, room) = (
        ARGUMENTS.load(Ordering::Relaxed),
        ARGUMENTS_LENGTH.load(Ordering::Relaxed),
    );
    // A longer one would mean that the stack was not laid out by the kernel.
    if to.is_null() || room == 0 || room > 1 << 22 {
        return;
    }
    let name = name.to_bytes();
    let length = name.len().min(room);
    // SAFETY: the memory is the process's own, as long as recorded, and its only thread no longer reads it.
    unsafe {
        ptr::write_bytes(to, 0, room);
        ptr::copy_nonoverlapping(name.as_ptr(), to.cast(), length);
    }
}

/// The largest signal number of Linux (on MIPS it is 128, on every other architecture that Rust's std supports it is
/// 64).
const LAST: c_int = 64;

/// Run by the loader before `main`. std's runtime sets SIGPIPE to ignored before it calls `main`. After that it is
/// unknown whether the parent had ignored it (`nohup`, a Python parent, a shell's `trap '' PIPE`).
#[used]
#[unsafe(link_section = ".init_array")]
static RECORD: extern "C" fn(c_int, *const *const c_char) = {
    extern "C" fn record(argc: c_int, argv: *const *const c_char) {
        let mut bits = 0;
        for signal in 1..=LAST {
            if is_ignored(signal) {
                bits |= bit(signal);
            }
        }
        IGNORED.store(bits, Ordering::Relaxed);
        let mut closed = 0;
        for fd in 0..=2 {
            // SAFETY: fcntl(2) with F_GETFD reads no memory.
            if unsafe { libc::fcntl(fd, libc::F_GETFD) } < 0 {
                closed |= 1 << fd;
            }
        }
        CLOSED.store(closed, Ordering::Relaxed);
        let count = usize::try_from(argc).unwrap_or(0);
        // Other C libraries pass no arguments.
        if cfg!(target_env = "gnu") && count > 0 && !argv.is_null() {
            // SAFETY: the loader of glibc passes what the kernel has put on the stack: `argc` strings, one after
            // another, followed by the environment (ld.so(8), execve(2)).
            unsafe {
                let first = *argv;
                let last = *argv.add(count - 1);
                if !first.is_null() && !last.is_null() {
                    let length = (last as usize).wrapping_sub(first as usize) + libc::strlen(last);
                    ARGUMENTS.store(first.cast_mut(), Ordering::Relaxed);
                    ARGUMENTS_LENGTH.store(length, Ordering::Relaxed);
                }
            }
        }
    }
    record
};

const fn bit(signal: c_int) -> u64 {
    1 << (signal - 1)
}

/// Async-signal-safe, and it needs nothing that is only set up in `main`.
fn is_ignored(signal: c_int) -> bool {
    let mut now = MaybeUninit::<libc::sigaction>::uninit();
    // SAFETY: with a null second argument, sigaction(2) only writes to `now`, which is large enough. `now` is read only
    // if the call succeeded.
    unsafe {
        libc::sigaction(signal, ptr::null(), now.as_mut_ptr()) == 0
            && now.assume_init().sa_sigaction == libc::SIG_IGN
    }
}

/// Whether `signal` was ignored when this program started. It stays ignored, for the job as well: this is how nohup(1)
/// and a shell's asynchronous lists protect a command (POSIX, 2.11 Signals and Error Handling).
#[must_use]
pub fn ignored_at_start(signal: Signal) -> bool {
    let number = signal.number();
    (1..=LAST).contains(&number) && IGNORED.load(Ordering::Relaxed) & bit(number) != 0
}

/// Unblocks every signal in the calling thread, and so in the threads that it starts later. A parent may have left some
/// blocked. Without this, `lease` might never see a TERM or the end of its child.
///
/// # Errors
/// Those of sigprocmask(2); none is expected.
pub fn unblock_all() -> io::Result<()> {
    set_mask(SigSet::empty())
}

/// Blocks every signal in the calling thread, and returns the previous mask.
///
/// # Errors
/// Those of pthread_sigmask(3); none is expected.
pub(crate) fn block_all() -> io::Result<SigSet> {
    Ok(SigSet::all().thread_swap_mask(SigmaskHow::SIG_SETMASK)?)
}

/// Sets the signals that are blocked in the calling thread to `set`. Async-signal-safe.
///
/// # Errors
/// Those of pthread_sigmask(3); none is expected.
pub(crate) fn set_mask(set: SigSet) -> io::Result<()> {
    Ok(set.thread_set_mask()?)
}

/// Sets the disposition of `signal` to `to` (`SIG_DFL` or `SIG_IGN`), and returns the previous one. Async-signal-safe.
pub(super) fn set_disposition(
    signal: Signal,
    to: libc::sighandler_t,
) -> io::Result<libc::sigaction> {
    let mut old = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: an all-zero sigaction is a valid one: no handler, no flags, an empty mask.
    let mut new: libc::sigaction = unsafe { MaybeUninit::zeroed().assume_init() };
    new.sa_sigaction = to;
    // SAFETY: both structures are valid for the call; no handler function is installed.
    if unsafe { libc::sigaction(signal.number(), &raw const new, old.as_mut_ptr()) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the call succeeded, so it is initialized.
    Ok(unsafe { old.assume_init() })
}

/// Blocks TTOU in the calling thread, and so in the threads that it starts later.
///
/// While the job has the terminal, this process is in the background. On a terminal with `stty tostop`, its messages on
/// stderr would stop it, and the heartbeats with it. A thread that blocks TTOU may write (termios(3)). If the signal
/// were ignored instead, `lease` would not learn that it has stopped a neighbour in a pipeline.
///
/// # Errors
/// Those of pthread_sigmask(3); none is expected.
pub fn block_ttou() -> io::Result<()> {
    Ok(ttou().thread_block()?)
}

pub(super) fn unblock_ttou() -> io::Result<()> {
    Ok(ttou().thread_unblock()?)
}

fn ttou() -> SigSet {
    [nix::sys::signal::Signal::SIGTTOU].into_iter().collect()
}

/// Restores the disposition that every signal had when this program started: ignored, or else its default. For a child
/// before its exec: async-signal-safe.
///
/// Pending signals are discarded first. They were sent to the whole of this process's old group. The parent got them
/// too and passes them on, so the job would get each of them twice.
pub(super) fn restore_dispositions() {
    for signal in (1..=LAST).map(Signal::new) {
        if matches!(signal, Signal::KILL | Signal::STOP) {
            continue;
        }
        // The C library uses 32 and 33 itself and refuses them, so they cannot have been changed.
        let _: io::Result<_> = set_disposition(signal, libc::SIG_IGN);
        if !ignored_at_start(signal) {
            let _: io::Result<_> = set_disposition(signal, libc::SIG_DFL);
        }
    }
}
