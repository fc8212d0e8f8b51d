//! `lease status --watch` on a screen.

use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, anyhow};

use super::super::Ending;
use super::view::View;
use crate::exit::Exit;
use crate::interrupt::Interrupt;
use crate::job::{Ended, Signal};
use crate::output::{self, Screen, Shown};
use crate::process;
use crate::signals::{self, Caught};
use crate::store::{Failure, Store};
use crate::text::os_error_text;

/// How often a watch in the background looks whether it is in the foreground again. A shell need not send CONT for it.
const SLICE: Duration = Duration::from_secs(1);

/// What the watch waits for.
enum Input {
    Caught(Caught),
    Key(u8),
    Looked(Result<(Vec<Shown>, Option<String>), Failure>),
}

impl From<Caught> for Input {
    fn from(caught: Caught) -> Self {
        Self::Caught(caught)
    }
}

/// What is known of the leases.
#[derive(Default)]
struct Known {
    shown: Vec<Shown>,
    no_table: Option<String>,
    /// The local time of the last answer.
    answered: Option<String>,
    /// Why there is no newer answer.
    failure: Option<String>,
}

/// Shows the leases on a screen until `q` or a signal. A temporary failure is shown there; any other one ends the watch.
///
/// The leases are read on a thread of its own, so that a database that hangs delays neither `q` nor a new size.
pub(super) fn on_screen(
    screen: &Screen,
    store: Store,
    view: View,
    interval: Duration,
) -> anyhow::Result<Ending> {
    let (sender, inputs) = mpsc::channel::<Input>();
    signals::listen(sender.clone()).context("cannot catch signals")?;
    let keys = sender.clone();
    process::read_keys(move |key| keys.send(Input::Key(key)).is_ok())
        .context("cannot read the keyboard")?;
    let end = Arc::new(Interrupt::new());
    let (ended, looking) = (Arc::clone(&end), store.clone());
    thread::Builder::new()
        .name("lease-looks".to_owned())
        .spawn(move || {
            while !ended.is_raised() {
                let looked = view.look(&looking, &ended);
                if sender.send(Input::Looked(looked)).is_err() {
                    return;
                }
                ended.sleep(interval);
            }
        })
        .context("cannot start a thread")?;

    let ending = show(screen, &store, &inputs);
    end.raise();
    ending
}

fn show(screen: &Screen, store: &Store, inputs: &mpsc::Receiver<Input>) -> anyhow::Result<Ending> {
    let mut known = Known::default();
    draw(screen, store, &known)?;
    loop {
        match inputs.recv_timeout(SLICE) {
            Ok(Input::Looked(Ok((shown, no_table)))) => {
                known = Known {
                    shown,
                    no_table,
                    answered: Some(output::local_time()),
                    failure: None,
                };
            }
            Ok(Input::Looked(Err(failure))) if failure.fault.is_transient() => {
                known.failure = Some(failure.to_string());
            }
            Ok(Input::Looked(Err(failure))) => {
                return Err(anyhow::Error::new(failure).context("cannot read the leases"));
            }
            Ok(Input::Key(b'q' | b'Q')) => return Ok(Ending::Exit(Exit::Done)),
            Ok(Input::Caught(Caught::Signal(signal))) => {
                if let Some(ending) = on_signal(screen, signal) {
                    return Ok(ending);
                }
            }
            Ok(Input::Key(_) | Input::Caught(Caught::Child)) => continue,
            Err(RecvTimeoutError::Timeout) if screen.is_shown() => continue,
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return Err(anyhow!("the watch has ended")),
        }
        draw(screen, store, &known)?;
    }
}

/// What a signal does. One that ends a program by default ends the watch, and the terminal is restored first.
fn on_signal(screen: &Screen, signal: Signal) -> Option<Ending> {
    match signal {
        Signal::INT | Signal::TERM | Signal::HUP => Some(Ending::Exit(Exit::Done)),
        Signal::WINCH => None,
        // It may have been stopped by STOP, and a shell has had the terminal since.
        Signal::CONT => {
            screen.forget();
            None
        }
        Signal::TSTP | Signal::TTIN | Signal::TTOU => {
            screen.leave();
            let _ = process::stop_own_group(signal, false);
            None
        }
        other => Some(Ending::As {
            ended: Ended::Signal(other),
            whole_group: false,
        }),
    }
}

fn draw(screen: &Screen, store: &Store, known: &Known) -> anyhow::Result<()> {
    let table = if let Some(table) = &known.no_table
        && known.shown.is_empty()
    {
        format!("table {table} does not exist yet (the first claim creates it; see --table)")
    } else if !known.shown.is_empty() {
        output::status_table(&known.shown, Some(screen.size().columns))
    } else if known.answered.is_some() {
        "no leases".to_owned()
    } else {
        String::new()
    };
    let notice = known.failure.as_ref().map(|failure| match &known.answered {
        Some(time) => format!("cannot read the leases since {time}: {failure}"),
        None => format!("cannot read the leases: {failure}"),
    });
    screen
        .draw(&output::ScreenView {
            title: &store.place(),
            time: known.answered.as_deref().unwrap_or_default(),
            notice: notice.as_deref(),
            table: &table,
        })
        .map_err(|error| anyhow!("cannot write to the terminal: {}", os_error_text(&error)))
}
