//! One file for each verb: arguments, then store, then outcome, then output, then exit code. No verb imports another one.

pub mod claim;
pub mod history;
pub mod init;
pub mod purge;
pub mod release;
pub mod renew;
pub mod run;
pub mod status;

use std::env;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;

use crate::cli::{Common, TermFormat};
use crate::connect::Settings;
use crate::exit::Exit;
use crate::job::Ended;
use crate::lease::{Fence, Grant, Holder, Invalid, Key, Loss, Term};
use crate::output::{self, Level, Message, StderrWriter, Verbosity};
use crate::record::Said;
use crate::store::{Applied, Failure, Reporter, Store};
use crate::supervise::Outcome;
use crate::text::os_error_text;
use crate::timing::{self, Ttl};

/// The events that a store reports: a setting to look at, a step, and a history that can't be written.
const SETTINGS: &str = "settings";
const DATABASE: &str = "database";
const HISTORY: &str = "history_unwritten";

/// How the process ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// With a code of the table.
    Exit(Exit),
    /// With a code that is not from the table: the job's, or the one given with `--conflict-exit-code`.
    Code(u8),
    /// In the same way as the job, or by the signal that ended a wait.
    As {
        /// How the job or the wait ended.
        ended: Ended,
        /// Whether this process's whole group gets the signal; see [`crate::process::die_as`].
        whole_group: bool,
    },
}

impl Ending {
    /// How a run, or a claim without a grant, ends. `conflict` is the exit code if another holder has the lease.
    #[must_use]
    pub const fn of(outcome: &Outcome, conflict: u8) -> Self {
        match *outcome {
            Outcome::Granted(_) => Self::Exit(Exit::Done),
            Outcome::AsJob { ended, whole_group } => Self::As { ended, whole_group },
            Outcome::Interrupted(signal) => Self::As {
                ended: Ended::Signal(signal),
                whole_group: false,
            },
            Outcome::Conflict => Self::Code(conflict),
            Outcome::Unavailable => Self::Exit(Exit::Unavailable),
            Outcome::Lost => Self::Exit(Exit::Lost),
            Outcome::Failed => Self::Exit(Exit::Failed),
            Outcome::CannotExecute => Self::Exit(Exit::CannotExecute),
            Outcome::NotFound => Self::Exit(Exit::NotFound),
        }
    }
}

/// How much is written to stderr.
#[must_use]
pub const fn verbosity(common: &Common) -> Verbosity {
    Verbosity {
        quiet: common.quiet,
        verbose: common.verbose,
    }
}

/// The store that the options name. With `--verbose` it reports its steps. Nothing is connected yet.
///
/// # Errors
/// An [`Invalid`] option, or settings that can't be used.
pub fn store(common: &Common) -> anyhow::Result<Store> {
    let limit = timing::db_timeout(common.db_timeout)?;
    let settings = Settings::resolve(common.database_url.as_deref())?;
    let verbosity = verbosity(common);
    for warning in settings.warnings() {
        verbosity.write(&Message::new(Level::Info, SETTINGS, warning));
    }
    Ok(Store::new(
        settings,
        common.table.clone(),
        limit,
        Reporter {
            step: Arc::new(move |step| {
                verbosity.write(&Message::new(Level::Step, DATABASE, step));
            }),
            warning: Arc::new(move |warning| {
                verbosity.write(&Message::new(Level::Info, HISTORY, warning));
            }),
        },
    )
    .saying(Said {
        host: hostname::get()
            .ok()
            .map(|host| host.to_string_lossy().into_owned())
            .filter(|host| !host.is_empty()),
        pid: std::process::id(),
        ..Said::default()
    }))
}

/// Where the messages of operations go while `stderr` writes.
#[must_use]
pub fn reporter(stderr: &StderrWriter) -> Reporter {
    Reporter {
        step: Arc::new(stderr.reporter(Level::Step, DATABASE)),
        warning: Arc::new(stderr.reporter(Level::Info, HISTORY)),
    }
}

/// The new identity of this process.
///
/// # Errors
/// A name that can't be valid.
pub fn fresh_holder(name: Option<&str>) -> anyhow::Result<Holder> {
    if let Some(name) = name {
        return Ok(Holder::fresh(name).map_err(|e| Invalid::new(format!("--name: {e}")))?);
    }
    let host = hostname::get().context("cannot read the host name (give a name with --name)")?;
    let host = host.to_string_lossy();
    let host = if host.is_empty() {
        "localhost".into()
    } else {
        host
    };
    Ok(Holder::fresh(&host)?)
}

