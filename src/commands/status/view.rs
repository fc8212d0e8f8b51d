//! Which leases `lease status` reads, and how it shows them.

use super::kept::{Form, Kept};
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
        let all = || Kept::new(&self.patterns, Form::All(Vec::new()));
        let listing = store.status(&self.patterns, self.free, flag, all)?;
        let shown = match listing.rows.form {
            Form::All(shown) => shown,
            Form::Lines(_) | Form::Gauges(_) => Vec::new(),
        };
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
