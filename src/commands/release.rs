//! `lease release`: gives a lease back, or takes it from whoever has it.

use std::time::Duration;

use anyhow::anyhow;

use super::{Ending, doubt, store, term, voice};
use crate::cli::{Common, ReleaseArgs};
use crate::exit::Exit;
use crate::lease::{Eviction, Fence, Key, Release};
use crate::output;
use crate::timing::{self, human};

/// Releases.
///
/// # Errors
/// When an argument can't be valid, or the database failed.
pub fn release(common: &Common, args: ReleaseArgs) -> anyhow::Result<Ending> {
    let hold = timing::hold_at_least(args.hold_at_least)?;
    if args.force {
        let key = args.key.ok_or_else(|| anyhow!("--force without a KEY"))?;
        return evict(common, &key, args.fence, hold);
    }
    let lease = term(args.key, args.holder, args.fence)?;
    let store = store(common)?.named(&lease.key);
    let voice = voice(common);
    let key = lease.key.as_str();
    let released = store
        .release(&lease, hold, store.limit())
        .map_err(|failure| {
            let message = doubt(&failure, "release it again; a second release does no harm");
            anyhow::Error::new(failure).context(format!("cannot release {key}: {message}"))
        })?;
    match released {
        Release::Released => Ok(Ending::Exit(Exit::Done)),
        Release::AlreadyReleased => {
            voice.step(format!("{key} was released before"));
            Ok(Ending::Exit(Exit::Done))
        }
        Release::Lost(loss) => {
            voice.error(format!("cannot release {key}: {}", output::loss(&loss)));
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
    let voice = voice(common);
    let key_text = key.as_str();
    let eviction = store.evict(key, fence, hold).map_err(|failure| {
        let message = doubt(&failure, "`lease status` shows it");
        anyhow::Error::new(failure)
            .context(format!("cannot release {key_text} by force: {message}"))
    })?;
    Ok(match eviction {
        Eviction::Evicted(row) => {
            let held = human(Duration::from_secs(
                u64::try_from(row.held_for_ms / 1000).unwrap_or(0),
            ));
            match &row.holder {
                Some(holder) => voice.info(format!(
                    "{key_text} was taken from {holder} (fence {}), who had it for {held}; a job that runs under it stops at its next heartbeat",
                    row.fence
                )),
                None => voice.info(format!("{key_text} is open again: nobody held it")),
            }
            Ending::Exit(Exit::Done)
        }
        Eviction::Free => {
            voice.info(format!(
                "{key_text} is free: there was nobody to take it from"
            ));
            Ending::Exit(Exit::Done)
        }
        Eviction::OtherTerm(row) => {
            voice.error(format!(
                "cannot release {key_text} by force: its fence is {} now{}",
                row.fence,
                row.holder
                    .map(|h| format!(", held by {h}"))
                    .unwrap_or_default()
            ));
            Ending::Exit(Exit::Lost)
        }
    })
}
