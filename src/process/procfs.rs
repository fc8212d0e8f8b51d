//! What /proc says about processes: who is in a group, who is stopped, whose group is orphaned.

use std::fs;

use libc::pid_t;
use nix::unistd::{Pid, getpgid, getpgrp, getppid, getsid};

/// A line of /proc/PID/stat, as far as it is needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stat {
    state: u8,
    parent: pid_t,
    group: pid_t,
    session: pid_t,
}

impl Stat {
    fn of(pid: pid_t) -> Option<Self> {
        Self::parse(&fs::read(format!("/proc/{pid}/stat")).ok()?)
    }

    /// proc_pid_stat(5). The name in parentheses may itself hold spaces, parentheses and bytes that are not UTF-8, so
    /// reading begins behind the last one.
    fn parse(line: &[u8]) -> Option<Self> {
        let behind = line.iter().rposition(|b| *b == b')')?;
        let rest = std::str::from_utf8(line.get(behind + 1..)?).ok()?;
        let mut fields = rest.split_ascii_whitespace();
        Some(Self {
            state: *fields.next()?.as_bytes().first()?,
            parent: fields.next()?.parse().ok()?,
            group: fields.next()?.parse().ok()?,
            session: fields.next()?.parse().ok()?,
        })
    }

    const fn is_dead(self) -> bool {
        matches!(self.state, b'Z' | b'X')
    }
}

/// Every process that /proc shows; `None` if it shows none, not even this one.
fn all() -> Option<Vec<Stat>> {
    let found: Vec<Stat> = fs::read_dir("/proc")
        .ok()?
        .flatten()
        .filter_map(|entry| Stat::of(entry.file_name().to_str()?.parse().ok()?))
        .collect();
    (!found.is_empty()).then_some(found)
}

/// How many processes of this group are alive, zombies left out; `None` if /proc can't tell.
pub(super) fn live_members(group: pid_t) -> Option<usize> {
    let all = all()?;
    Some(
        all.iter()
            .filter(|p| p.group == group && !p.is_dead())
            .count(),
    )
}

/// Whether the process runs or sleeps at this moment; false if it is stopped or dead, or /proc can't tell.
pub(super) fn is_running(pid: pid_t) -> bool {
    Stat::of(pid).is_some_and(|p| matches!(p.state, b'R' | b'S' | b'D'))
}

/// Whether the group of this process is orphaned: none of its members has a parent in another group of the same session
/// (POSIX, 3.264), so that nobody is there to continue it. The kernel then ignores TSTP, TTIN and TTOU for it. init does
/// not count as such a parent, for the kernel neither.
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
    // The parent is a script in the same group, perhaps; its own parent may be the shell that continues both.
    !all().unwrap_or_default().iter().any(|p| {
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
        let stat = Stat::parse(b"71 (a) S 9 (b) Z 1 4711 4712 0 -1").expect("a line");
        assert_eq!(
            (stat.state, stat.parent, stat.group, stat.session),
            (b'Z', 1, 4711, 4712)
        );
        assert!(Stat::parse(b"71 (\xff\xfe) R 1 12 12 0").is_some());
        assert_eq!(Stat::parse(b"71 (x) R 1"), None);
        assert_eq!(Stat::parse(b""), None);
    }

    #[test]
    fn somebody_is_always_in_the_group_of_the_caller_and_it_runs() {
        let own = getpgrp().as_raw();
        assert!(live_members(own).expect("/proc is there") >= 1);
        assert!(is_running(nix::unistd::getpid().as_raw()));
    }
}
