//! Which leases `lease status` reads, and how it shows them.

use crate::cli::StatusFormat;
use crate::interrupt::Interrupt;
use crate::output::{self, Shown};
use crate::sql::Pattern;
use crate::store::{Failure, Store};

/// Which leases are read, and how they are shown.
pub(super) struct View {
    pub(super) patterns: Vec<Pattern>,
    /// Whether free keys are read too.
    pub(super) free: bool,
    pub(super) format: StatusFormat,
}

impl View {
    /// The lines to show, and the name of the table if it does not exist.
    pub(super) fn look(
        &self,
        store: &Store,
        interrupt: &Interrupt,
    ) -> Result<(Vec<Shown>, Option<String>), Failure> {
        let flag = Some(interrupt.flag());
        let listing = store.status(&self.patterns, self.free, flag, Vec::new)?;
        let mut shown: Vec<Shown> = listing
            .rows
            .into_iter()
            .map(|(row, last)| Shown::Row(row, last.map(Box::new)))
            .collect();
        for plain in self.patterns.iter().filter_map(|p| p.plain.as_ref()) {
            if !shown.iter().any(|s| s.key() == plain) {
                shown.push(Shown::NoRow(plain.clone()));
            }
        }
        shown.sort_by(|a, b| a.key().cmp(b.key()));
        Ok((shown, listing.no_table))
    }

    pub(super) fn text(&self, shown: &[Shown], columns: Option<usize>) -> String {
        match self.format {
            StatusFormat::Table => output::status_table(shown, columns),
            StatusFormat::Json => output::status_json(shown),
            StatusFormat::OpenMetrics => output::openmetrics(shown),
        }
    }
}
