//! The history of runs, for people and as JSON.

use std::io::IsTerminal as _;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde::Serialize;

use super::escape;
use super::layout::span;
use super::spool::Lines;
use crate::job::Ended;
use crate::lease::ServerTime;
use crate::record::{Culprit, End, LastRun, Run};

const NOTHING: &str = "-";

/// How times and failures are shown.
#[derive(Clone)]
pub struct Look {
    zone: TimeZone,
    colour: bool,
}

impl Look {
    /// In the time zone of the person who asks (TZ). Failures are red at a terminal, unless NO_COLOR or TERM=dumb says no.
    #[must_use]
    pub fn of_this_terminal() -> Self {
        let is_set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        let is_dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
        Self {
            zone: local_zone().0,
            colour: std::io::stdout().is_terminal() && !is_set("NO_COLOR") && !is_dumb,
        }
    }

    /// What to say if this machine does not know the time zone that TZ names.
    #[must_use]
    pub fn warning() -> Option<String> {
        let name = local_zone().1?;
        Some(format!(
            "this machine does not know the time zone \"{}\" of TZ; times are in UTC (check its name, and that tzdata is installed)",
            escape(&name)
        ))
    }

    /// Without colour, in this zone.
    #[cfg(test)]
    pub(super) const fn plain(zone: TimeZone) -> Self {
        Self {
            zone,
            colour: false,
        }
    }

    pub(super) fn time(&self, time: ServerTime) -> String {
        let ServerTime::At(micros) = time else {
            return time.to_string();
        };
        Timestamp::from_microsecond(micros).map_or_else(
            |_| time.to_string(),
            |at| {
                at.to_zoned_datetime(self.zone.clone())
                    .strftime("%Y-%m-%d %H:%M:%S")
                    .to_string()
            },
        )
    }

    /// A time that follows another one: its date only if that is another day.
    fn after(&self, earlier: ServerTime, time: ServerTime) -> String {
        let (earlier, time) = (self.time(earlier), self.time(time));
        match (earlier.split_once(' '), time.split_once(' ')) {
            (Some((day, _)), Some((same, clock))) if day == same => clock.to_owned(),
            _ => time,
        }
    }

    pub(super) fn failure(&self, is_failure: bool, text: String) -> String {
        if is_failure && self.colour {
            format!("\u{1b}[31m{text}\u{1b}[0m")
        } else {
            text
        }
    }

    fn ended(&self, run: &Run) -> String {
        match &run.end {
            End::Expired(at) => {
                format!("vanished; expired {}", self.after(run.acquired_at, *at))
            }
            End::Running
            | End::Released(..)
            | End::Forced(..)
            | End::Lost(..)
            | End::Deleted(..)
            | End::Unknown => ended(&run.end),
        }
    }
}

/// The time zone of TZ, or else of this machine. With UTC instead of one that TZ names, and nobody knows, comes its name.
pub(super) fn local_zone() -> (TimeZone, Option<String>) {
    match TimeZone::try_system() {
        Ok(zone) => (zone, None),
        Err(_) => {
            let name = std::env::var_os("TZ").filter(|name| !name.is_empty());
            let name = name.map(|name| name.to_string_lossy().into_owned());
            (TimeZone::UTC, name)
        }
    }
}

/// How a run ended, in a few words.
#[must_use]
pub fn ended(end: &End) -> String {
    let by = |what: &str, culprit: &Culprit| {
        let mut text = what.to_owned();
        if let Some(role) = &culprit.role {
            text.push_str(&format!(" by {}", escape(role)));
        }
        if let Some(host) = &culprit.host {
            text.push_str(&format!(" on {}", escape(host)));
        }
        text
    };
    match end {
        End::Running => "running".to_owned(),
        End::Released(_, None) => "released".to_owned(),
        End::Released(_, Some(job)) => job_end(*job),
        End::Forced(_, culprit) => by("evicted", culprit),
        End::Expired(_) => "vanished".to_owned(),
        End::Lost(_, None) => "lost".to_owned(),
        End::Lost(_, Some(job)) => format!("lost; {}", job_end(*job)),
        End::Deleted(_, culprit) => by("row deleted", culprit),
        End::Unknown => "end not recorded".to_owned(),
    }
}

fn job_end(job: Ended) -> String {
    match job {
        Ended::Code(code) => format!("exit {code}"),
        Ended::Signal(signal) => format!("signal {signal}"),
    }
}

fn ago(time: ServerTime, now: ServerTime) -> String {
    match now.millis_since(time) {
        Some(ms) => format!("{} ago", span(Some(ms.max(0)))),
        None => time.to_string(),
    }
}

fn took(run: &Run) -> String {
    run.took_ms()
        .map_or(NOTHING.to_owned(), |ms| span(Some(ms)))
}

/// Runs, a line each, as a table or as JSON.
#[must_use]
pub fn history_lines(json: bool) -> Lines {
    if json {
        Lines::json()
    } else {
        let head = &["KEY", "STARTED", "TOOK", "HOLDER", "ENDED"];
        Lines::table(head, None, &[])
    }
}

