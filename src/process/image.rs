//! What a child executes, and its start without a copy of this process.
//!
//! fork(2) copies the page tables of this process, and later each page that one of the two writes to. For a child that only
//! executes a program, that is most of its cost. So the child shares the memory of its parent until the exec, and the
//! thread that has started it waits meanwhile: CLONE_VM and CLONE_VFORK, as in posix_spawn(3) of the C library. Its
//! descriptors and the dispositions of its signals are its own.

use std::collections::HashMap;
use std::ffi::{CStr, CString, OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::atomic::{AtomicI32, Ordering};

use libc::{c_char, c_int, c_void, pid_t};
use nix::errno::Errno;
use nix::sys::wait::waitpid;
use nix::unistd::Pid;

use super::inherited::{block_all, set_mask};

/// What a child has as its stack, in units of 16 bytes, besides the room for its arguments: execvpe(3) puts a copy of their
/// addresses there, if the shell must run the file.
const STACK: usize = (256 << 10) / 16;

/// A program, its arguments and its environment, as exec takes them.
pub(super) struct Image {
    file: CString,
    arguments: Strings,
    environment: Environment,
}

/// What the child needs from its parent, and its answer.
struct Child<'a> {
    image: &'a Image,
    prepare: &'a dyn Fn() -> io::Result<()>,
    /// Why it could not execute the program: an errno.
    error: AtomicI32,
}

impl Image {
    /// `command` begins with the name by which the program is called. `set` are variables that it gets in addition to those
    /// of this process. They replace variables of the same name.
    ///
    /// # Errors
    /// A NUL in one of the texts. The system cannot have passed one to us.
    pub(super) fn new(
        file: &Path,
        command: &[OsString],
        set: &[(&str, &OsStr)],
    ) -> io::Result<Self> {
        let texts = command.iter().map(|text| CString::new(text.as_bytes()));
        Ok(Self {
            file: CString::new(file.as_os_str().as_bytes())?,
            arguments: Strings::new(texts.collect::<Result<_, _>>()?),
            environment: Environment::with(set)?,
        })
    }

    /// Starts a child, which calls `prepare` and then executes the program. All signals are blocked in it. Returns once the
    /// program is executed.
    ///
    /// # Errors
    /// The error of `prepare`, or of the exec. Nothing is left of the child then.
    ///
    /// # Safety
    /// `prepare` shares the memory of this process, whose other threads go on. It must be async-signal-safe, and must not
    /// allocate or write to memory.
    pub(super) unsafe fn start(&self, prepare: &dyn Fn() -> io::Result<()>) -> io::Result<pid_t> {
        let child = Child {
            image: self,
            prepare,
            error: AtomicI32::new(0),
        };
        let room = STACK + self.arguments.pointers.len();
        let mut stack = Vec::<u128>::with_capacity(room);
        let top = stack.spare_capacity_mut().as_mut_ptr_range().end;
        // No handler may run in the child: it would write to the memory of this process.
        let before = block_all()?;
        // SAFETY: this thread waits until the child has executed its program or has ended, so the stack and `child` last as
        // long as the child uses them, and nobody else uses this thread's own memory meanwhile. The child's stack grows
        // down from `top`, which is aligned.
        let pid = unsafe {
            libc::clone(
                execute,
                top.cast(),
                libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD,
                (&raw const child).cast_mut().cast(),
            )
        };
        let error = io::Error::last_os_error();
        // None is expected, and the child may run.
        let _: io::Result<()> = set_mask(before);
        if pid < 0 {
            return Err(error);
        }
        match child.error.load(Ordering::SeqCst) {
            0 => Ok(pid),
            errno => {
                while waitpid(Pid::from_raw(pid), None) == Err(Errno::EINTR) {}
                Err(io::Error::from_raw_os_error(errno))
            }
        }
    }
}

/// The child, from its start to its exec. `extern "C"`, because a panic must abort and not unwind.
extern "C" fn execute(child: *mut c_void) -> c_int {
    // SAFETY: the parent passes a `Child`, and waits.
    let child = unsafe { &*child.cast::<Child<'_>>() };
    let image = child.image;
    let error = match (child.prepare)() {
        Ok(()) => {
            // SAFETY: the name ends with a NUL, and both arrays with a null. It contains a slash, so PATH is not read.
            unsafe {
                libc::execvpe(
                    image.file.as_ptr(),
                    image.arguments.pointers.as_ptr(),
                    image.environment.pointers.as_ptr(),
                );
            }
            io::Error::last_os_error()
        }
        Err(error) => error,
    };
    let errno = error.raw_os_error().unwrap_or(libc::EIO);
    child.error.store(errno, Ordering::SeqCst);
    // SAFETY: _exit(2) is always allowed, and runs nothing of the parent's.
    unsafe { libc::_exit(127) }
}

/// Texts as exec takes them.
struct Strings {
    /// Owns what `pointers` points to.
    _texts: Vec<CString>,
    pointers: Vec<*const c_char>,
}

impl Strings {
    fn new(texts: Vec<CString>) -> Self {
        let mut pointers: Vec<_> = texts.iter().map(|text| text.as_ptr()).collect();
        pointers.push(std::ptr::null());
        Self {
            _texts: texts,
            pointers,
        }
    }
}

unsafe extern "C" {
    /// environ(7).
    static environ: *const *const c_char;
}

/// The job's environment: this process's own entries, in their order, with a few variables set.
///
/// std's own way sorts the variables, and drops duplicates and entries that it cannot parse. But a job must see what it
/// would have seen without `lease`.
struct Environment {
    /// Owns the entries that `pointers` points to.
    _added: Vec<CString>,
    pointers: Vec<*const c_char>,
}

impl Environment {
    fn with(set: &[(&str, &OsStr)]) -> io::Result<Self> {
        let set: HashMap<&[u8], &OsStr> = set.iter().map(|(k, v)| (k.as_bytes(), *v)).collect();
        let mut pointers = Vec::new();
        // SAFETY: nothing in this program changes the environment, so the array stays valid. It ends with a null, and
        // so does each of its strings.
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
}
