//! What /proc says about processes: which are in a group, which are stopped, which group is orphaned.
//!
//! Every answer is about the past. If this process is stopped for a minute after it has read /proc:
//!
//! - [`members`] proves nothing, and no run ends because of it alone.
//! - [`is_running`] may report a job as stopped that has been continued meanwhile. The kernel then reports that change
//!   next. If `lease` has stopped itself by then, the job runs until its deadline or until `lease` is continued.
//! - [`own_group_is_orphaned`] may miss that the shell has just ended. `lease` then does not stop itself, and renews
//!   for a stopped job until one of the two gets a signal.

use std::collections::HashSet;
use std::fs;

use libc::pid_t;
use nix::unistd::{Pid, getpgid, getpgrp, getpid, getppid, getsid};

/// How often [`members`] lists the processes at most.
const LISTINGS: usize = 8;

/// The fields of /proc/PID/stat that are needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stat {
    state: u8,
    parent: pid_t,
    group: pid_t,
    session: pid_t,
    threads: u64,
    started: u64,
}

impl Stat {
    fn of(pid: pid_t) -> Option<Self> {
        Self::parse(&fs::read(format!("/proc/{pid}/stat")).ok()?)
    }

    /// proc_pid_stat(5). The name in parentheses may itself contain spaces, parentheses and bytes that are not UTF-8.
    /// So reading begins after the last parenthesis.
    fn parse(line: &[u8]) -> Option<Self> {
        let behind = line.iter().rposition(|b| *b == b')')?;
        let rest = std::str::from_utf8(line.get(behind + 1..)?).ok()?;
        let mut fields = rest.split_ascii_whitespace();
        Some(Self {
            state: *fields.next()?.as_bytes().first()?,
            parent: fields.next()?.parse().ok()?,
            group: fields.next()?.parse().ok()?,
            session: fields.next()?.parse().ok()?,
            // Fields 20 and 22.
            threads: fields.nth(13)?.parse().ok()?,
            started: fields.nth(1)?.parse().ok()?,
        })
    }

    /// Whether the process no longer acts. The state is that of its first thread, which can end before the others.
    const fn is_dead(self) -> bool {
        match self.state {
            b'Z' => self.threads <= 1,
            b'X' => true,
            _ => false,
        }
    }
}

/// The ids of all processes; `None` if there is no /proc, or if it belongs to another pid namespace, where the numbers
/// mean other processes.
fn listing() -> Option<Vec<pid_t>> {
    let own = getpid().to_string();
    if fs::read_link("/proc/self").ok()?.as_os_str() != own.as_str() {
        return None;
    }
    let entries = fs::read_dir("/proc").ok()?.flatten();
    Some(
        entries
            .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
            .collect(),
    )
}

/// The processes that were found in a group.
#[derive(Debug, Default)]
pub(super) struct Members {
    /// How many are alive.
    pub(super) alive: usize,
    /// When the newest of them was started, in clock ticks since boot.
    pub(super) newest: u64,
    pub(super) zombies: Vec<pid_t>,
}

/// The members of this group; `None` if /proc cannot tell.
///
/// The processes are listed first, and then read one by one. A process that has ended by then may have started another
/// one that is not in the list. So the list is repeated, and new processes are read, until none of the new ones could
/// have done this. This finds a group in which each process starts the next one and ends. It is not a proof, because a
/// machine can start processes faster than they are read.
pub(super) fn members(group: pid_t) -> Option<Members> {
    let mut members = Members::default();
    let mut seen = HashSet::new();
    for _ in 0..LISTINGS {
        let mut somebody_ended = false;
        for pid in listing()? {
            if !seen.insert(pid) {
                continue;
            }
            match Stat::of(pid) {
                Some(stat) if stat.group != group => {}
                Some(stat) if stat.is_dead() => {
                    members.zombies.push(pid);
                    somebody_ended = true;
                }
                Some(stat) => {
                    members.alive += 1;
                    members.newest = members.newest.max(stat.started);
                }
                None => somebody_ended = true,
            }
        }
        if members.alive > 0 || !somebody_ended {
            break;
        }
    }
    Some(members)
}

/// Whether the process runs or sleeps at this moment; false if it is stopped or dead, or if /proc cannot tell.
pub(super) fn is_running(pid: pid_t) -> bool {
    Stat::of(pid).is_some_and(|p| matches!(p.state, b'R' | b'S' | b'D'))
}

/// Whether the group of this process is orphaned: none of its members has a parent in another group of the same session
/// (POSIX, 3.264), so no shell could continue it. The kernel then ignores TSTP, TTIN and TTOU for it. Like the kernel,
/// this does not count init as a parent.
pub(super) fn own_group_is_orphaned() -> bool {
    let own = getpgrp();
    let session = getsid(None).ok();
    let can_continue = |parent: pid_t| {
        let parent = Pid::from_raw(parent);
        parent.as_raw() > 1
            && session.is_some()
            && getsid(Some(parent)).ok() == session
            && getpgid(Some(parent)).is_ok_and(|group| group != own)
    };
    if can_continue(getppid().as_raw()) {
        return false;
    }
    // The parent may be a script in the same group. The parent of the script may be the shell that continues both.
    let all = listing().unwrap_or_default();
    !all.into_iter().filter_map(Stat::of).any(|p| {
        p.group == own.as_raw()
            && Some(p.session) == session.map(Pid::as_raw)
            && !p.is_dead()
            && can_continue(p.parent)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_name_with_parentheses_and_spaces_does_not_confuse_the_fields() {
        let stat =
            Stat::parse(b"71 (a) S 9 (b) Z 1 4711 4712 0 -1 4 0 0 0 0 0 0 0 0 20 0 3 0 99 0")
                .expect("a line");
        assert_eq!(
            (stat.state, stat.parent, stat.group, stat.session),
            (b'Z', 1, 4711, 4712)
        );
        assert_eq!((stat.threads, stat.started), (3, 99));
        let odd = b"71 (\xff\xfe) R 1 12 12 0 -1 4 0 0 0 0 0 0 0 0 20 0 1 0 99 0";
        assert!(Stat::parse(odd).is_some());
        assert_eq!(Stat::parse(b"71 (x) R 1"), None);
        assert_eq!(Stat::parse(b""), None);
    }

    #[test]
    fn a_process_whose_first_thread_has_ended_is_alive_while_others_run() {
        let stat = |state, threads| Stat {
            state,
            parent: 1,
            group: 2,
            session: 3,
            threads,
            started: 4,
        };
        assert!(!stat(b'Z', 2).is_dead());
        assert!(stat(b'Z', 1).is_dead());
        assert!(!stat(b'R', 1).is_dead());
    }

    #[test]
    fn the_group_of_the_caller_has_a_member_that_runs() {
        let own = getpgrp().as_raw();
        let found = members(own).expect("/proc is there");
        assert!(found.alive >= 1 && found.newest > 0, "{found:?}");
        assert!(is_running(getpid().as_raw()));
    }
}
