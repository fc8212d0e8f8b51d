//! What `history` reads.

use std::time::Duration;

use postgres::fallible_iterator::FallibleIterator as _;
use postgres::types::{ToSql, Type};
use postgres::{Client, Row as PgRow};

use super::columns::{Moment, cell, text};
use super::database::Store;
use super::failure::Failure;
use super::kept::Connection;
use super::operate::Plan;
use super::sink::Sink;
use super::statement::{micros, only_read, query};
use crate::connect::Access;
use crate::fault::Fault;
use crate::job::{Ended, Signal};
use crate::lease::{Fence, ServerTime, Term};
use crate::record::{Culprit, End, LastRun, Queries, Run};
use crate::sql::{self, Pattern};
use crate::timing::EVICTION_LOOK;

/// How many of the newest terms of a key are looked at, to find one that has just ended.
const TERMS_LOOKED_AT: i64 = 20;

/// Which terms are wanted.
#[derive(Clone, Debug, Default)]
pub struct Wanted {
    /// The keys; all, if there are none.
    pub patterns: Vec<Pattern>,
    /// Only terms that began within this time.
    pub since: Option<Duration>,
    /// Only terms that have failed.
    pub failed: bool,
    /// At most so many.
    pub limit: Option<i64>,
}

impl Store {
    /// The terms that are wanted, the newest first.
    ///
    /// # Errors
    /// When the database can't be reached, does not answer in time, or refuses; when there is no history.
    pub fn history(&self, wanted: &Wanted) -> Result<Vec<Run>, Failure> {
        self.history_into(wanted, Vec::new)
    }

    /// The same, one at a time. Each attempt begins with a new sink, so that none has a row twice.
    ///
    /// # Errors
    /// As [`Store::history`].
    pub fn history_into<S: Sink<Run>>(
        &self,
        wanted: &Wanted,
        sink: impl Fn() -> S + Clone + Send + 'static,
    ) -> Result<S, Failure> {
        let (plain, likes) = keys(&wanted.patterns);
        let (since, failed, limit) = (wanted.since.map(back), wanted.failed, wanted.limit);
        self.read_history(move |client, queries| {
            // Keys that are given in full are looked up; one with wildcards among them needs a search.
            let (statement, keys) = match (plain, likes) {
                (Some(plain), _) => (&queries.runs_of_keys, Some(plain)),
                (None, likes) => (&queries.runs, likes),
            };
            let parameters: [(&(dyn ToSql + Sync), Type); 4] = [
                (&keys, Type::TEXT_ARRAY),
                (&since, Type::INT8),
                (&failed, Type::BOOL),
                (&limit, Type::INT8),
            ];
            stream(client, statement, parameters, run, sink())
        })
    }

    /// The last run of each key that matches, by key, one at a time. Each attempt begins with a new sink.
    ///
    /// # Errors
    /// As [`Store::history`].
    pub fn last_runs_into<S: Sink<LastRun>>(
        &self,
        patterns: &[Pattern],
        sink: impl Fn() -> S + Clone + Send + 'static,
    ) -> Result<S, Failure> {
        let (plain, likes) = keys(patterns);
        self.read_history(move |client, queries| {
            let parameters: [(&(dyn ToSql + Sync), Type); 2] =
                [(&plain, Type::TEXT_ARRAY), (&likes, Type::TEXT_ARRAY)];
            stream(client, &queries.last, parameters, last_run, sink())
        })
    }

    /// Who has evicted the holder of this term. `None` if nobody has, and if the history does not tell: it may be missing,
    /// or closed to this role. It takes [`EVICTION_LOOK`] at most.
    #[must_use]
    pub fn evicted_by(&self, term: &Term) -> Option<Culprit> {
        let mut patient = self.clone();
        patient.limit = self.limit.min(EVICTION_LOOK);
        let wanted = Wanted {
            patterns: vec![Pattern::of_key(&term.key)],
            limit: Some(TERMS_LOOKED_AT),
            ..Wanted::default()
        };
        let runs = patient.history(&wanted).ok()?;
        let holder = term.holder.as_str();
        let run = runs
            .into_iter()
            .find(|run| run.fence == term.fence && run.holder == holder)?;
        match run.end {
            End::Forced(_, culprit) => Some(culprit),
            End::Running
            | End::Unknown
            | End::Released(..)
            | End::Expired(_)
            | End::Lost(..)
            | End::Deleted(..) => None,
        }
    }

