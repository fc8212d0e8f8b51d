//! Starting the job.

use std::ffi::{OsStr, OsString};
use std::io;

use libc::pid_t;
use nix::sys::signal::SigSet;
use nix::unistd::{Pid, setpgid};

use super::group::{Group, GroupId};
use super::image::Image;
use super::inherited::{restore_dispositions, set_mask, was_closed_at_start};
use super::program::{self, NoProgram};
use super::terminal::{ChildTerminal, Terminal};
use crate::clock::BootTime;

/// Called in the child, before the exec, with the identity of the new group. It must be async-signal-safe, and must not
/// allocate or write to memory, because the child shares the memory of its parent.
pub type Announce = Box<dyn Fn(GroupId) -> io::Result<()> + Send + Sync>;

/// What to start, and how.
pub struct Launch<'a> {
    /// The program and its arguments, byte for byte. Never empty.
    pub command: &'a [OsString],
    /// Variables that the job gets in addition to those of this process. They replace variables of the same name.
    pub environment: &'a [(&'a str, &'a OsStr)],
    /// Called with the job's group before the job's first instruction runs. If it fails, the job is not started.
    pub announce: Option<Announce>,
    /// From this instant on, the job must not be started.
    pub not_after: BootTime,
    /// The terminal that the job's group gets, if this process has it now or gets it later.
    pub terminal: Option<&'a mut Terminal>,
}

/// Why the job could not be started.
#[derive(Debug)]
pub enum SpawnError {
    /// The program does not exist, or cannot be executed.
    NoProgram(NoProgram),
    /// The job's group could not be announced, so the job would have run without a watchdog. Nothing was started.
    NotAnnounced(io::Error),
    /// [`Launch::not_after`] had come before the program was executed. Nothing was started.
    TooLate,
    /// The process could not be created.
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

/// The steps of the child that have an error of their own. Only an errno is passed from the child to its parent, so each
/// step has one that no system call returns.
const NOT_ANNOUNCED: i32 = 4000;
const TOO_LATE: i32 = 4001;

/// Starts a job without a shell, in a process group of its own, with an empty signal mask and the signal dispositions
/// that this process was started with. Of the descriptors that this process has opened, the job gets none. Descriptors
/// that this process inherited are passed on, as env(1) does.
///
/// A file that the kernel does not know how to execute (a script without `#!`) is run by /bin/sh, as execvp(3), and so
/// env(1), nohup(1) and timeout(1), do.
///
/// The user at the terminal can stop the process in the microseconds between getting the terminal and executing the
/// program. This call then waits until the process is continued. The watchdog knows the group and ends this wait at the
/// deadline.
///
/// A start can take long if the machine is busy or suspended, or if this process is stopped. So the child itself checks
/// the clock, as its last step before the exec. Once the group is announced, the watchdog kills it at the deadline,
/// whether or not the exec has been reached. One case remains: an exec that takes longer than the time from `not_after`
/// to the deadline, and ends just before a watchdog that a busy machine runs late. The margin of the ttl covers that
/// moment. Without a watchdog, the exec itself has no time limit (page faults, a slow network file system).
///
/// # Errors
/// See [`SpawnError`]. After an error, nothing of the job is left.
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
    let image = Image::new(&file, command, environment).map_err(SpawnError::Failed)?;
    let for_child = terminal.as_mut().and_then(|t| t.for_child());
    let prepare = || prepare(announce.as_ref(), not_after, for_child.as_ref());
    // SAFETY: `prepare` makes system calls and reads its captured variables. It uses no lock, no heap and no environment,
    // and writes to no memory.
    let pid = unsafe { image.start(&prepare) }.map_err(|error| {
        // The child may have given it to its group, which no longer has a member.
        if let Some(terminal) = &terminal {
            terminal.take_back(false);
        }
        why(error)
    })?;
    if let Some(terminal) = &mut terminal {
        terminal.is_for(pid);
    }
    // It is not reaped yet, so the number is certainly the job's, and the inode need not be compared.
    let id = GroupId { pid, inode: 0 };
    let group = Group::open(id).unwrap_or_else(|_| Group::by_number(id));
    Ok(Job { group })
}

fn why(error: io::Error) -> SpawnError {
    match error.raw_os_error() {
        Some(NOT_ANNOUNCED) => SpawnError::NotAnnounced(io::Error::from(io::ErrorKind::BrokenPipe)),
        Some(TOO_LATE) => SpawnError::TooLate,
        // The file existed a moment ago, so the interpreter after "#!" is missing. bash, dash and env(1) report "not
        // found" too.
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
        Some(_) | None => SpawnError::Failed(error),
    }
}

/// The child's steps between its start and exec, in an order that neither loses nor repeats a signal.
///
/// No signal is delivered before everything is set up: [`Image::start`] has blocked all of them. Until then the child still
/// has the signal handlers of `lease`.
fn prepare(
    announce: Option<&Announce>,
    not_after: BootTime,
    terminal: Option<&ChildTerminal>,
) -> io::Result<()> {
    setpgid(Pid::from_raw(0), Pid::from_raw(0))?;
    // From here on, a signal to our old group does not reach the job. Signals that came before are discarded.
    restore_dispositions();
    if let Some(announce) = announce {
        let group = GroupId::of_caller();
        // Checked before the announcement, because after it the watchdog would kill a late child and report it as a job
        // that it stopped.
        in_time(not_after)?;
        announce(group).map_err(|_| io::Error::from_raw_os_error(NOT_ANNOUNCED))?;
    }
    if let Some(terminal) = terminal {
        // If the terminal refuses, the job still runs.
        let _: io::Result<()> = terminal.give_to_caller();
    }
    for stream in 0..=2 {
        // std has opened /dev/null in place of a closed stream. The job gets the stream closed, as `lease` did.
        if was_closed_at_start(stream) {
            // SAFETY: close(2) reads no memory, and nothing uses the descriptor between this call and the exec.
            unsafe { libc::close(stream.into()) };
        }
    }
    set_mask(SigSet::empty())?;
    // Checked after the mask is restored, because a pending stop signal may have stopped the child at that point.
    in_time(not_after)
}

/// Whether there is still time to start the job. Async-signal-safe.
fn in_time(not_after: BootTime) -> io::Result<()> {
    if BootTime::try_now().is_some_and(|now| now < not_after) {
        Ok(())
    } else {
        Err(io::Error::from_raw_os_error(TOO_LATE))
    }
}
