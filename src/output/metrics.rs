//! The gauges of `status --format openmetrics`.
//!
//! The text is valid as OpenMetrics and in the text format of Prometheus before it, which node_exporter's textfile collector
//! reads: to that one, the closing `# EOF` is a comment.

use std::io::{self, BufWriter, IsTerminal as _, Write};

use super::escape;
use super::spool::Lines;
use super::status::Shown;
use super::stdout_is_open;
use crate::job::Ended;
use crate::lease::{LeaseState, Row, ServerTime};
use crate::record::LastRun;

/// A gauge: its name, its help, and its value for a key, if that is known.
type Gauge = (&'static str, &'static str, fn(&Shown) -> Option<f64>);

const GAUGES: [Gauge; 8] = [
    ("lease_held", "Whether a holder has the lease.", |shown| {
        Some(f64::from(u8::from(shown.is_held())))
    }),
    (
        "lease_cooling",
        "Whether the lease is released, but kept closed by --hold-at-least.",
        |shown| {
            let cooling = row(shown).is_some_and(|row| row.state == LeaseState::Cooling);
            Some(f64::from(u8::from(cooling)))
        },
    ),
    (
        "lease_expires_timestamp_seconds",
        "When the current term or the cooling ends, or when the holder vanished.",
        |shown| {
            row(shown)
                .filter(|row| row.state != LeaseState::Free)
                .and_then(|row| seconds(row.expires_at))
        },
    ),
    (
        "lease_acquired_timestamp_seconds",
        "When the current term began.",
        |shown| {
            row(shown)
                .filter(|row| row.holder().is_some())
                .and_then(|row| seconds(row.acquired_at))
        },
    ),
    (
        "lease_last_success_timestamp_seconds",
        "When the key has last succeeded.",
        |shown| seconds(last(shown)?.last_success?),
    ),
    (
        "lease_last_run_start_timestamp_seconds",
        "When the last run began.",
        |shown| seconds(last(shown)?.run.acquired_at),
    ),
    (
        "lease_last_run_duration_seconds",
        "How long the last run took.",
        |shown| {
            let run = &last(shown)?.run;
            run.end.at()?;
            #[expect(clippy::cast_precision_loss, reason = "exact for 285,000 years")]
            run.took_ms().map(|ms| ms as f64 / 1e3)
        },
    ),
    (
        "lease_last_run_exit_code",
        "The exit code of the last run, 128 + n after signal n.",
        |shown| {
            Some(match last(shown)?.run.end.job()? {
                Ended::Code(code) => f64::from(code),
                Ended::Signal(signal) => f64::from(128 + signal.number()),
            })
        },
    ),
];

fn row(shown: &Shown) -> Option<&Row> {
    match shown {
        Shown::Row(row, _) => Some(row),
        Shown::NoRow(..) => None,
    }
}

fn last(shown: &Shown) -> Option<&LastRun> {
    match shown {
        Shown::Row(_, last) | Shown::NoRow(_, last) => last.as_deref(),
    }
}

#[expect(clippy::cast_precision_loss, reason = "exact until the year 2255")]
fn seconds(time: ServerTime) -> Option<f64> {
    match time {
        ServerTime::Always => None,
        ServerTime::At(micros) => Some(micros as f64 / 1e6),
        ServerTime::Never => Some(f64::INFINITY),
    }
}

/// A value of a label, in its quotes. No byte of a key is lost, except at a terminal, which it could steer.
fn label(key: &str, is_terminal: bool) -> String {
    let key = if is_terminal {
        escape(key)
    } else {
        key.to_owned()
    };
    let key = key
        .replace('\\', r"\\")
        .replace('"', r#"\""#)
        .replace('\n', r"\n");
    format!("\"{key}\"")
}

/// The gauges of leases that come one at a time: one list of samples for each gauge.
pub struct Gauges {
    samples: Vec<Lines>,
    is_terminal: bool,
}

impl Default for Gauges {
    fn default() -> Self {
        Self {
            samples: GAUGES.iter().map(|_| Lines::plain()).collect(),
            is_terminal: io::stdout().is_terminal(),
        }
    }
}

impl Gauges {
    /// Adds a sample to each gauge whose value is known for this key.
    pub fn push(&mut self, shown: &Shown) {
        let key = label(shown.key(), self.is_terminal);
        for ((name, _, value), samples) in GAUGES.iter().zip(&mut self.samples) {
            if let Some(value) = value(shown) {
                samples.push(&format!("{name}{{key={key}}} {}", number(value)));
            }
        }
    }

    /// Writes them to stdout.
    ///
    /// # Errors
    /// As [`Lines::print`].
    pub fn print(self) -> io::Result<()> {
        stdout_is_open()?;
        self.write_to(&mut BufWriter::new(io::stdout().lock()))
    }

    fn write_to(self, out: &mut impl Write) -> io::Result<()> {
        for ((name, help, _), samples) in GAUGES.iter().zip(self.samples) {
            write!(out, "# HELP {name} {help}\n# TYPE {name} gauge\n")?;
            samples.write_to(out)?;
        }
        out.write_all(b"# EOF\n")?;
        out.flush()
    }
}

/// The gauges of leases that are in memory anyway.
#[must_use]
pub fn openmetrics(shown: &[Shown]) -> String {
    let mut gauges = Gauges::default();
    gauges.samples = gauges.samples.into_iter().map(Lines::in_memory).collect();
    shown.iter().for_each(|one| gauges.push(one));
    let mut text = Vec::new();
    gauges
        .write_to(&mut text)
        .expect("memory can be written, and no file is read");
    String::from_utf8(text).expect("it was written as UTF-8")
}

fn number(value: f64) -> String {
    if value == f64::INFINITY {
        "+Inf".to_owned()
    } else {
        value.to_string()
    }
}
