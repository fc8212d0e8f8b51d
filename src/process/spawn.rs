//! Starting the job.

use std::collections::HashMap;
use std::ffi::{CStr, CString, OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::process::Command;

use libc::{c_char, pid_t};
use nix::sys::signal::SigSet;
use nix::unistd::{Pid, setpgid};

use super::group::{Group, GroupId};
use super::inherited::{block_all, restore_dispositions, set_mask, was_closed_at_start};
use super::program::{self, NoProgram};
use super::terminal::{Lender, Terminal};
use crate::clock::BootTime;

/// Called in the child, between fork and exec, with the identity of the new group. It must be async-signal-safe and
/// must not allocate.
pub type Announce = Box<dyn Fn(GroupId) -> io::Result<()> + Send + Sync>;

/// What to start, and how.
pub struct Launch<'a> {
    /// The program and its arguments, byte for byte. Never empty.
    pub command: &'a [OsString],
    /// Variables that the job gets besides those of this process, in place of any of the same name.
    pub environment: &'a [(&'a str, &'a OsStr)],
    /// Told the job's group before the job's first instruction runs. If it fails, the job is not started.
    pub announce: Option<Announce>,
    /// From this instant on the job is not started any more.
    pub not_after: BootTime,
    /// The terminal that the job's group gets, if this process has it now or comes to have it.
    pub terminal: Option<&'a mut Terminal>,
}

/// Why the job could not be started.
#[derive(Debug)]
pub enum SpawnError {
    /// There is no such program, or it can't be executed.
    NoProgram(NoProgram),
    /// Nobody could be told of the job's group, so the job would have run unprotected. Nothing was started.
    NotAnnounced(io::Error),
    /// [`Launch::not_after`] had come before the program was executed. Nothing was started.
    TooLate,
    /// No process could be made.
    Failed(io::Error),
}

/// A job that was started. Dropping it neither ends nor reaps it.
#[derive(Debug)]
pub struct Job {
    group: Group,
}

impl Job {
    /// The id of its first process, which is that of its group.
    #[must_use]
    pub const fn pid(&self) -> pid_t {
        self.group.id().pid
    }

    /// Its process group.
    #[must_use]
    pub const fn group(&self) -> &Group {
        &self.group
    }
}

/// The steps of the child that can fail in a way of their own. An impossible errno stands for each of them in the one
/// number that std passes from the child to its parent.
const NOT_ANNOUNCED: i32 = 4000;
const TOO_LATE: i32 = 4001;

/// Starts a job: no shell, a process group of its own, a clean signal mask, the signal dispositions that this process
/// was started with, and of our descriptors only 0, 1 and 2. Descriptors that this process itself was started with are
/// passed on as they are, as env(1) does.
///
/// A file that the kernel does not know how to execute (a script without `#!`) is run by /bin/sh, as execvp(3), and so
/// env(1), nohup(1) and timeout(1), do.
///
/// The process can be stopped by its terminal's user in the microseconds between getting the terminal and executing the
/// program. This call then waits until it is continued; the watchdog, which knows the group, ends that at the deadline.
///
/// A start can take long: the machine is busy or suspended, or this process is stopped. So the child itself looks at the
/// clock, as its last step before the exec. From the announcement on the watchdog knows the group and kills it at the
/// deadline, whether or not the exec has been reached. What is left open is an exec that takes longer than the time from
/// `not_after` to the deadline, and ends during the moment by which a busy machine runs the watchdog late. The margin of
/// the ttl is there for that moment. Without a watchdog nothing bounds the exec itself (page faults, a slow network file
/// system).
///
/// # Errors
/// See [`SpawnError`]. Nothing of the job is left.
pub fn spawn(launch: Launch<'_>) -> Result<Job, SpawnError> {
    let Launch {
        command,
        environment,
        announce,
        not_after,
        mut terminal,
    } = launch;
    let name = command.first().map_or(OsStr::new(""), OsString::as_os_str);
    let file =
        program::find(name, std::env::var_os("PATH").as_ref()).map_err(SpawnError::NoProgram)?;
    let environment = Environment::with(environment).map_err(SpawnError::Failed)?;
    let lender = terminal.as_mut().and_then(|t| t.lend());

    let mut child = Command::new(file);
    child.arg0(name).args(command.get(1..).unwrap_or_default());
    // SAFETY: the closure runs in the child of a process with threads, so only async-signal-safe calls and memory that
    // was there before the fork are allowed: it makes system calls, reads what it captured, and sets `environ`.
    unsafe {
        child
            .pre_exec(move || prepare(&environment, announce.as_ref(), not_after, lender.as_ref()));
    }
    let started = child.spawn().map_err(|error| {
        // The child may have had it for its group, which has no member any more.
        if let Some(terminal) = &terminal {
            terminal.take_back(false);
        }
        why(error)
    })?;
    let pid = pid_t::try_from(started.id()).unwrap_or(pid_t::MAX);
    if let Some(terminal) = &mut terminal {
        terminal.is_for(pid);
    }
    // Not yet reaped, so the number is certain to be the job's, and the inode need not be compared.
    let id = GroupId { pid, inode: 0 };
    let group = Group::open(id).unwrap_or_else(|_| Group::by_number(id));
    Ok(Job { group })
}

