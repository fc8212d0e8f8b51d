//! The look of a waiter that has kept its connection (`--eager`).

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use postgres::Client;
use postgres::types::Type;

use super::columns::row;
use super::database::Store;
use super::failure::Failure;
use super::operate::Plan;
use super::statement::{only_read, query};
use super::transaction::Sent;
use crate::connect::Access;
use crate::lease::{Key, Row};

impl Store {
    /// Reads the row of a key, and keeps the connection for the next look. Nothing is open between two looks.
    ///
    /// `interrupt` ends the look early.
    ///
    /// # Errors
    /// When the database can't be reached, does not answer in time, or refuses.
    pub fn look_out(
        &self,
        key: &Key,
        limit: Duration,
        interrupt: Option<&AtomicBool>,
    ) -> Result<Sent<Option<Row>>, Failure> {
        let plan = Plan {
            what: "look",
            access: Access::Write,
            limit,
            idle: limit,
            says: false,
            repeatable: true,
            begins: false,
            connection: self.kept_between_looks(),
            keeps_half: false,
        };
        self.operate(&plan, interrupt, || {
            let (statements, key) = (Arc::clone(&self.statements), key.clone());
            move |client: &mut Client| {
                let key = key.as_str();
                let rows = query(client, &statements.lookout, &[(&key, Type::TEXT)])?;
                only_read(rows.first().map(row).transpose()?)
            }
        })
    }
}
