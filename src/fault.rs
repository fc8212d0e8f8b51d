//! Why a database operation failed: SQLSTATEs sorted into kinds, in one place.
//!
//! The codes are those of PostgreSQL's documentation, appendix A. Messages are never matched: they are
//! translated by the server (`lc_messages`) and reworded between versions.

/// The kind of a failure, which decides what to do about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Serialization failure or deadlock (40001, 40P01): the same statement may succeed at once.
    Conflict,
    /// The server cannot be reached, or the connection broke (08xxx, every failure of the socket, and a pooler's
    /// XX000).
    Unreachable,
    /// No answer in time: our own limit, `statement_timeout` (57014), `lock_timeout` (55P03), or one of the idle limits
    /// (25P03, 57P05).
    Timeout,
    /// The server is reachable but lacks resources: too many connections (53300), disk full (53100), out of memory
    /// (53200).
    Busy,
    /// The server is starting, stopping or recovering (57P01, 57P02, 57P03, 58xxx).
    Down,
    /// The server accepts no writes (25006): a standby, or a read-only role.
    ReadOnly,
    /// The lease table does not exist (42P01).
    NoTable,
    /// The role lacks a privilege (42501).
    Denied,
    /// The role, the password or the database is wrong (28xxx, 3D000).
    Login,
    /// Anything else that the server or TLS refuses. A retry would fail in the same way.
    Refused,
}

impl Fault {
    /// The kind that belongs to a five-character SQLSTATE.
    ///
    /// `raised_in` is the server's function that raised the error (the `R` field of the message), if it names one.
    /// PostgreSQL always does; PgBouncer, pgcat and Supavisor do not. Supavisor and pgcat report a broken connection to
    /// the server as XX000, and that is transient. PostgreSQL's own XX000 is an internal error, and a wait must not
    /// retry it for ever.
    #[must_use]
    pub fn of_sqlstate(code: &str, raised_in: Option<&str>) -> Self {
        match code {
            "XX000" if raised_in.is_none() => Self::Unreachable,
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

    /// The kind that belongs to an SQLSTATE in answer to a login.
    ///
    /// At login, the missing privilege is the one to log in. A database that does not accept connections (55000) is
    /// being restored or upgraded.
    #[must_use]
    pub fn at_login(code: &str, raised_in: Option<&str>) -> Self {
        match code {
            "42501" => Self::Login,
            "55000" => Self::Down,
            _ => Self::of_sqlstate(code, raised_in),
        }
    }

    /// Whether the same request may succeed later without a change of settings.
    ///
    /// A read-only server counts as transient: after a failover, the name points to the new primary.
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
            ("XX000", Fault::Unreachable),
            ("XX001", Fault::Refused),
            ("55000", Fault::Refused),
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
            assert_eq!(Fault::of_sqlstate(code, None), kind, "{code}");
        }
    }

    #[test]
    fn an_internal_error_is_transient_from_a_pooler_alone() {
        assert!(Fault::of_sqlstate("XX000", None).is_transient());
        assert!(!Fault::of_sqlstate("XX000", Some("elog_finish")).is_transient());
        assert!(Fault::of_sqlstate("08P01", None).is_transient());
    }

    #[test]
    fn a_login_that_a_database_does_not_accept_yet_may_succeed_later() {
        assert_eq!(
            Fault::at_login("55000", Some("CheckMyDatabase")),
            Fault::Down
        );
        assert_eq!(
            Fault::at_login("42501", Some("CheckMyDatabase")),
            Fault::Login
        );
        assert_eq!(Fault::at_login("XX000", None), Fault::Unreachable);
    }

    #[test]
    fn a_wrong_password_and_a_missing_grant_are_not_worth_a_second_try() {
        assert!(!Fault::Login.is_transient());
        assert!(!Fault::Denied.is_transient());
        assert!(Fault::Down.is_transient());
        assert!(Fault::ReadOnly.is_transient());
    }
}
