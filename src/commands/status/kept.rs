//! The leases that `lease status` is to show: a line each, without memory for all of them where that is possible.

use crate::cli::StatusFormat;
use crate::lease::Row;
use crate::output::{self, Lines, Shown};
use crate::record::LastRun;
use crate::sql::Pattern;
use crate::store::Sink;

/// Leases that are to be shown.
pub(super) struct Kept {
    pub(super) form: Form,
    patterns: Vec<Pattern>,
    /// For each pattern: whether all keys that match it are held. `None` if no key matches.
    held: Vec<Option<bool>>,
    /// The keys that are named in full and were not shown yet, the last one first.
    named: Vec<String>,
}

pub(super) enum Form {
    /// What is printed once.
    Lines(Lines),
    /// What needs all of them at once: each gauge, and a watch.
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
            StatusFormat::OpenMetrics => Self::All(Vec::new()),
        }
    }
}

impl Kept {
    pub(super) fn new(patterns: &[Pattern], form: Form) -> Self {
        let named = patterns.iter().filter_map(|p| p.plain.clone());
        let mut named: Vec<String> = named.collect();
        named.sort_by(|a, b| b.cmp(a));
        named.dedup();
        Self {
            form,
            patterns: patterns.to_vec(),
            held: vec![None; patterns.len()],
            named,
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
            Form::All(all) => all.push(shown),
        }
    }

    /// After the last row: with the named keys that have none.
    pub(super) fn finished(mut self) -> Self {
        while let Some(key) = self.named.pop() {
            self.show(Shown::NoRow(key));
        }
        self
    }

    /// Whether each pattern has matched a key, and all of these are held.
    pub(super) fn all_held(&self) -> bool {
        self.held.iter().all(|held| *held == Some(true))
    }
}

impl Sink<(Row, Option<LastRun>)> for Kept {
    /// Rows come by key, so a named key that would have come before this one has no row.
    fn take(&mut self, (row, last): (Row, Option<LastRun>)) {
        while let Some(key) = self.named.pop_if(|key| *key <= row.key) {
            if key != row.key {
                self.show(Shown::NoRow(key));
            }
        }
        self.show(Shown::Row(row, last.map(Box::new)));
    }
}
