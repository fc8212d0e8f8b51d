//! `lease init`: makes the table, or prints the SQL that makes it.

use super::{Ending, store, voice};
use crate::cli::{Common, Init};
use crate::exit::Exit;
use crate::output;
use crate::sql::{self, Table};

/// Makes the table where it is missing.
///
/// # Errors
/// When the table's name can't be valid, or the database failed.
pub fn init(common: &Common, args: &Init) -> anyhow::Result<Ending> {
    let table = Table::parse(&common.table)?;
    if args.print {
        output::print(&sql::script(&table))?;
        return Ok(Ending::Exit(Exit::Done));
    }
    store(common)?
        .make_table(&[])
        .map_err(|f| anyhow::Error::new(f).context(format!("cannot make {}", table.shown())))?;
    voice(common).info(format!("{} is ready", table.shown()));
    Ok(Ending::Exit(Exit::Done))
}
