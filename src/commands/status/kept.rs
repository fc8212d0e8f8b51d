//! The leases that `lease status` is to show: a line each, without memory for all of them where that is possible.

use crate::cli::StatusFormat;
use crate::output::{self, Gauges, Lines, Shown};
use crate::record::LastRun;
use crate::sql::Pattern;
use crate::store::{Listed, Sink};

/// Leases that are to be shown.
pub(super) struct Kept {
    pub(super) form: Form,
    patterns: Vec<Pattern>,
    /// For each pattern: whether all keys that match it are held. `None` if no key matches.
    held: Vec<Option<bool>>,
}

pub(super) enum Form {
    /// What is printed once.
    Lines(Lines),
    /// The same as gauges.
    Gauges(Gauges),
    /// What needs all of them at once: a watch.
    All(Vec<Shown>),
}

impl Form {
    /// For a list that is printed once.
    pub(super) fn of(format: StatusFormat) -> Self {
        match format {
            StatusFormat::Table => {
                Self::Lines(output::status_lines(false, output::stdout_columns()))
            }
            StatusFormat::Json => Self::Lines(output::status_lines(true, None)),
            StatusFormat::OpenMetrics => Self::Gauges(Gauges::default()),
        }
    }
}

impl Kept {
    pub(super) fn new(patterns: &[Pattern], form: Form) -> Self {
        Self {
            form,
            patterns: patterns.to_vec(),
            held: vec![None; patterns.len()],
        }
    }

    fn show(&mut self, shown: Shown) {
        for (pattern, held) in self.patterns.iter().zip(&mut self.held) {
            if pattern.matches(shown.key()) {
                *held = Some(shown.is_held() && *held != Some(false));
            }
        }
        match &mut self.form {
            Form::Lines(lines) => output::push_status(lines, &shown),
            Form::Gauges(gauges) => gauges.push(&shown),
            Form::All(all) => all.push(shown),
        }
    }

    /// Whether each pattern has matched a key, and all of these are held.
    pub(super) fn all_held(&self) -> bool {
        self.held.iter().all(|held| *held == Some(true))
    }
}

impl Sink<(Listed, Option<LastRun>)> for Kept {
    fn take(&mut self, (listed, last): (Listed, Option<LastRun>)) {
        let last = last.map(Box::new);
        self.show(match listed {
            Listed::Row(row) => Shown::Row(row, last),
            Listed::NoRow(key) => Shown::NoRow(key, last),
        });
    }
}
