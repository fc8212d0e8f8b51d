//! The gauges of `status --format openmetrics`.
//!
//! The text is valid as OpenMetrics and in the text format of Prometheus before it, which node_exporter's textfile collector
//! reads: to that one, the closing `# EOF` is a comment.

use std::io::IsTerminal as _;

use super::escape;
use super::status::Shown;
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

/// A gauge after another, with a sample for each key whose value is known.
#[must_use]
pub fn openmetrics(shown: &[Shown]) -> String {
    let is_terminal = std::io::stdout().is_terminal();
    let mut out = String::new();
    for (name, help, value) in GAUGES {
        out.push_str(&format!("# HELP {name} {help}\n# TYPE {name} gauge\n"));
        for shown in shown {
            if let Some(value) = value(shown) {
                let (key, value) = (label(shown.key(), is_terminal), number(value));
                out.push_str(&format!("{name}{{key={key}}} {value}\n"));
            }
        }
    }
    out + "# EOF\n"
}

fn number(value: f64) -> String {
    if value == f64::INFINITY {
        "+Inf".to_owned()
    } else {
        value.to_string()
    }
}
