//! The messages from `lease` to its watchdog. They have a fixed size, and each is written in one piece.

use crate::clock::BootTime;
use crate::process::GroupId;
use crate::supervise::WatchdogOrder;

/// A message to the watchdog.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Message {
    /// The job is about to start, as the leader of this group.
    Group(GroupId),
    /// The job must be dead by then, unless a later message says otherwise.
    Deadline(BootTime),
    /// `lease` is stopping the job itself. The watchdog must only send KILL at this time.
    KillAt(BootTime),
    /// Nothing of the job is left.
    Goodbye,
}

impl From<WatchdogOrder> for Message {
    fn from(order: WatchdogOrder) -> Self {
        match order {
            WatchdogOrder::Deadline(at) => Self::Deadline(at),
            WatchdogOrder::KillAt(at) => Self::KillAt(at),
        }
    }
}

/// The size of a message: three words of 64 bits in native byte order, since both ends are the same program.
pub(super) const SIZE: usize = 24;

// A write of up to PIPE_BUF bytes is atomic, and POSIX guarantees that PIPE_BUF is at least 512.
const _: () = assert!(SIZE <= 512);

const GROUP: u64 = 1;
const DEADLINE: u64 = 2;
const KILL_AT: u64 = 3;
const GOODBYE: u64 = 4;

impl Message {
    /// Async-signal-safe.
    pub(super) fn encode(self) -> [u8; SIZE] {
        let (tag, a, b) = match self {
            Self::Group(id) => (GROUP, u64::from(id.pid.unsigned_abs()), id.inode),
            Self::Deadline(at) => (DEADLINE, at.as_nanos(), 0),
            Self::KillAt(at) => (KILL_AT, at.as_nanos(), 0),
            Self::Goodbye => (GOODBYE, 0, 0),
        };
        let mut bytes = [0; SIZE];
        bytes[..8].copy_from_slice(&tag.to_ne_bytes());
        bytes[8..16].copy_from_slice(&a.to_ne_bytes());
        bytes[16..].copy_from_slice(&b.to_ne_bytes());
        bytes
    }

    /// `None` for bytes that are not a message. Async-signal-safe.
    pub(super) fn decode(bytes: [u8; SIZE]) -> Option<Self> {
        let word = |at: usize| {
            let mut word = [0; 8];
            word.copy_from_slice(&bytes[at..at + 8]);
            u64::from_ne_bytes(word)
        };
        let (a, b) = (word(8), word(16));
        match word(0) {
            GROUP => Some(Self::Group(GroupId {
                pid: i32::try_from(a).ok()?,
                inode: b,
            })),
            DEADLINE => Some(Self::Deadline(BootTime::from_nanos(a))),
            KILL_AT => Some(Self::KillAt(BootTime::from_nanos(a))),
            GOODBYE => Some(Self::Goodbye),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_message_arrives_as_it_was_sent() {
        let at = BootTime::from_nanos(u64::MAX - 7);
        for message in [
            Message::Group(GroupId {
                pid: i32::MAX,
                inode: u64::MAX,
            }),
            Message::Deadline(at),
            Message::KillAt(at),
            Message::Goodbye,
        ] {
            assert_eq!(Message::decode(message.encode()), Some(message));
        }
        assert_eq!(Message::decode([0; SIZE]), None);
    }
}
