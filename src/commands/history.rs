//! `lease history`: what ran, where, when, and how it ended.

use std::time::Duration;

use super::{Ending, printed_or_left, store, verbosity};
use crate::cli::{Common, History, HistoryFormat};
use crate::exit::Exit;
use crate::lease::Key;
use crate::output::{self, Chart, Lines, Look, Paper, Verbosity, Window};
use crate::record::{LastRun, Run};
use crate::sql::{NamedKeys, Pattern};
use crate::store::{Failure, Sink, Wanted};

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
        let named = NamedKeys::among(&patterns);
        let kept = move || KeptOverdue {
            lines: output::overdue_lines(is_json),
            look: look.clone(),
            age,
            named: named.clone(),
        };
        let kept = store.last_runs_into(&patterns, kept).map_err(failed)?;
        let lines = kept.finished();
        let is_empty = lines.is_empty();
        if !is_empty || is_json {
            print(lines, verbosity)?;
        }
        return Ok(Ending::Exit(if is_empty {
            Exit::Done
        } else {
            Exit::NotHeld
        }));
    }

    if args.chart {
        let length = args.since.unwrap_or(CHARTED);
        let (now, charted) = store
            .chart_into(&patterns, length, Charted::default)
            .map_err(failed)?;
        let keys: Vec<String> = patterns.into_iter().filter_map(|p| p.plain).collect();
        if charted.0.is_empty() && keys.is_empty() {
            verbosity.info("no runs");
            return Ok(Ending::Exit(Exit::Done));
        }
        let (window, paper) = (Window { now, length }, Paper::of_this_terminal());
        print(charted.0.lines(&keys, window, &look, paper), verbosity)?;
        return Ok(Ending::Exit(Exit::Done));
    }

    let lines = if args.last {
        let only_failed = args.failed;
        let kept = move || KeptLast {
            lines: output::last_lines(is_json),
            look: look.clone(),
            only_failed,
        };
        let kept = store.last_runs_into(&patterns, kept);
        kept.map_err(failed)?.lines
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
        store.history_into(&wanted, kept).map_err(failed)?.lines
    };
    if lines.is_empty() && !is_json {
        verbosity.info("no runs");
    } else {
        print(lines, verbosity)?;
    }
    Ok(Ending::Exit(Exit::Done))
}

fn print(lines: Lines, verbosity: Verbosity) -> anyhow::Result<()> {
    if !lines.is_json() {
        warn_of_zone(verbosity);
    }
    printed_or_left(lines.print())?;
    Ok(())
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

/// Runs that are to be charted.
#[derive(Default)]
struct Charted(Chart);

impl Sink<Run> for Charted {
    fn take(&mut self, run: Run) {
        self.0.push(&run);
    }
}

/// The last run of each key, which is to be printed.
struct KeptLast {
    lines: Lines,
    look: Look,
    only_failed: bool,
}

impl Sink<LastRun> for KeptLast {
    fn take(&mut self, last: LastRun) {
        if !self.only_failed || last.run.end.is_failure() {
            output::push_last(&mut self.lines, &last, &self.look);
        }
    }
}

/// The keys whose last success is older than `age` milliseconds, and those that have none.
struct KeptOverdue {
    lines: Lines,
    look: Look,
    age: i64,
    /// They count also if they have never run.
    named: NamedKeys,
}

impl Sink<LastRun> for KeptOverdue {
    fn take(&mut self, last: LastRun) {
        let key = &last.run.key;
        for named in self.named.missing_before(key) {
            output::push_overdue(&mut self.lines, &named, None, &self.look);
        }
        if is_older(&last, self.age) {
            output::push_overdue(&mut self.lines, key, Some(&last), &self.look);
        }
    }
}

impl KeptOverdue {
    /// After the last run.
    fn finished(mut self) -> Lines {
        for named in self.named.missing_at_the_end() {
            output::push_overdue(&mut self.lines, &named, None, &self.look);
        }
        self.lines
    }
}

/// Whether the last success is older than so many milliseconds.
fn is_older(last: &LastRun, age: i64) -> bool {
    last.last_success
        .and_then(|at| last.run.now.millis_since(at))
        .is_none_or(|since| since > age)
}
