//! Why the database did not do what it was asked: SQLSTATEs told apart, in one place.
//!
//! The codes are those of PostgreSQL's documentation, appendix A. Messages are never matched: they are
//! translated by the server (`lc_messages`) and reworded between versions.

/// What kind of failure it was, and so what is worth doing about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Serialization failure or deadlock (40001, 40P01): the same statement may succeed at once.
    Conflict,
    /// No server there, or the connection broke (08xxx, and every failure of the socket).
    Unreachable,
    /// Nothing came back in time: our own limit, `statement_timeout` (57014), `lock_timeout` (55P03),
    /// or one of the idle limits (25P03, 57P05).
    Timeout,
    /// The server is there but has no room: too many connections (53300), disk full (53100), out of memory (53200).
    Busy,
    /// The server is starting, stopping or recovering (57P01, 57P02, 57P03, 58xxx).
    Down,
    /// The server takes no writes (25006): a standby, or a read-only role.
    ReadOnly,
    /// The lease table does not exist (42P01).
    NoTable,
    /// The role lacks a privilege (42501).
    Denied,
    /// The server knows the role, the password or the database differently (28xxx, 3D000).
    Login,
    /// Anything else that the server or TLS refuses; asking again changes nothing.
    Refused,
}

impl Fault {
    /// The kind that belongs to a five-character SQLSTATE.
    #[must_use]
    pub fn of_sqlstate(code: &str) -> Self {
        match code {
            "40001" | "40P01" => Self::Conflict,
            "57014" | "55P03" | "25P03" | "25P04" | "57P05" => Self::Timeout,
            "57P01" | "57P02" | "57P03" => Self::Down,
            "25006" => Self::ReadOnly,
            "42P01" => Self::NoTable,
            "42501" => Self::Denied,
            "3D000" => Self::Login,
            _ if code.starts_with("08") => Self::Unreachable,
            _ if code.starts_with("53") => Self::Busy,
            _ if code.starts_with("58") => Self::Down,
            _ if code.starts_with("28") => Self::Login,
            _ => Self::Refused,
        }
    }

    /// Whether the same request may succeed later without anybody changing a setting.
    ///
    /// A read-only server is transient: after a failover the name points to the new primary.
    #[must_use]
    pub const fn is_transient(self) -> bool {
        match self {
            Self::Conflict
            | Self::Unreachable
            | Self::Timeout
            | Self::Busy
            | Self::Down
            | Self::ReadOnly => true,
            Self::NoTable | Self::Denied | Self::Login | Self::Refused => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_sqlstate_that_the_design_names_has_its_kind() {
        for (code, kind) in [
            ("40001", Fault::Conflict),
            ("40P01", Fault::Conflict),
            ("08P01", Fault::Unreachable),
            ("08006", Fault::Unreachable),
            ("53300", Fault::Busy),
            ("53100", Fault::Busy),
            ("57P01", Fault::Down),
            ("57P03", Fault::Down),
            ("25006", Fault::ReadOnly),
            ("57014", Fault::Timeout),
            ("55P03", Fault::Timeout),
            ("25P03", Fault::Timeout),
            ("42P01", Fault::NoTable),
            ("42501", Fault::Denied),
            ("28P01", Fault::Login),
            ("3D000", Fault::Login),
            ("23514", Fault::Refused),
        ] {
            assert_eq!(Fault::of_sqlstate(code), kind, "{code}");
        }
    }

    #[test]
    fn a_wrong_password_and_a_missing_grant_are_not_worth_a_second_try() {
        assert!(!Fault::Login.is_transient());
        assert!(!Fault::Denied.is_transient());
        assert!(Fault::Down.is_transient());
        assert!(Fault::ReadOnly.is_transient());
    }
}