    /// The terms within this time before now, by key and oldest first, one at a time, and the reading of the server's clock.
    /// The last term before that time comes with them. Each attempt begins with a new sink.
    ///
    /// # Errors
    /// As [`Store::history`].
    pub fn chart_into<S: Sink<Run>>(
        &self,
        patterns: &[Pattern],
        length: Duration,
        sink: impl Fn() -> S + Clone + Send + 'static,
    ) -> Result<(ServerTime, S), Failure> {
        let (plain, likes) = keys(patterns);
        let length = back(length);
        self.read_history(move |client, queries| {
            let parameters: [(&(dyn ToSql + Sync), Type); 3] = [
                (&plain, Type::TEXT_ARRAY),
                (&likes, Type::TEXT_ARRAY),
                (&length, Type::INT8),
            ];
            let (now, sink) = (None, sink());
            let charted = Charted { now, sink };
            let charted = stream(client, &queries.chart, parameters, charted_run, charted)?;
            let now = charted.now.ok_or_else(|| {
                Failure::new(Fault::Refused, "the server did not answer the time")
            })?;
            Ok((now, charted.sink))
        })
    }

    fn read_history<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Client, &Queries) -> Result<T, Failure> + Clone + Send + 'static,
    ) -> Result<T, Failure> {
        let queries = Queries::new(&self.table)
            .map_err(|reason| Failure::new(Fault::Refused, reason.to_string()))?;
        let plan = Plan {
            what: "history",
            access: Access::Read,
            limit: self.limit,
            idle: self.limit,
            says: false,
            repeatable: true,
            begins: true,
            connection: Connection::Own,
            keeps_half: false,
        };
        let answered = self.operate(&plan, None, || {
            let (queries, work) = (queries.clone(), work.clone());
            move |client: &mut Client| only_read(work(client, &queries)?)
        });
        let (role, shown) = (sql::quote(self.settings.user()), &queries.shown);
        match answered {
            Ok(sent) => Ok(sent.answer),
            Err(failure) if failure.fault == Fault::NoTable => Err(Failure::new(
                Fault::Refused,
                format!(
                    "{} or {shown} does not exist (`lease init` creates what is missing; if the lease table exists, its owner must run it)",
                    self.table.shown()
                ),
            )),
            Err(failure) if failure.fault == Fault::Denied => Err(failure.advise(&format!(
                "GRANT SELECT ON {}, {shown} TO {role}",
                self.table.shown()
            ))),
            Err(failure) => Err(failure),
        }
    }
}

/// Keys, if all are given in full, or else LIKE patterns; neither, if every key is meant.
pub(super) fn keys(patterns: &[Pattern]) -> (Option<Vec<String>>, Option<Vec<String>>) {
    let likes = likes(patterns);
    let plain = patterns.iter().map(|p| p.plain.clone()).collect();
    match (&likes, plain) {
        (Some(_), Some(plain)) => (Some(plain), None),
        (likes, _) => (None, likes.clone()),
    }
}

/// The keys as LIKE patterns, also where they are given in full; `None`, if every key is meant.
pub(super) fn likes(patterns: &[Pattern]) -> Option<Vec<String>> {
    (!patterns.is_empty()).then(|| patterns.iter().map(|p| p.like.clone()).collect())
}

/// What this role can do with the history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HistoryAccess {
    Readable {
        /// Whether it can also claim, as far as its rights to the lease table tell.
        may_claim: bool,
    },
    Denied,
    NoHistory,
    /// There is no lease table either.
    NoTable,
}

pub(super) fn access(client: &mut Client, queries: &Queries) -> Result<HistoryAccess, Failure> {
    let rows = query(
        client,
        &queries.readable,
        &[(&queries.name, Type::TEXT), (&queries.leases, Type::TEXT)],
    )?;
    let Some(row) = rows.first() else {
        return Ok(HistoryAccess::NoHistory);
    };
    Ok(
        match (
            cell::<Option<bool>>(row, "is_readable")?,
            cell(row, "has_leases")?,
        ) {
            (Some(true), _) => HistoryAccess::Readable {
                may_claim: cell::<Option<bool>>(row, "may_claim")? != Some(false),
            },
            (Some(false), _) => HistoryAccess::Denied,
            (None, true) => HistoryAccess::NoHistory,
            (None, false) => HistoryAccess::NoTable,
        },
    )
}

