//! Ending as the job ended.
//!
//! By now the lease is released or lost, the watchdog has ended, and nothing of the job is left. If this process is
//! stopped between two lines here, only the end is delayed.

use nix::sys::prctl::set_dumpable;
use nix::sys::resource::{Resource, setrlimit};

use super::inherited::{set_disposition, unblock_all};
use crate::job::Ended;

/// Ends this process as the job ended: with its code, or by its signal. So a shell sees what it would have seen without
/// `lease`: 128 + n in `$?`, and the end of a loop on Ctrl-C.
///
/// With `whole_group`, every process in the group of this process gets the signal, as the terminal would have sent it.
/// The job had the terminal to itself, so a script around `lease` has not seen the Ctrl-C yet.
///
/// No core file is written: it would replace the job's with that of `lease`. As process 1 of a container, this process
/// is not ended by a signal. The exit code is then 128 + n.
pub fn die_as(ended: Ended, whole_group: bool) -> ! {
    let signal = match ended {
        Ended::Code(code) => exit(i32::from(code)),
        Ended::Signal(signal) => signal,
    };
    let _: nix::Result<()> = setrlimit(Resource::RLIMIT_CORE, 0, 0);
    // A core_pattern that pipes into a program ignores the limit.
    let _: nix::Result<()> = set_dumpable(false);
    let _: std::io::Result<libc::sigaction> = set_disposition(signal, libc::SIG_DFL);
    let _: std::io::Result<()> = unblock_all();
    // SAFETY: neither call reads memory. If the signal was pending until now, the result is the same.
    unsafe {
        if whole_group {
            libc::kill(0, signal.number());
        }
        libc::raise(signal.number());
    }
    exit(128 + signal.number())
}

fn exit(code: i32) -> ! {
    // SAFETY: _exit(2) is always allowed. It is used in place of exit(3), because a thread that was abandoned in a
    // hanging call may hold a lock that an exit handler needs. All output has been written.
    unsafe { libc::_exit(code) }
}
