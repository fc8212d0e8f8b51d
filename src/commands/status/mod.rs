//! `lease status`: who holds what, and until when.

mod kept;
mod view;
mod watch;

use std::io::{self, IsTerminal};
use std::sync::Arc;
use std::time::Duration;

use self::kept::{Form, Kept};
use self::view::View;
use super::{Ending, print_or_leave, printed_or_left, store, verbosity};
use crate::cli::{self, Common, Status, StatusFormat, WatchArgument};
use crate::exit::Exit;
use crate::interrupt::Interrupt;
use crate::lease::Key;
use crate::output::{self, Screen, Verbosity};
use crate::sql::Pattern;
use crate::store::{Reporter, Store};

/// The interval of `--watch` if none is given.
const WATCH_INTERVAL: Duration = Duration::from_secs(2);

/// Shows the leases, once or until interrupted.
///
/// # Errors
/// When an argument can't be valid, the database failed, or stdout can't be written.
pub fn status(common: &Common, mut args: Status) -> anyhow::Result<Ending> {
    let mut interval = None;
    if let Some(given) = args.watch.take() {
        interval = Some(WATCH_INTERVAL);
        if let Some(text) = given {
            match cli::watch(&text)? {
                WatchArgument::Interval(every) => interval = Some(every),
                // `--watch nightly`: the interval was left out, and this is a key.
                WatchArgument::Key(key) => args.keys.insert(0, key),
            }
        }
    }
    let patterns: Vec<Pattern> = args.keys.iter().map(|key| Pattern::parse(key)).collect();
    for pattern in &patterns {
        if let Some(plain) = &pattern.plain {
            plain.parse::<Key>()?;
        }
    }
    let view = View {
        // A monitor asks when a job has last succeeded, mostly while its lease is not held.
        free: args.all || !patterns.is_empty() || args.format == StatusFormat::OpenMetrics,
        patterns,
        format: args.format,
    };
    let store = store(common)?;
    let verbosity = verbosity(common);
    if let Some(interval) = interval {
        if view.format == StatusFormat::Table
            && let Some(screen) = Screen::open()
        {
            let store = if output::stderr_is_a_terminal() {
                store.reporting_to(silent())
            } else {
                store
            };
            return watch::on_screen(&screen, store, view, interval);
        }
        return watch(&store, &view, interval, verbosity);
    }

    let listing = store
        .status(&view.patterns, view.free, None, || {
            Kept::new(&view.patterns, Form::of(view.format))
        })
        .map_err(|f| anyhow::Error::new(f).context("cannot read the leases"))?;
    let kept = listing.rows;
    let all_held = kept.all_held();
    if args.exit_code && common.quiet {
        // A monitor wants the exit code only.
    } else {
        match kept.form {
            Form::Lines(lines) if lines.is_empty() && !lines.is_json() => {
                verbosity.info("no leases");
            }
            Form::Lines(lines) => {
                printed_or_left(lines.print())?;
            }
            Form::Gauges(gauges) => {
                printed_or_left(gauges.print())?;
            }
            Form::All(shown) => {
                print_or_leave(&view.text(&shown, None))?;
            }
        }
    }
    if let Some(table) = &listing.no_table {
        verbosity.info(format!(
            "table {table} does not exist yet (the first claim creates it; see --table)"
        ));
    }
    if listing.unsafe_default {
        verbosity.info(store.advice_on_fences());
    }
    Ok(Ending::Exit(if args.exit_code && !all_held {
        Exit::NotHeld
    } else {
        Exit::Done
    }))
}

/// For messages that would be written across the screen.
fn silent() -> Reporter {
    Reporter {
        step: Arc::new(|_| {}),
        warning: Arc::new(|_| {}),
    }
}

/// Shows the leases again and again. A temporary failure is reported and the watch goes on; any other failure ends it.
fn watch(
    store: &Store,
    view: &View,
    interval: Duration,
    verbosity: Verbosity,
) -> anyhow::Result<Ending> {
    static INTERRUPT: Interrupt = Interrupt::new();
    // This is refused if a signal is ignored already, as INT is for a background job of a script. It then stays ignored.
    match ctrlc::try_set_handler(|| INTERRUPT.raise()) {
        Ok(()) | Err(ctrlc::Error::MultipleHandlers | ctrlc::Error::NoSuchSignal(_)) => {}
        // The handlers are installed, but the thread that acts on signals is missing: only KILL would end the watch.
        Err(ctrlc::Error::System(error)) => {
            return Err(anyhow::Error::new(error).context("cannot catch signals"));
        }
    }
    let screen = io::stdout().is_terminal();
    while !INTERRUPT.is_raised() {
        match view.look(store, &INTERRUPT) {
            Ok((shown, _)) => {
                let text = view.text(&shown, screen.then(output::stdout_columns).flatten());
                let drawn = if screen { output::redraw(&text) } else { text };
                if !print_or_leave(&drawn)? {
                    break;
                }
            }
            Err(_) if INTERRUPT.is_raised() => break,
            Err(failure) if failure.fault.is_transient() => {
                verbosity.error(format!("cannot read the leases: {failure}"));
            }
            Err(failure) => {
                return Err(anyhow::Error::new(failure).context("cannot read the leases"));
            }
        }
        INTERRUPT.sleep(interval);
    }
    Ok(Ending::Exit(Exit::Done))
}
