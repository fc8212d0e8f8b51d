//! Which leases `lease status` reads, and how it shows them.

use std::collections::HashMap;

use crate::cli::StatusFormat;
use crate::interrupt::Interrupt;
use crate::output::{self, Shown};
use crate::record::LastRun;
use crate::sql::Pattern;
use crate::store::{Failure, Listing, Store};

/// Which leases are read, and how they are shown.
pub(super) struct View {
    pub(super) patterns: Vec<Pattern>,
    /// Whether free keys are read too.
    pub(super) free: bool,
    pub(super) format: StatusFormat,
}

impl View {
    /// The lines to show, and the rest of the listing.
    pub(super) fn look(
        &self,
        store: &Store,
        interrupt: Option<&Interrupt>,
    ) -> Result<(Vec<Shown>, Listing), Failure> {
        let mut listing =
            store.status(&self.patterns, self.free, interrupt.map(Interrupt::flag))?;
        let last = listing.last_runs.take().unwrap_or_default();
        let mut last: HashMap<String, LastRun> = last
            .into_iter()
            .map(|last| (last.run.key.clone(), last))
            .collect();
        let mut shown: Vec<Shown> = std::mem::take(&mut listing.rows)
            .into_iter()
            .map(|row| {
                let last = last.remove(&row.key).map(Box::new);
                Shown::Row(row, last)
            })
            .collect();
        for plain in self.patterns.iter().filter_map(|p| p.plain.as_ref()) {
            if !shown.iter().any(|s| s.key() == plain) {
                shown.push(Shown::NoRow(plain.clone()));
            }
        }
        shown.sort_by(|a, b| a.key().cmp(b.key()));
        Ok((shown, listing))
    }

    pub(super) fn text(&self, shown: &[Shown], columns: Option<usize>) -> String {
        match self.format {
            StatusFormat::Table => output::status_table(shown, columns),
            StatusFormat::Json => output::status_json(shown),
            StatusFormat::OpenMetrics => output::openmetrics(shown),
        }
    }
}
