//! `lease purge`: removes keys that nobody has used for a long time.

use super::{Ending, failed, print_or_leave, store, verbosity};
use crate::cli::{Common, Purge};
use crate::exit::Exit;
use crate::lease::Key;
use crate::output;
use crate::sql::Pattern;
use crate::store::Purged;

/// Removes keys with their history, or with `--dry-run` lists them.
///
/// # Errors
/// When an argument can't be valid, the database failed, or stdout can't be written.
pub fn purge(common: &Common, args: &Purge) -> anyhow::Result<Ending> {
    let patterns: Vec<Pattern> = args.keys.iter().map(|key| Pattern::parse(key)).collect();
    for plain in patterns.iter().filter_map(|p| p.plain.as_ref()) {
        plain.parse::<Key>()?;
    }
    let store = store(common)?;
    let verbosity = verbosity(common);
    let unused = store
        .unused(&patterns, args.older_than, !args.dry_run)
        .map_err(|f| anyhow::Error::new(f).context("cannot purge"))?;
    if let Some(table) = &unused.no_table {
        verbosity.info(format!(
            "nothing to purge: table {table} does not exist (see --table)"
        ));
        return Ok(Ending::Exit(Exit::Done));
    }
    let amount = |purged: &Purged| {
        let runs = unused.has_history.then_some(purged.runs);
        amount(purged.keys, runs)
    };
    if args.dry_run {
        let lines = unused.keys.iter().map(|key| output::escape(key) + "\n");
        print_or_leave(&lines.collect::<String>())?;
        let would = Purged {
            keys: unused.keys.len() as u64,
            runs: unused.runs,
        };
        verbosity.info(format!("would remove {}", amount(&would)));
    } else {
        let mut purged = Purged::default();
        let done = store.purge(&unused, args.older_than, &mut purged);
        done.map_err(|f| {
            let cannot = if purged.keys == 0 {
                "cannot purge".to_owned()
            } else {
                format!("cannot purge the rest, after {}", amount(&purged))
            };
            failed(
                &cannot,
                "the last keys were removed",
                &f,
                "run it again; a second run does no harm",
            )
        })?;
        verbosity.info(format!("removed {}", amount(&purged)));
    }
    if unused.ahead > 0 {
        verbosity.info(format!(
            "kept {}: a new claim could get a smaller fence (was the server's clock set back?)",
            counted(unused.ahead, "key")
        ));
    }
    Ok(Ending::Exit(Exit::Done))
}

/// `1 key and 12 runs`.
fn amount(keys: u64, runs: Option<u64>) -> String {
    let keys = counted(keys, "key");
    runs.map_or(keys.clone(), |runs| {
        format!("{keys} and {}", counted(runs, "run"))
    })
}

fn counted(count: u64, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}
