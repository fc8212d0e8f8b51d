//! `lease init`: creates the table, or prints the SQL that creates it.

use super::{Ending, failed, print_or_leave, store, verbosity};
use crate::cli::{Common, Init};
use crate::exit::Exit;
use crate::fencing;
use crate::lease::Invalid;
use crate::record;
use crate::sql;

/// Creates the table if it is missing.
///
/// # Errors
/// When the table's name can't be valid, or the database failed.
pub fn init(common: &Common, args: &Init) -> anyhow::Result<Ending> {
    let table = &common.table;
    if args.with_fencing && table.name() == fencing::TABLE {
        return Err(Invalid::new(format!(
            "--table: \"{}\" is the name of the table that --with-fencing creates (give the lease table another name)",
            table.shown()
        ))
        .into());
    }
    let verbosity = verbosity(common);
    let name = table.shown();
    let history = match record::install(table, args.keep_history) {
        _ if args.no_history => None,
        Ok(script) => Some(script),
        // The leases do without. Who has asked for a history in so many words gets an error.
        Err(reason) if args.keep_history.is_none() => {
            verbosity.info(format!(
                "{name} has no history of runs: {reason}; leases work without it"
            ));
            None
        }
        Err(reason) => return Err(reason.into()),
    };
    if args.print {
        let mut script = sql::script(table);
        if let Some(history) = history {
            script.push('\n');
            script.push_str(&history);
            script.push_str(";\n");
        }
        if args.with_fencing {
            script.push('\n');
            script.push_str(&fencing::ddl(&table.schema()));
        }
        print_or_leave(&script)?;
        return Ok(Ending::Exit(Exit::Done));
    }
    let store = store(common)?;
    let again = "run it again; a second run does no harm";
    let version = store.make_table(history.as_deref()).map_err(|f| {
        let (cannot, was) = (
            format!("cannot create {name}"),
            format!("{name} was created"),
        );
        failed(&cannot, &was, &f, again)
    })?;
    verbosity.info(format!("{name} is ready"));
    if let Some(newer) = version.filter(|v| *v > sql::VERSION) {
        verbosity.info(format!(
            "{name} has version {newer}, and this lease knows version {} (install a newer lease)",
            sql::VERSION
        ));
    }
    if let Some(script) = history {
        match store.install(&script) {
            Ok(()) => verbosity.info(format!("{} is ready", table.history()?.shown())),
            Err(failure) if args.keep_history.is_none() && failure.is_refused() => verbosity.info(
                format!("cannot create or update the history of runs of {name}: {failure}; it stays as it is, and leases work without it"),
            ),
            Err(failure) => {
                let what = format!("the history of runs in {name}");
                let (cannot, was) = (format!("cannot install {what}"), format!("{what} was installed"));
                return Err(failed(&cannot, &was, &failure, again).into());
            }
        }
    }
    if args.with_fencing {
        let schema = table.schema_shown();
        let what = format!("{schema}.lease_check_fence");
        store.install(&fencing::ddl(&table.schema())).map_err(|f| {
            let (cannot, was) = (
                format!("cannot install {what}"),
                format!("{what} was installed"),
            );
            failed(&cannot, &was, &f, again)
        })?;
        verbosity.info(format!(
            "{schema}.lease_check_fence is ready (allow the roles of your jobs to call it: GRANT EXECUTE ON FUNCTION {schema}.lease_check_fence(text, bigint) TO ...)"
        ));
    }
    // A table that existed before may belong to another program, so its default is not changed without being asked.
    match store.status(&[], false, None, || ()) {
        Ok(listing) if listing.unsafe_default => verbosity.info(store.advice_on_fences()),
        Ok(_) => {}
        // The table is ready, so this is not an error.
        Err(failure) => verbosity.info(format!(
            "cannot check whether the default of the fence in {name} is safe: {failure}"
        )),
    }
    Ok(Ending::Exit(Exit::Done))
}