/// The term that the arguments name. The environment supplies what is missing, as `lease claim` prints it.
///
/// # Errors
/// [`Invalid`], when a part is missing or can't be valid.
pub fn term(
    key: Option<Key>,
    holder: Option<Holder>,
    fence: Option<Fence>,
) -> Result<Term, Invalid> {
    Ok(Term {
        key: or_variable(key, "LEASE_KEY", "a KEY")?,
        holder: or_variable(holder, "LEASE_HOLDER", "--holder")?,
        fence: or_variable(fence, "FENCE", "--fence")?,
    })
}

fn or_variable<T: std::str::FromStr<Err = Invalid>>(
    given: Option<T>,
    variable: &str,
    option: &str,
) -> Result<T, Invalid> {
    if let Some(given) = given {
        return Ok(given);
    }
    let instead =
        format!("give {option}, or claim first: term=$(lease claim KEY) && eval \"$term\"");
    match env::var(variable) {
        Ok(text) if text.is_empty() => {
            Err(Invalid::new(format!("{variable} is empty ({instead})")))
        }
        Ok(text) => text
            .parse()
            .map_err(|e| Invalid::new(format!("{variable}: {e}"))),
        Err(env::VarError::NotPresent) => {
            Err(Invalid::new(format!("{variable} is not set ({instead})")))
        }
        Err(env::VarError::NotUnicode(_)) => Err(Invalid::new(format!(
            "{variable} is not UTF-8 (give {option})"
        ))),
    }
}

/// The holder of the run that started this process, if that run holds this key. Waiting for it would never end, because it
/// waits for this process.
#[must_use]
pub fn outer_holder(key: &Key) -> Option<String> {
    let same_key = env::var("LEASE_KEY").is_ok_and(|outer| outer == key.as_str());
    env::var("LEASE_HOLDER").ok().filter(|_| same_key)
}

/// Why a term is lost, and who has evicted its holder if the history tells.
#[must_use]
pub fn why_lost(store: &Store, term: &Term, loss: &Loss) -> String {
    let culprit = loss
        .may_be_an_eviction()
        .then(|| store.evicted_by(term))
        .flatten();
    output::loss_by(loss, culprit.as_ref())
}

/// A term as `claim` and `renew` print it. `left` is the time until its expiry. `is_new` is for a claim: whether it began
/// the term.
#[must_use]
pub fn term_text(
    grant: &Grant,
    format: TermFormat,
    left: Duration,
    is_new: Option<bool>,
) -> String {
    match format {
        TermFormat::Shell => output::term_shell(grant, is_new),
        TermFormat::Json => output::term_json(grant, left, is_new),
    }
}

/// Prints data. `false` if the reader has closed the pipe, as in `lease status | head -1`. This is not an error.
///
/// # Errors
/// When it can't be written.
pub fn print_or_leave(data: &str) -> anyhow::Result<bool> {
    printed_or_left(output::print(data))
}

/// The same for what was printed already.
///
/// # Errors
/// When it couldn't be written.
pub fn printed_or_left(printed: std::io::Result<()>) -> anyhow::Result<bool> {
    match printed {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(anyhow::anyhow!(
            "cannot write to stdout: {}",
            os_error_text(&error)
        )),
    }
}

/// The message for a failed operation. If nothing was applied, it begins with `cannot`, such as `cannot renew k`. If the
/// outcome is unknown, it names `was`, such as `k was renewed`, and says with `doubt` what to do. The text is complete: a
/// chain of causes would repeat it.
#[must_use]
pub fn failed(cannot: &str, was: &str, failure: &Failure, doubt: &str) -> ReportedError {
    let text = match failure.applied {
        Applied::No => format!("{cannot}: {failure}"),
        Applied::Unknown => format!("it is unknown whether {was}: {failure}; {doubt}"),
    };
    ReportedError {
        exit: Exit::Unavailable,
        text,
    }
}

/// The message for a lease that had almost expired when it could be printed.
#[must_use]
pub fn too_slow(what: &str, ttl: Ttl, fate: &str) -> ReportedError {
    ReportedError {
        exit: Exit::Unavailable,
        text: format!(
            "{what}: the database is too slow for --ttl {}, or lease was stopped; the lease had almost expired before it was printed (give a longer --ttl); {fate}",
            timing::human(ttl.get()),
        ),
    }
}

/// An error whose text is complete, and the exit code that belongs to it.
#[derive(Debug)]
pub struct ReportedError {
    /// How the process ends.
    pub exit: Exit,
    text: String,
}

impl std::fmt::Display for ReportedError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for ReportedError {}
