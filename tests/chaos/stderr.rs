//! The messages of `lease` are not read. The job is not left unprotected because of that.

use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::os::fd::OwnedFd;
use std::process::{Child, Stdio};

use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::support::job::{Journal, steal, until_gone};
use crate::support::{key, shared, until};
use crate::{dead_in_time, deaf, until_it_ticks};

/// Where stderr leads.
#[derive(Clone, Copy, Debug)]
enum Nowhere {
    /// A disk without room.
    FullDisk,
    /// Closed by the process that started it.
    Closed,
    /// A full pipe without a reader.
    FullPipe,
    /// A pipe whose reader has gone.
    BrokenPipe,
}

const NOWHERE: [Nowhere; 4] = [
    Nowhere::FullDisk,
    Nowhere::Closed,
    Nowhere::FullPipe,
    Nowhere::BrokenPipe,
];

/// A run of a deaf job. The other returned values must be kept while it runs.
fn start(
    options: &[&str],
    key: &str,
    journal: &Journal,
    nowhere: Nowhere,
) -> (Ended, Option<OwnedFd>) {
    let call = deaf(options, key, journal).on(shared());
    let call = match nowhere {
        Nowhere::Closed => call.wrapped(["sh", "-c", "exec \"$@\" 2>&-", "sh"]),
        Nowhere::FullDisk | Nowhere::FullPipe | Nowhere::BrokenPipe => call,
    };
    let mut command = call.command();
    command.stdout(Stdio::null());
    let mut kept = None;
    match nowhere {
        Nowhere::Closed => {}
        Nowhere::FullDisk => {
            let full = OpenOptions::new()
                .write(true)
                .open("/dev/full")
                .expect("/dev/full");
            command.stderr(full);
        }
        Nowhere::FullPipe => {
            let (reader, writer) = std::io::pipe().expect("a pipe");
            let writer: OwnedFd = writer.into();
            fcntl(&writer, FcntlArg::F_SETFL(OFlag::O_NONBLOCK)).expect("fcntl");
            let mut file = File::from(writer);
            while file.write(&[b'x'; 4096]).is_ok() {}
            while file.write(b"x").is_ok() {}
            fcntl(&file, FcntlArg::F_SETFL(OFlag::empty())).expect("fcntl");
            command.stderr(file);
            kept = Some(reader.into());
        }
        Nowhere::BrokenPipe => {
            let (reader, writer) = std::io::pipe().expect("a pipe");
            drop(reader);
            command.stderr(writer);
        }
    }
    let child = Ended(command.spawn().expect("lease starts"));
    until_it_ticks(journal);
    (child, kept)
}

/// A child that is not left behind.
struct Ended(Child);

impl Ended {
    fn code(&mut self) -> Option<i32> {
        let status = until("lease ends", || self.0.try_wait().expect("wait"));
        status.code()
    }

    fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.0.id() as i32), signal).expect("a process that is not reaped");
    }
}

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_lost_lease_stops_the_job() {
    for nowhere in NOWHERE {
        let (key, journal) = (key(), Journal::new());
        let (mut lease, kept) = start(
            &[
                "-v",
                "--ttl",
                "15s",
                "--heartbeat",
                "300ms",
                "--grace",
                "500ms",
            ],
            &key,
            &journal,
            nowhere,
        );
        steal(shared(), &key);
        assert_eq!(lease.code(), Some(76), "{nowhere:?}");
        until_gone(&key);
        drop(kept);
    }
}

#[test]
fn a_frozen_lease_has_its_job_dead_in_time() {
    let runs = NOWHERE.map(|nowhere| {
        let (key, journal) = (key(), Journal::new());
        let (lease, kept) = start(
            &["-v", "--ttl", "5s", "--heartbeat", "300ms"],
            &key,
            &journal,
            nowhere,
        );
        lease.signal(Signal::SIGSTOP);
        (nowhere, key, journal, lease, kept)
    });
    for (nowhere, key, journal, mut lease, kept) in runs {
        until_gone(&key);
        dead_in_time(shared(), &key, &journal);
        lease.signal(Signal::SIGCONT);
        assert_eq!(lease.code(), Some(76), "{nowhere:?}");
        drop(kept);
    }
}

#[test]
fn a_killed_lease_leaves_nothing() {
    for nowhere in NOWHERE {
        let (key, journal) = (key(), Journal::new());
        let (mut lease, kept) = start(
            &["--ttl", "1m", "--grace", "500ms"],
            &key,
            &journal,
            nowhere,
        );
        let children = crate::support::proc::children(lease.0.id() as i32);
        lease.signal(Signal::SIGKILL);
        assert_eq!(lease.code(), None, "{nowhere:?}");
        until("the watchdog has ended", || {
            !children.iter().any(|child| child.is_alive())
        });
        until_gone(&key);
        dead_in_time(shared(), &key, &journal);
        drop(kept);
    }
}

#[test]
fn the_job_ends_as_it_would() {
    for nowhere in NOWHERE {
        let (key, journal) = (key(), Journal::new());
        let (mut lease, kept) = start(
            &["-v", "--ttl", "1m", "--grace", "300ms"],
            &key,
            &journal,
            nowhere,
        );
        for process in crate::support::job::of_job(&key) {
            process.signal(Signal::SIGKILL);
        }
        // By the job's own death; and the lease is free.
        assert_eq!(lease.code(), None, "{nowhere:?}");
        assert_eq!(crate::column(shared(), &key, "holder"), "");
        drop(kept);
    }
}
