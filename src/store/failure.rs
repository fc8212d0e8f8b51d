//! Why an operation failed, with a message that says what to do.

use std::fmt;

use postgres::error::{DbError, ErrorPosition};

use crate::fault::Fault;
use crate::text::one_line;

/// Whether a failed operation may have been applied nevertheless.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Applied {
    /// It was not and will not be: COMMIT was not sent, or the server refused it.
    No,
    /// Unknown: COMMIT was sent and got no answer. The same request by the same holder settles it.
    Unknown,
}

/// The failure of an operation. See [`Applied`] for whether it may have succeeded.
#[derive(Clone, Debug)]
pub struct Failure {
    /// The kind of failure.
    pub fault: Fault,
    /// Whether it may have been applied.
    pub applied: Applied,
    /// Whether the same request is likely to succeed if it is sent again at once.
    again: bool,
    /// Whether the server itself has reported it.
    answered: bool,
    /// What failed, and what to do, in lower case. Never contains a password.
    message: String,
}

impl Failure {
    /// A failure after which nothing was applied.
    #[must_use]
    pub fn new(fault: Fault, message: impl Into<String>) -> Self {
        Self {
            fault,
            applied: Applied::No,
            again: fault == Fault::Conflict,
            answered: false,
            message: message.into(),
        }
    }

    /// The same failure, with the outcome unknown.
    #[must_use]
    pub(crate) fn unknown(mut self) -> Self {
        self.applied = Applied::Unknown;
        self
    }

    /// The same failure, of an earlier step: the operation itself was not applied.
    #[must_use]
    pub(super) fn certain(mut self) -> Self {
        self.applied = Applied::No;
        self
    }

    /// The same failure, after the connection was established. The server was reachable a moment ago, so if the connection
    /// broke, another one is worth a try.
    #[must_use]
    pub(super) fn of_a_made_connection(mut self) -> Self {
        self.again |= matches!(self.fault, Fault::Unreachable | Fault::Down);
        self
    }

    /// The same failure, of the first request on a connection. PgBouncer accepts the login and closes the connection at
    /// BEGIN if it is in statement mode, or if it has found no server in time. The client crate loses its message.
    #[must_use]
    pub(super) fn at_the_first_request(self) -> Self {
        if self.fault == Fault::Unreachable {
            return self.advise(
                "if there is a pooler, it must be in transaction or session mode, and its server must be up",
            );
        }
        self
    }

    /// Whether no server has answered: it was unreachable or silent. A server that got a COMMIT has answered before.
    #[must_use]
    pub fn is_silence(&self) -> bool {
        !self.answered
            && self.applied == Applied::No
            && matches!(self.fault, Fault::Unreachable | Fault::Timeout)
    }

    /// Whether the server has refused, so that asking again changes nothing.
    #[must_use]
    pub const fn is_refused(&self) -> bool {
        matches!(self.applied, Applied::No) && !self.fault.is_transient()
    }

    /// Whether the same request can succeed, or settle an unknown outcome, if it is sent again at once.
    #[must_use]
    pub(super) fn is_worth_asking_again(&self) -> bool {
        self.again || self.applied == Applied::Unknown
    }

    /// The same failure, with advice after the message.
    #[must_use]
    pub(super) fn advise(mut self, advice: &str) -> Self {
        self.message = format!("{} ({advice})", self.message);
        self
    }

    /// The failure that an error of the client crate means.
    pub(super) fn from_postgres(error: &postgres::Error) -> Self {
        let Some(db) = error.as_db_error() else {
            let message = if error.is_closed() {
                "the connection was closed by the server or by a proxy on the way".to_owned()
            } else {
                format!("the connection broke: {}", innermost(error))
            };
            return Self::new(Fault::Unreachable, message);
        };
        let code = db.code().code();
        let mut fault = Fault::of_sqlstate(code, db.routine());
        let mut message = db.message().to_owned();
        if let Some(detail) = db.detail() {
            message = format!("{message}: {detail}");
        }
        // An error with a context comes from a trigger, and is not about our fence.
        let elsewhere = code == "22003" && db.where_().is_some();
        let mut advice = advice(code, fault)
            .filter(|_| !elsewhere)
            .map(str::to_owned);
        if let Some(place) = inside(db) {
            fault = Fault::Refused;
            advice = Some(format!(
                "the error comes from a trigger, a policy or another object of the table: {place}"
            ));
        }
        if is_row_security(db) {
            fault = Fault::Refused;
            advice = Some(ROW_SECURITY.to_owned());
        }
        let mut failure = Self::new(fault, one_line(&message));
        // This machine was slow between two statements, and the server gave up the transaction (25P03).
        failure.again |= code == "25P03";
        failure.answered = true;
        match advice {
            Some(advice) => failure.advise(&advice),
            None => failure,
        }
    }

