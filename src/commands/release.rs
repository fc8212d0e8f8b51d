//! `lease release`: releases a lease, or evicts its holder.

use std::time::Duration;

use anyhow::anyhow;

use super::{Ending, failed, store, term, verbosity};
use crate::cli::{Common, ReleaseArgs};
use crate::exit::Exit;
use crate::job::Ended;
use crate::lease::{Eviction, Fence, Key, LeaseState, Loss, Release, Row};
use crate::output;
use crate::record::Said;
use crate::timing;

/// Releases a term, or with `--force` evicts the holder of a key.
///
/// # Errors
/// When an argument can't be valid, or the database failed.
pub fn release(common: &Common, args: ReleaseArgs) -> anyhow::Result<Ending> {
    let hold = timing::hold_at_least(args.hold_at_least)?;
    if args.force {
        let key = args.key.ok_or_else(|| anyhow!("--force without a KEY"))?;
        return evict(common, &key, args.fence, hold);
    }
    let term = term(args.key, args.holder, args.fence)?;
    let store = store(common)?.named(&term.key);
    let said = Said {
        ended: args.job_code.map(Ended::Code),
        ..store.said().clone()
    };
    let store = store.saying(said);
    let verbosity = verbosity(common);
    let key = term.key.as_str();
    let released = store.release(&term, hold, store.limit()).map_err(|f| {
        let doubt = "release it again; a second release does no harm";
        let (cannot, was) = (
            format!("cannot release {key}"),
            format!("{key} was released"),
        );
        failed(&cannot, &was, &f, doubt)
    })?;
    match released {
        Release::Released => Ok(Ending::Exit(Exit::Done)),
        Release::Expired(at) => {
            verbosity.error(format!(
                "{key} had expired at {at}, before it was released (renew it in time, or give a longer --ttl)"
            ));
            Ok(Ending::Exit(Exit::Lost))
        }
        Release::AlreadyReleased if let Some(culprit) = store.evicted_by(&term) => {
            let why = output::loss_by(&Loss::Released, Some(&culprit));
            verbosity.error(format!("cannot release {key}: {why}"));
            Ok(Ending::Exit(Exit::Lost))
        }
        Release::AlreadyReleased => {
            if hold.is_zero() {
                verbosity.step(format!("{key} was already released"));
            } else {
                verbosity.info(format!(
                    "{key} was already released; --hold-at-least {} changed nothing",
                    timing::human(hold)
                ));
            }
            Ok(Ending::Exit(Exit::Done))
        }
        Release::Lost(loss) => {
            let why = super::why_lost(&store, &term, &loss);
            verbosity.error(format!("cannot release {key}: {why}"));
            Ok(Ending::Exit(Exit::Lost))
        }
    }
}

fn evict(
    common: &Common,
    key: &Key,
    fence: Option<Fence>,
    hold: Duration,
) -> anyhow::Result<Ending> {
    let store = store(common)?.named(key);
    let verbosity = verbosity(common);
    let key_text = key.as_str();
    let eviction = store.evict(key, fence, hold).map_err(|f| {
        failed(
            &format!("cannot release {key_text} by force"),
            &format!("{key_text} was released by force"),
            &f,
            "`lease status` shows whether it was",
        )
    })?;
    Ok(match eviction {
        Eviction::Evicted(row) => {
            verbosity.info(evicted(key_text, &row, hold));
            Ending::Exit(Exit::Done)
        }
        Eviction::Over(row) => {
            verbosity.info(over(key_text, &row, hold));
            Ending::Exit(Exit::Done)
        }
        Eviction::NoTable(table) => {
            verbosity.info(format!(
                "nothing to release: table {table} does not exist (see --table)"
            ));
            Ending::Exit(Exit::Done)
        }
        Eviction::Free => {
            let open = if hold.is_zero() {
                ""
            } else {
                "; --hold-at-least changed nothing"
            };
            verbosity.info(format!("nothing to release: {key_text} is free{open}"));
            Ending::Exit(Exit::Done)
        }
        Eviction::OtherTerm { asked, found } => {
            let whose = match &found.state {
                LeaseState::Held(holder) => format!("{holder} holds it"),
                LeaseState::Expired(holder) => format!("{holder} held it, and let it expire"),
                LeaseState::Cooling | LeaseState::Free => "nobody holds it".to_owned(),
            };
            verbosity.error(format!(
                "cannot release {key_text} by force: its fence is {}, not {asked}; {whose}",
                found.fence
            ));
            Ending::Exit(Exit::Lost)
        }
    })
}

/// What is known after the answer to an eviction was lost: the term of `row` has ended, but its end may have another cause.
fn over(key: &str, row: &Row, hold: Duration) -> String {
    let doubt = if hold.is_zero() {
        String::new()
    } else {
        format!(
            "; it is unknown whether --hold-at-least {} was applied",
            timing::human(hold)
        )
    };
    match row.holder() {
        Some(holder) => format!(
            "{key} is no longer held by {holder} (fence {}){doubt}",
            row.fence
        ),
        None => format!("{key} is no longer cooling{doubt}"),
    }
}

/// The message for an eviction: whose term was ended, and whether the key is free now.
fn evicted(key: &str, row: &Row, hold: Duration) -> String {
    let fence = row.fence;
    let now = if hold.is_zero() {
        "it is free now".to_owned()
    } else {
        format!(
            "it stays closed until {} after the claim",
            timing::human(hold)
        )
    };
    match &row.state {
        LeaseState::Held(holder) => {
            let closed = if hold.is_zero() {
                String::new()
            } else {
                format!("; {now}")
            };
            format!(
                "{key}: evicted {holder} (fence {fence}), held for {}; a run will notice at its next heartbeat and stop its job{closed}",
                output::span(row.held_for_ms())
            )
        }
        LeaseState::Expired(holder) => {
            format!("{key} had expired, and {holder} had not released it (fence {fence}); {now}")
        }
        LeaseState::Cooling | LeaseState::Free => format!("{key} was cooling; {now}"),
    }
}