/// Adds a run.
pub fn push_run(lines: &mut Lines, run: &Run, look: &Look) {
    if lines.is_json() {
        lines.item(&RunJson::of(run));
        return;
    }
    lines.row(&[
        escape(&run.key),
        look.time(run.acquired_at),
        took(run),
        escape(&run.holder),
        look.failure(run.end.is_failure(), look.ended(run)),
    ]);
}

/// The last run of each key, and its last success: a line each, as a table or as JSON.
#[must_use]
pub fn last_lines(json: bool) -> Lines {
    if json {
        Lines::json()
    } else {
        let head = &["KEY", "STARTED", "TOOK", "HOLDER", "LAST SUCCESS", "ENDED"];
        Lines::table(head, None, &[])
    }
}

/// Adds the last run of a key.
pub fn push_last(lines: &mut Lines, last: &LastRun, look: &Look) {
    let run = &last.run;
    if lines.is_json() {
        lines.item(&LastJson::of(&run.key, Some(last)));
        return;
    }
    lines.row(&[
        escape(&run.key),
        look.time(run.acquired_at),
        took(run),
        escape(&run.holder),
        last.last_success
            .map_or("never".to_owned(), |at| ago(at, run.now)),
        look.failure(run.end.is_failure(), look.ended(run)),
    ]);
}

/// Keys that have not succeeded for too long: when each has last succeeded, and what became of it since.
#[must_use]
pub fn overdue_lines(json: bool) -> Lines {
    if json {
        Lines::json()
    } else {
        Lines::table(&["KEY", "LAST SUCCESS", "LAST RUN"], None, &[])
    }
}

/// Adds a key that is overdue; without a run if it has none.
pub fn push_overdue(lines: &mut Lines, key: &str, last: Option<&LastRun>, look: &Look) {
    if lines.is_json() {
        lines.item(&LastJson::of(key, last));
        return;
    }
    let Some(last) = last else {
        lines.row(&[
            escape(key),
            "never".to_owned(),
            "it has never run".to_owned(),
        ]);
        return;
    };
    let run = &last.run;
    let success = last.last_success.map_or("never".to_owned(), |at| {
        format!("{} ({})", look.time(at), ago(at, run.now))
    });
    let now = if run.end == End::Running {
        format!("{} has held it for {}", escape(&run.holder), took(run))
    } else {
        format!("{}, {}", look.ended(run), ago(run.acquired_at, run.now))
    };
    lines.row(&[escape(key), success, now]);
}

/// The last run of a key as the column of `status`: `exit 0, 3h ago`.
#[must_use]
pub fn last_run(run: &Run) -> String {
    match run.end.at() {
        Some(at) => format!("{}, {}", ended(&run.end), ago(at, run.now)),
        None => ended(&run.end),
    }
}

/// A run as the JSON shows it.
#[derive(Serialize)]
pub(super) struct RunJson<'a> {
    key: &'a str,
    fence: i64,
    holder: &'a str,
    host: Option<&'a str>,
    pid: Option<i32>,
    program: Option<&'a str>,
    acquired_at: String,
    ended_at: Option<String>,
    took_ms: Option<i64>,
    ended: &'static str,
    ended_by: Option<CulpritJson<'a>>,
    exit_code: Option<u8>,
    exit_signal: Option<i32>,
    success: bool,
}

#[derive(Serialize)]
struct CulpritJson<'a> {
    role: Option<&'a str>,
    host: Option<&'a str>,
    pid: Option<i32>,
}

impl<'a> RunJson<'a> {
    pub(super) fn of(run: &'a Run) -> Self {
        let (exit_code, exit_signal) = match run.end.job() {
            Some(Ended::Code(code)) => (Some(code), None),
            Some(Ended::Signal(signal)) => (None, Some(signal.number())),
            None => (None, None),
        };
        Self {
            key: &run.key,
            fence: run.fence.get(),
            holder: &run.holder,
            host: run.host.as_deref(),
            pid: run.pid,
            program: run.program.as_deref(),
            acquired_at: run.acquired_at.to_string(),
            ended_at: run.end.at().map(|at| at.to_string()),
            took_ms: run.took_ms(),
            ended: run.end.word(),
            ended_by: run.end.culprit().map(|culprit| CulpritJson {
                role: culprit.role.as_deref(),
                host: culprit.host.as_deref(),
                pid: culprit.pid,
            }),
            exit_code,
            exit_signal,
            success: run.end.is_success(),
        }
    }
}

#[derive(Serialize)]
struct LastJson<'a> {
    key: &'a str,
    last_run: Option<RunJson<'a>>,
    last_success: Option<String>,
}

impl<'a> LastJson<'a> {
    fn of(key: &'a str, last: Option<&'a LastRun>) -> Self {
        Self {
            key,
            last_run: last.map(|last| RunJson::of(&last.run)),
            last_success: last
                .and_then(|last| last.last_success)
                .map(|at| at.to_string()),
        }
    }
}
