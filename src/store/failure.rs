//! Why an operation did not succeed, in words that say what to do about it.

use std::fmt;

use postgres::error::{DbError, ErrorPosition};

use crate::fault::Fault;
use crate::text::one_line;

/// Whether what was asked for may have happened all the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Applied {
    /// It has not happened and will not: COMMIT was not sent.
    No,
    /// COMMIT was sent and nothing came back. Asking again as the same holder settles it.
    Unknown,
}

/// An operation that the database did not do, or may not have done.
#[derive(Clone, Debug)]
pub struct Failure {
    /// What kind of failure.
    pub fault: Fault,
    /// Whether it may have been applied.
    pub applied: Applied,
    /// Whether the same request may well succeed at once.
    again: bool,
    /// Whether the server itself has said so.
    answered: bool,
    /// A lowercase fragment: what, and then what to do about it. Never a password.
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

    /// The same failure, of a step before what was asked for, which has not happened.
    #[must_use]
    pub(super) fn certain(mut self) -> Self {
        self.applied = Applied::No;
        self
    }

    /// The same failure, of a connection that had been made: the server was there a moment ago, so if it was the
    /// connection that broke, another one may do.
    #[must_use]
    pub(super) fn of_a_made_connection(mut self) -> Self {
        self.again |= matches!(self.fault, Fault::Unreachable | Fault::Down);
        self
    }

    /// The same failure, of the first request on a connection. PgBouncer in statement mode takes the login and hangs up at
    /// BEGIN, and so does one that has found no server in time; the client crate loses the words that it says.
    #[must_use]
    pub(super) fn at_the_first_word(self) -> Self {
        if self.fault == Fault::Unreachable {
            return self.advise(
                "if there is a pooler, it must be in transaction or session mode, and its server must be up",
            );
        }
        self
    }

    /// Whether there was no server to be heard: it was not reached, or said nothing in time. One that was sent a COMMIT had
    /// answered before.
    #[must_use]
    pub fn is_silence(&self) -> bool {
        !self.answered
            && self.applied == Applied::No
            && matches!(self.fault, Fault::Unreachable | Fault::Timeout)
    }

    /// Whether asking again at once can settle it or succeed.
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

    /// What an error of the client means.
    pub(super) fn from_postgres(error: &postgres::Error) -> Self {
        let Some(db) = error.as_db_error() else {
            let message = if error.is_closed() {
                "the connection was closed by the server or by something between".to_owned()
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
        // What is computed in a trigger comes with a context, and is no fence of ours.
        let elsewhere = code == "22003" && db.where_().is_some();
        let mut advice = advice(code, fault)
            .filter(|_| !elsewhere)
            .map(str::to_owned);
        if let Some(place) = inside(db) {
            fault = Fault::Refused;
            advice = Some(format!(
                "the error comes from a trigger, a policy or the like on the table: {place}"
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

    /// What an error means of a script that installs something: the server's own hint is the advice, since the script has
    /// written it.
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

/// Where a name that is missing, or a privilege (class 42), is not meant by our own statement, but by something that it
/// sets off: a trigger, a function in a policy or a view, a foreign server. The lease table may be there and well-made, so
/// nothing must be concluded about it.
///
/// A name that the server does not find in our own text it points to (the `P` field), and no statement of ours names a
/// relation that can be missing but the lease table. What it did not get from us it puts into a context (the `W` field).
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

const ROW_SECURITY: &str = "row security on the table keeps this role from the row: let its owner add a policy that lets the role read and write every row, or ALTER TABLE ... DISABLE ROW LEVEL SECURITY";

/// Whether a policy has refused the row. The server uses the code of a missing privilege for it, and no other field but the
/// name of its own function tells the two apart.
fn is_row_security(db: &DbError) -> bool {
    db.code().code() == "42501" && db.routine() == Some("ExecWithCheckOptions")
}

/// What a person can do about it, where the server's own message leaves them alone.
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
                "the fence cannot grow: its column must be a bigint; if it is one, somebody wrote the largest fence there is: find out who, DELETE the row, and make every resource forget that fence, see lease-fencing(7)",
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