    /// The failure that an error in an install script means. The server's hint comes from the script itself, so it is the
    /// advice.
    pub(super) fn of_install(error: &postgres::Error) -> Self {
        let Some(db) = error.as_db_error() else {
            return Self::from_postgres(error);
        };
        let code = db.code().code();
        let mut failure = Self::new(
            Fault::of_sqlstate(code, db.routine()),
            one_line(db.message()),
        );
        failure.answered = true;
        let own = match code {
            "42501" => Some(
                "run it as a role that may create tables and functions there, and that owns the existing ones",
            ),
            "55P03" => Some("another session holds a lock on it: see pg_locks"),
            _ => (failure.fault == Fault::ReadOnly).then_some(TO_THE_PRIMARY),
        };
        match db.hint().or(own) {
            Some(advice) => failure.advise(&one_line(advice)),
            None => failure,
        }
    }
}

/// The place of an error about a missing name or privilege (class 42), if it is not in our own statement. It can be in a
/// trigger, in a function of a policy or a view, or on a foreign server. Such an error says nothing about the lease table,
/// which may exist and be correct.
///
/// If a name in our own statement is missing, the server gives its position (the `P` field). The only relation in our
/// statements that can be missing is the lease table. For an error elsewhere, the server gives a context (the `W` field).
fn inside(db: &DbError) -> Option<&str> {
    let code = db.code().code();
    let ours = matches!(db.position(), Some(ErrorPosition::Original(_)));
    if ours || !code.starts_with("42") {
        return None;
    }
    let unnamed = (code == "42P01").then_some("the server does not say where");
    db.where_().or(unnamed)
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Failure {}

const TO_THE_PRIMARY: &str = "this is a standby or a read-only role: connect to the primary, or list all servers and add target_session_attrs=read-write";

const ROW_SECURITY: &str = "row security on the table refuses the row: its owner must add a policy that lets this role read and write every row, or run ALTER TABLE ... DISABLE ROW LEVEL SECURITY";

/// Whether a policy has refused the row. The server uses the code of a missing privilege for this. Only the name of the
/// server's function tells the two apart.
fn is_row_security(db: &DbError) -> bool {
    db.code().code() == "42501" && db.routine() == Some("ExecWithCheckOptions")
}

/// What to do, if the message of the server does not say it.
fn advice(code: &str, fault: Fault) -> Option<&'static str> {
    match code {
        "42P01" => return Some("`lease init` creates the table"),
        "55P03" => {
            return Some("another session holds a lock on the row or the table: see pg_locks");
        }
        "57014" => {
            return Some("it took longer than --db-timeout allows, or somebody canceled it");
        }
        "3F000" => return Some("create the schema first, or name another with --table"),
        "0A000" => {
            return Some(
                "a partitioned table or a view can't hold leases: `lease init --print` shows the table, --table names another one",
            );
        }
        "42703" | "42P10" | "42804" | "42883" | "42809" => {
            return Some(
                "the table is not a lease table: see `lease init --print`, or name another with --table",
            );
        }
        "22003" => {
            return Some(
                "the fence cannot grow: its column must be a bigint; if it is one, somebody wrote the largest possible fence: find out who, DELETE the row, and make every resource forget that fence, see lease-fencing(7)",
            );
        }
        _ => {}
    }
    match fault {
        Fault::ReadOnly => Some(TO_THE_PRIMARY),
        Fault::Conflict
        | Fault::Unreachable
        | Fault::Timeout
        | Fault::Busy
        | Fault::Down
        | Fault::NoTable
        | Fault::Denied
        | Fault::Login
        | Fault::Refused => None,
    }
}

fn innermost(error: &dyn std::error::Error) -> String {
    let mut last = error;
    while let Some(source) = last.source() {
        last = source;
    }
    last.to_string()
}