/// The last run of each key, if there is a history that can be read.
pub(super) fn last_runs_if_readable(
    client: &mut Client,
    queries: &Queries,
    keys: &[String],
) -> Result<Option<Vec<LastRun>>, Failure> {
    match access(client, queries)? {
        HistoryAccess::Readable { .. } => {}
        HistoryAccess::Denied | HistoryAccess::NoHistory | HistoryAccess::NoTable => {
            return Ok(None);
        }
    }
    let keys = keys.to_vec();
    let rows = query(
        client,
        &queries.last,
        &[
            (&Some(keys), Type::TEXT_ARRAY),
            (&None::<Vec<String>>, Type::TEXT_ARRAY),
        ],
    )?;
    rows.iter()
        .map(last_run)
        .collect::<Result<_, _>>()
        .map(Some)
}

/// Gives each row to the sink as it comes, so that not all of them have to be in memory.
fn stream<T, S: Sink<T>, const N: usize>(
    client: &mut Client,
    statement: &str,
    parameters: [(&(dyn ToSql + Sync), Type); N],
    read: fn(&PgRow) -> Result<T, Failure>,
    mut sink: S,
) -> Result<S, Failure> {
    let broken = |e: postgres::Error| Failure::from_postgres(&e);
    let mut rows = client
        .query_typed_raw(statement, parameters)
        .map_err(broken)?;
    while let Some(row) = rows.next().map_err(broken)? {
        sink.take(read(&row)?);
    }
    Ok(sink)
}

fn last_run(row: &PgRow) -> Result<LastRun, Failure> {
    Ok(LastRun {
        run: run(row)?,
        last_success: time(row, "last_success")?,
    })
}

/// The reading of the server's clock, and what takes the runs.
struct Charted<S> {
    now: Option<ServerTime>,
    sink: S,
}

impl<S: Sink<Run>> Sink<(ServerTime, Option<Run>)> for Charted<S> {
    fn take(&mut self, (now, run): (ServerTime, Option<Run>)) {
        self.now = Some(now);
        if let Some(run) = run {
            self.sink.take(run);
        }
    }
}

/// A row of a chart. It has no run if there is none at all.
fn charted_run(r: &PgRow) -> Result<(ServerTime, Option<Run>), Failure> {
    let now = cell::<Moment>(r, "now")?.0;
    let has_run = text(r, "key")?.is_some();
    Ok((now, has_run.then(|| run(r)).transpose()?))
}

fn run(r: &PgRow) -> Result<Run, Failure> {
    let now = cell::<Moment>(r, "now")?.0;
    Ok(Run {
        key: text(r, "key")?.unwrap_or_default(),
        fence: Fence::from_row(cell(r, "fence")?),
        holder: text(r, "holder")?.unwrap_or_default(),
        host: text(r, "host")?,
        pid: cell(r, "pid")?,
        program: text(r, "program")?,
        acquired_at: cell::<Moment>(r, "acquired_at")?.0,
        end: end(r, now)?,
        now,
    })
}

fn end(r: &PgRow, now: ServerTime) -> Result<End, Failure> {
    let job = match (
        cell::<Option<i32>>(r, "exit_code")?,
        cell::<Option<i32>>(r, "exit_signal")?,
    ) {
        (Some(code), _) => u8::try_from(code).ok().map(Ended::Code),
        (None, Some(signal)) => Some(Ended::Signal(Signal::new(signal))),
        (None, None) => None,
    };
    let Some(at) = time(r, "ended_at")? else {
        return Ok(match time(r, "expires_at")? {
            Some(expires_at) if expires_at > now => End::Running,
            Some(expires_at) => End::Expired(expires_at),
            // Its row has another term by now, or none: the trigger could not write, or was not there.
            None => End::Unknown,
        });
    };
    let culprit = Culprit {
        role: text(r, "ended_by")?,
        host: text(r, "ended_by_host")?,
        pid: cell(r, "ended_by_pid")?,
    };
    Ok(match text(r, "ended")?.as_deref() {
        Some("forced") => End::Forced(at, culprit),
        Some("expired") => End::Expired(at),
        Some("lost") => End::Lost(at, job),
        Some("deleted") => End::Deleted(at, culprit),
        Some(_) | None => End::Released(at, job),
    })
}

/// How far the server is to look back, in microseconds. Its calendar begins 6,700 years ago.
fn back(time: Duration) -> i64 {
    const FARTHEST: Duration = Duration::from_secs(5_000 * 365 * 24 * 3600);
    micros(time.min(FARTHEST))
}

pub(super) fn time(r: &PgRow, name: &str) -> Result<Option<ServerTime>, Failure> {
    Ok(cell::<Option<Moment>>(r, name)?.map(|moment| moment.0))
}
