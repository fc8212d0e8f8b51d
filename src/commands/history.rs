//! `lease history`: what ran, where, when, and how it ended.

use std::time::Duration;

use super::{Ending, print_or_leave, printed_or_left, store, verbosity};
use crate::cli::{Common, History, HistoryFormat};
use crate::exit::Exit;
use crate::lease::Key;
use crate::output::{self, Lines, Look, Overdue, Paper, Verbosity, Window};
use crate::record::{LastRun, Run};
use crate::sql::Pattern;
use crate::store::{Failure, Sink, Store, Wanted};

/// So many runs are shown if nothing else is asked for.
const SHOWN: u32 = 20;

/// A chart shows so much time if nothing else is asked for.
const CHARTED: Duration = Duration::from_secs(24 * 3600);

/// Shows runs, the last run of each key, or the keys that are overdue.
///
/// # Errors
/// When an argument can't be valid, the database failed, or stdout can't be written.
pub fn history(common: &Common, args: &History) -> anyhow::Result<Ending> {
    let patterns: Vec<Pattern> = args.keys.iter().map(|key| Pattern::parse(key)).collect();
    for plain in patterns.iter().filter_map(|p| p.plain.as_ref()) {
        plain.parse::<Key>()?;
    }
    let store = store(common)?;
    let verbosity = verbosity(common);
    let look = Look::of_this_terminal();
    let is_json = args.format == HistoryFormat::Json;
    let failed = |f: Failure| anyhow::Error::new(f).context("cannot read the history");

    if let Some(age) = args.overdue {
        let age = i64::try_from(age.as_millis()).unwrap_or(i64::MAX);
        let overdue = overdue(&store, &patterns, age).map_err(failed)?;
        if overdue.is_empty() && !is_json {
            return Ok(Ending::Exit(Exit::Done));
        }
        if !is_json {
            warn_of_zone(verbosity);
        }
        print_or_leave(&if is_json {
            output::overdue_json(&overdue)
        } else {
            output::overdue_table(&overdue, &look)
        })?;
        return Ok(Ending::Exit(if overdue.is_empty() {
            Exit::Done
        } else {
            Exit::NotHeld
        }));
    }

    let (text, is_empty) = if args.chart {
        let length = args.since.unwrap_or(CHARTED);
        let (now, runs) = store.chart(&patterns, length).map_err(failed)?;
        let keys: Vec<String> = patterns.into_iter().filter_map(|p| p.plain).collect();
        let (window, paper) = (Window { now, length }, Paper::of_this_terminal());
        let text = output::chart(&runs, &keys, window, &look, paper);
        (text, runs.is_empty() && keys.is_empty())
    } else if args.last {
        let mut last = store.last_runs(&patterns).map_err(failed)?;
        last.retain(|last| !args.failed || last.run.end.is_failure());
        let text = if is_json {
            output::last_runs_json(&last)
        } else {
            output::last_runs_table(&last, &look)
        };
        (text, last.is_empty())
    } else {
        let default = args.since.is_none().then_some(SHOWN);
        let wanted = Wanted {
            patterns,
            since: args.since,
            failed: args.failed,
            limit: args.limit.or(default).map(i64::from),
        };
        let kept = move || Kept {
            lines: output::history_lines(is_json),
            look: look.clone(),
        };
        let lines = store.history_into(&wanted, kept).map_err(failed)?.lines;
        if lines.is_empty() && !is_json {
            verbosity.info("no runs");
        } else {
            if !is_json {
                warn_of_zone(verbosity);
            }
            printed_or_left(lines.print())?;
        }
        return Ok(Ending::Exit(Exit::Done));
    };
    if is_empty && !is_json {
        verbosity.info("no runs");
    } else {
        if !is_json {
            warn_of_zone(verbosity);
        }
        print_or_leave(&text)?;
    }
    Ok(Ending::Exit(Exit::Done))
}

/// Times are shown in UTC if this machine does not know the zone that TZ names.
fn warn_of_zone(verbosity: Verbosity) {
    if let Some(warning) = Look::warning() {
        verbosity.info(warning);
    }
}

/// Runs that are to be printed.
struct Kept {
    lines: Lines,
    look: Look,
}

impl Sink<Run> for Kept {
    fn take(&mut self, run: Run) {
        output::push_run(&mut self.lines, &run, &self.look);
    }
}

/// The keys whose last success is older than `age` milliseconds, and those that have none. A key that is named in full
/// counts also if it has never run.
fn overdue(store: &Store, patterns: &[Pattern], age: i64) -> Result<Vec<Overdue>, Failure> {
    let last = store.last_runs(patterns)?;
    let mut overdue: Vec<Overdue> = patterns
        .iter()
        .filter_map(|p| p.plain.clone())
        .filter(|key| !last.iter().any(|last| last.run.key == *key))
        .map(|key| Overdue { key, last: None })
        .collect();
    overdue.extend(
        last.into_iter()
            .filter(|last| is_older(last, age))
            .map(|last| Overdue {
                key: last.run.key.clone(),
                last: Some(last),
            }),
    );
    overdue.sort_by(|a, b| a.key.cmp(&b.key));
    overdue.dedup_by(|a, b| a.key == b.key);
    Ok(overdue)
}

/// Whether the last success is older than so many milliseconds.
fn is_older(last: &LastRun, age: i64) -> bool {
    last.last_success
        .and_then(|at| last.run.now.millis_since(at))
        .is_none_or(|since| since > age)
}
