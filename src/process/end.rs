//! Ending as the job ended.
//!
//! By now the lease is released or lost, the watchdog has ended, and nothing of the job is left. To be stopped between two
//! lines here delays the end and nothing else.

use nix::sys::prctl::set_dumpable;
use nix::sys::resource::{Resource, setrlimit};

use super::inherited::{set_disposition, unblock_all};
use crate::job::Ended;

/// Ends this process as the job ended: with its code, or by its signal, so that a shell sees what it would have seen
/// without `lease`: 128 + n in `$?`, and the end of a loop on Ctrl-C.
///
/// With `whole_group` every process of this one's group gets the signal, as the terminal would have sent it: the job had
/// the terminal for itself, so a script around `lease` knows nothing of the Ctrl-C yet.
///
/// No core file is left: it would be `lease`'s, in place of the job's. Where a signal has no effect, because this is
/// process 1 of a container, the exit code is 128 + n.
pub fn die_as(ended: Ended, whole_group: bool) -> ! {
    let signal = match ended {
        Ended::Code(code) => exit(i32::from(code)),
        Ended::Signal(signal) => signal,
    };
    let _: nix::Result<()> = setrlimit(Resource::RLIMIT_CORE, 0, 0);
    // A core_pattern that pipes into a program does not respect the limit.
    let _: nix::Result<()> = set_dumpable(false);
    let _: std::io::Result<libc::sigaction> = set_disposition(signal, libc::SIG_DFL);
    let _: std::io::Result<()> = unblock_all();
    // SAFETY: neither call reads memory. The signal may have been pending until now; it has the same end.
    unsafe {
        if whole_group {
            libc::kill(0, signal.number());
        }
        libc::raise(signal.number());
    }
    exit(128 + signal.number())
}

fn exit(code: i32) -> ! {
    // SAFETY: _exit(2) is always allowed. Not exit(3): a thread that was abandoned in a hanging call may hold a lock that
    // an exit handler wants, and everything that has to be written was written.
    unsafe { libc::_exit(code) }
}
