//! File systems that are not the machine's own: files of /etc as a program is to see them, and a small disk to fill.

use std::fs;
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::{Lease, keeper, programs};

/// Words to put in front of a command, for [`Lease::wrapped`], so that it sees these texts in place of the files of
/// these paths. No other process does, and with the last process that sees them they are gone. The process stays the
/// same one.
///
/// `None` where that is not allowed. A test that gets it says so: `skip("mount namespaces")`.
pub fn instead_of(files: &[(&str, &str)]) -> Option<Vec<String>> {
    let mut script = String::new();
    for (path, text) in files {
        let name = Path::new(path).file_name()?.to_str()?;
        let file = keeper::dir("etc").join(name);
        fs::write(&file, text).expect("a file");
        script += &format!("mount --bind {} {path} && ", file.display());
    }
    in_a_namespace(&script)
}

/// As [`instead_of`], for a command that is to find /proc empty, as where none was mounted.
pub fn without_proc() -> Option<Vec<String>> {
    in_a_namespace("mount -t tmpfs none /proc && ")
}

fn in_a_namespace(mounts: &str) -> Option<Vec<String>> {
    let script = format!("{mounts}exec \"$@\"");
    let words = ["unshare", "-m", "sh", "-c", &script, "sh"].map(str::to_owned);
    let tried = Lease::program("true").wrapped(&words).output();
    (tried.code == Some(0)).then(|| words.to_vec())
}

/// A small disk of its own, for a server's files. Dropped, it is gone; drop the server before it.
#[derive(Debug)]
pub struct Disk(PathBuf);

impl Disk {
    /// Makes one of so many megabytes where the machine allows it. A test that gets `None` says so:
    /// `skip("the right to mount a file system")`.
    pub fn new(megabytes: u32) -> Option<Self> {
        // By this name the keeper finds it, should this process be killed.
        let disk = Self(keeper::dir("disk").join("of-a-test"));
        fs::create_dir(&disk.0).expect("a directory");
        let size = format!("size={megabytes}m");
        let mount = ["-t", "tmpfs", "-o", &size, "lease-test"];
        quietly(Command::new("mount").args(mount).arg(&disk.0)).then_some(disk)
    }

    /// A new directory on it, which belongs to the server's user.
    pub fn dir(&self, name: &str) -> PathBuf {
        let dir = self.0.join(name);
        fs::create_dir(&dir).expect("a directory");
        programs::give(&dir);
        dir
    }

    /// Leaves no room on it.
    pub fn fill(&self) {
        let mut file = fs::File::create(self.filler()).expect("a file");
        let full = loop {
            if let Err(error) = file.write_all(&[b'x'; 4096]) {
                break error;
            }
        };
        assert_eq!(full.kind(), ErrorKind::StorageFull, "{full}");
    }

    /// Makes room again.
    pub fn free(&self) {
        fs::remove_file(self.filler()).expect("a file that filled the disk");
    }

    fn filler(&self) -> PathBuf {
        self.0.join("filler")
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        quietly(Command::new("umount").arg("-l").arg(&self.0));
        let _ = fs::remove_dir(&self.0);
    }
}

fn quietly(command: &mut Command) -> bool {
    let command = command.stdin(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}
