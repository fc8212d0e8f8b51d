//! What this process was started with: which signals it ignores, which it blocks.

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

/// One bit for each of the descriptors 0, 1 and 2 that was closed when the program started. std's runtime opens /dev/null in
/// their place, so that nothing would ever fail.
static CLOSED: AtomicU64 = AtomicU64::new(0);

/// Whether this standard stream (0, 1 or 2) was closed when the program started.
#[must_use]
pub fn was_closed_at_start(stream: u8) -> bool {
    stream <= 2 && CLOSED.load(Ordering::Relaxed) & (1 << stream) != 0
}

/// Where the kernel keeps the arguments of this process, which it shows as /proc/PID/cmdline, and how long they are.
static ARGUMENTS: AtomicPtr<c_char> = AtomicPtr::new(ptr::null_mut());
static ARGUMENTS_LENGTH: AtomicUsize = AtomicUsize::new(0);

/// Makes `name` the command line that ps(1) and `pkill -f` see. Async-signal-safe.
///
/// Only for a process that has forked and no longer looks at its arguments: they are overwritten.
pub(crate) fn rename_forked(name: &CStr) {
    let (to, room) = (
        ARGUMENTS.load(Ordering::Relaxed),
        ARGUMENTS_LENGTH.load(Ordering::Relaxed),
    );
    // More would be a stack that was laid out by somebody else than the kernel.
    if to.is_null() || room == 0 || room > 1 << 22 {
        return;
    }
    let name = name.to_bytes();
    let length = name.len().min(room);
    // SAFETY: the memory is the process's own, as long as recorded, and its one thread reads it no more.
    unsafe {
        ptr::write_bytes(to, 0, room);
        ptr::copy_nonoverlapping(name.as_ptr(), to.cast(), length);
    }
}

/// The largest signal number of Linux (on every architecture that Rust's std knows but MIPS, which has 128).
const LAST: c_int = 64;

/// Run by the loader before `main`: std's runtime ignores SIGPIPE on its way to `main`, and afterwards nobody can tell
/// whether the parent had ignored it (`nohup`, a Python parent, a shell's `trap '' PIPE`).
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
        // Other C libraries pass nothing.
        if cfg!(target_env = "gnu") && count > 0 && !argv.is_null() {
            // SAFETY: the loader of glibc passes what the kernel has put on the stack: `argc` strings, one after another,
            // the last one followed by the environment (ld.so(8), execve(2)).
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

/// Async-signal-safe, and needs nothing that a program has before its `main`.
fn is_ignored(signal: c_int) -> bool {
    let mut now = MaybeUninit::<libc::sigaction>::uninit();
    // SAFETY: with a null second argument sigaction(2) only writes to `now`, which is large enough, and `now` is read
    // only if it says that it did.
    unsafe {
        libc::sigaction(signal, ptr::null(), now.as_mut_ptr()) == 0
            && now.assume_init().sa_sigaction == libc::SIG_IGN
    }
}

/// Whether `signal` was ignored when this program started. Such a signal stays ignored, for the job as well: that is how
/// nohup(1) and a shell's asynchronous lists protect a command (POSIX, 2.11 Signals and Error Handling).
#[must_use]
pub fn ignored_at_start(signal: Signal) -> bool {
    let number = signal.number();
    (1..=LAST).contains(&number) && IGNORED.load(Ordering::Relaxed) & bit(number) != 0
}

/// Unblocks every signal in the calling thread, and so in the threads that it starts later. A parent may have left some
/// blocked, and a `lease` that never sees a TERM or the end of its child would serve nobody.
///
/// # Errors
/// Those of sigprocmask(2); none is known.
pub fn unblock_all() -> io::Result<()> {
    set_mask(SigSet::empty())
}

/// Blocks every signal in the calling thread, and answers what was blocked before.
///
/// # Errors
/// Those of pthread_sigmask(3); none is known.
pub(crate) fn block_all() -> io::Result<SigSet> {
    Ok(SigSet::all().thread_swap_mask(SigmaskHow::SIG_SETMASK)?)
}

/// Makes `set` the signals that are blocked in the calling thread. Async-signal-safe.
///
/// # Errors
/// Those of pthread_sigmask(3); none is known.
pub(crate) fn set_mask(set: SigSet) -> io::Result<()> {
    Ok(set.thread_set_mask()?)
}

/// Sets the disposition of `signal` to `to` (`SIG_DFL` or `SIG_IGN`), and answers what it was. Async-signal-safe.
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
/// While the job has the terminal this process is in the background, and on a terminal with `stty tostop` its messages on
/// stderr would stop it, and with it the heartbeats. A thread that blocks the signal may write (termios(3)). Ignored, it
/// could not tell that a neighbour in a pipeline was stopped by it.
///
/// # Errors
/// Those of pthread_sigmask(3); none is known.
pub fn block_ttou() -> io::Result<()> {
    Ok(ttou().thread_block()?)
}

pub(super) fn unblock_ttou() -> io::Result<()> {
    Ok(ttou().thread_unblock()?)
}

fn ttou() -> SigSet {
    [nix::sys::signal::Signal::SIGTTOU].into_iter().collect()
}

/// Gives every signal the disposition that it had when this program started, except that what was caught or at its
/// default is at its default. For a child between fork and exec: async-signal-safe.
///
/// What is pending is thrown away first. It was sent to the whole of this process's old group, and the parent, which got
/// a copy, passes it on; two would arrive.
pub(super) fn restore_dispositions() {
    for signal in (1..=LAST).map(Signal::new) {
        if matches!(signal, Signal::KILL | Signal::STOP) {
            continue;
        }
        // The C library keeps 32 and 33 to itself and refuses them; they can't have been changed.
        let _: io::Result<_> = set_disposition(signal, libc::SIG_IGN);
        if !ignored_at_start(signal) {
            let _: io::Result<_> = set_disposition(signal, libc::SIG_DFL);
        }
    }
}