fn why(error: io::Error) -> SpawnError {
    match error.raw_os_error() {
        Some(NOT_ANNOUNCED) => SpawnError::NotAnnounced(io::Error::from(io::ErrorKind::BrokenPipe)),
        Some(TOO_LATE) => SpawnError::TooLate,
        // The file was there a moment ago, so it is the interpreter behind "#!" that is missing, which bash, dash and
        // env(1) call "not found" too.
        Some(libc::ENOENT) => SpawnError::NoProgram(NoProgram::NoInterpreter),
        Some(
            libc::EACCES
            | libc::EPERM
            | libc::ENOEXEC
            | libc::ETXTBSY
            | libc::ELOOP
            | libc::ENOTDIR
            | libc::ELIBBAD
            | libc::EINVAL
            | libc::E2BIG
            | libc::ENAMETOOLONG
            | libc::EISDIR,
        ) => SpawnError::NoProgram(NoProgram::CannotExecute(error)),
        // std refuses an argument with a NUL inside; the system could not have passed it to us.
        Some(_) | None => SpawnError::Failed(error),
    }
}

/// The child's steps between fork and exec, in an order that loses and invents no signal.
fn prepare(
    environment: &Environment,
    announce: Option<&Announce>,
    not_after: BootTime,
    lender: Option<&Lender>,
) -> io::Result<()> {
    // Nothing is delivered until all is set up, least of all to a handler of ours, which the child still has.
    block_all()?;
    setpgid(Pid::from_raw(0), Pid::from_raw(0))?;
    // From here on what was sent to our old group does not reach the job; what came before is thrown away.
    restore_dispositions();
    if let Some(announce) = announce {
        let group = GroupId::of_caller();
        // From the announcement on the watchdog would kill what is late, and call it a job that it has stopped.
        in_time(not_after)?;
        announce(group).map_err(|_| io::Error::from_raw_os_error(NOT_ANNOUNCED))?;
    }
    if let Some(lender) = lender {
        // A terminal that refuses is no reason not to run the job.
        let _: io::Result<()> = lender.give_to_caller();
    }
    environment.install();
    for stream in 0..=2 {
        // std has opened /dev/null in the place of a stream that was closed; the job finds it as `lease` did.
        if was_closed_at_start(stream) {
            // SAFETY: close(2) reads no memory, and nothing uses the descriptor between here and exec.
            unsafe { libc::close(stream.into()) };
        }
    }
    set_mask(SigSet::empty())?;
    // After the mask is restored: a stop signal that was pending until then has stopped the child there.
    in_time(not_after)
}

/// Whether the job may still start. Async-signal-safe.
fn in_time(not_after: BootTime) -> io::Result<()> {
    if BootTime::try_now().is_some_and(|now| now < not_after) {
        Ok(())
    } else {
        Err(io::Error::from_raw_os_error(TOO_LATE))
    }
}

unsafe extern "C" {
    /// environ(7).
    static mut environ: *const *const c_char;
}

/// The job's environment: this process's own, entry by entry and in its order, with a few set.
///
/// std's own way sorts the variables, and drops what it can't parse and what is there twice; a job is to see what it
/// would have seen without `lease`.
struct Environment {
    /// Keeps the entries that `pointers` points to.
    _added: Vec<CString>,
    pointers: Vec<*const c_char>,
}

// SAFETY: the pointers lead to memory that this value owns, or to this process's environment, which is never written to.
unsafe impl Send for Environment {}
// SAFETY: as above; nothing is changed through a shared reference.
unsafe impl Sync for Environment {}

impl Environment {
    fn with(set: &[(&str, &OsStr)]) -> io::Result<Self> {
        let set: HashMap<&[u8], &OsStr> = set.iter().map(|(k, v)| (k.as_bytes(), *v)).collect();
        let mut pointers = Vec::new();
        // SAFETY: nothing in this program changes the environment, so the array stays as it is; it ends with a null,
        // and so does each of its strings.
        unsafe {
            let mut entry = environ;
            while !entry.is_null() && !(*entry).is_null() {
                let text = CStr::from_ptr(*entry).to_bytes();
                let name = text.split(|b| *b == b'=').next().unwrap_or_default();
                if !(set.contains_key(name) && text.len() > name.len()) {
                    pointers.push(*entry);
                }
                entry = entry.add(1);
            }
        }
        let mut added = Vec::new();
        for (name, value) in &set {
            added.push(CString::new([name, &b"="[..], value.as_bytes()].concat())?);
        }
        added.sort();
        pointers.extend(added.iter().map(|entry| entry.as_ptr()));
        pointers.push(std::ptr::null());
        Ok(Self {
            _added: added,
            pointers,
        })
    }

    /// Makes it the environment that exec uses. In the child only.
    fn install(&self) {
        // SAFETY: the child has one thread, and the array outlives it: it lives in a copy of the parent's memory.
        unsafe { environ = self.pointers.as_ptr() };
    }
}
