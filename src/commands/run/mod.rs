//! `lease run`: runs a job while holding a lease.
//!
//! | file | what happens there |
//! |---|---|
//! | here | the claim, and the life of a run from there |
//! | `start` | from the grant to the job |
//! | `event_loop` | the one event loop; what an event means is decided in `supervise` |
//! | `end` | from the end of the job to the end of `lease` |

mod end;
mod event_loop;
mod start;

use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};
use std::time::Duration;

use anyhow::Context as _;

use super::{Ending, claim_failed, fresh_holder, gave_up, store, voice, waiting};
use crate::acquire::{Acquired, Input, Wanted, acquire};
use crate::cli::{Common, Run};
use crate::clock::BootTime;
use crate::exit::Exit;
use crate::heartbeat::{Beat, Heartbeat};
use crate::job::{Ended, Foreground, OnLoss};
use crate::lease::{Grant, Lease};
use crate::output::{self, Speaker};
use crate::process::{Children, Job, Terminal};
use crate::signals::{self, Caught};
use crate::store::{Sent, Store};
use crate::supervise::{Start, Supervisor};
use crate::timing::{self, Extension, Timing, Ttl};
use crate::watchdog::Watchdog;

/// The longest sleep of the loop: the channel's timeout stands still while the machine is suspended.
const SLICE: Duration = Duration::from_secs(1);
/// How long a release goes on although a signal asks to leave. Whoever ends a job often signals `lease` as well, a moment
/// later: a closed window sends HUP to the one and the shell to the other, a service manager sends TERM to both. That must
/// not leave the lease behind; a person who presses Ctrl-C because the database hangs may.
const PATIENCE: Duration = Duration::from_secs(2);
/// How long the last messages may take to be written.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// Claims, runs the job, keeps the lease, releases.
///
/// # Errors
/// When an argument can't be valid, the database failed before the job was started, or the job can't be started.
pub fn run(common: &Common, args: &Run) -> anyhow::Result<Ending> {
    let ttl = Ttl::new(args.acquire.ttl)?;
    let timing = Timing::new(
        ttl,
        args.heartbeat,
        args.grace,
        timing::db_timeout(common.db_timeout)?,
    )?;
    let hold = timing::hold_at_least(args.hold_at_least)?;
    let holder = fresh_holder(args.acquire.name.as_deref())?;
    let store = store(common)?.named(&args.key);

    // First of all: while there is one thread, no connection and nothing to be inherited.
    let last_line = output::watchdog_line(args.key.as_str());
    let watchdog = match args.on_loss {
        OnLoss::Stop => {
            Some(Watchdog::start(timing.grace(), &last_line).context("cannot start the watchdog")?)
        }
        OnLoss::Continue => None,
    };
    let mut children = Children {
        job: None,
        watchdog: watchdog.as_ref().map(Watchdog::pid),
    };
    let (sender, inputs) = mpsc::channel::<Input>();
    signals::listen(sender.clone()).context("cannot catch signals")?;
    let speaker = Speaker::start(voice(common));
    let store = store.told_to(Arc::new(speaker.narrator()));

    let wanted = Wanted {
        store: store.clone(),
        key: args.key.clone(),
        holder: holder.clone(),
        is_fresh: true,
        extension: Extension::To(ttl),
        wait: args.acquire.wait,
    };
    let (acquired, signal) = acquire(wanted, &inputs, sender.clone(), &mut children, |w| {
        speaker.info(waiting(&w, &args.key));
    })
    .context("cannot start a thread")?;
    let guard = Guard {
        timing,
        speaker,
        store,
        sender,
        inputs,
        children,
        watchdog,
        last_line,
        hold,
        on_loss: args.on_loss,
    };
    let granted = match acquired {
        Ok(Acquired::Granted(granted)) => granted,
        Ok(Acquired::Held(row)) => {
            guard.speaker.info(gave_up(args.acquire.wait, &row));
            return Ok(guard.leave(Ending::Code(args.acquire.conflict_exit_code)));
        }
        Ok(Acquired::Interrupted) => return Ok(guard.leave(interrupted(signal))),
        Err(failure) => {
            let error = claim_failed(failure, &args.key, &holder, Extension::To(ttl));
            guard.leave(Ending::Exit(Exit::Unavailable));
            return Err(error);
        }
    };
    if signal.is_some() {
        let ending = interrupted(signal);
        return Ok(guard.give_up(&granted.answer, granted.at, ending));
    }
    guard.run(args, granted)
}

fn interrupted(signal: Option<i32>) -> Ending {
    Ending::As {
        ended: signal.map_or(Ended::Code(Exit::Failed.code()), Ended::Signal),
        whole_group: false,
    }
}

/// What a run needs from its claim to its end.
struct Guard {
    timing: Timing,
    speaker: Speaker,
    store: Store,
    sender: Sender<Input>,
    inputs: Receiver<Input>,
    children: Children,
    watchdog: Option<Watchdog>,
    /// What a watchdog says that had to stop the job.
    last_line: String,
    hold: Duration,
    on_loss: OnLoss,
}

/// A job that was started, and what belongs to it.
struct Running {
    job: Job,
    terminal: Option<Terminal>,
    lease: Lease,
    /// Until when the lease is known to stay, by the server's clock.
    expires_at: String,
    /// The same by this machine's clock, and rather too late: counted from when the answer was seen.
    stays_until: BootTime,
    supervisor: Supervisor,
    /// Whether it was said that the job can't be signalled.
    out_of_reach: bool,
    /// Whether the last TERM had anybody to hit.
    was_there_to_stop: bool,
}

impl Running {
    fn foreground(&self) -> Foreground {
        self.terminal
            .as_ref()
            .map_or(Foreground::Other, Terminal::foreground)
    }
}

impl Guard {
    fn run(mut self, args: &Run, granted: Sent<Grant>) -> anyhow::Result<Ending> {
        let Sent { answer: grant, at } = granted;
        let key = grant.lease.key.as_str().to_owned();
        self.speaker.step(format!(
            "claimed {key} until {}, fence {}",
            grant.expires_at, grant.lease.fence
        ));
        let (grant, at) = match self.enough_time(&grant, at) {
            Ok(renewed) => renewed,
            Err(ending @ Ending::Exit(Exit::Lost)) => return Ok(self.leave(ending)),
            Err(ending) => return Ok(self.give_up(&grant, at, ending)),
        };
        let deadline = self.timing.deadline(at);
        let mut terminal = Terminal::open();
        let job = match self.start(args, &grant.lease, deadline, terminal.as_mut()) {
            Ok(job) => job,
            Err(error) => {
                let (ending, message) = start::cannot_start(&args.command[0], &key, error);
                self.speaker.error(message);
                return Ok(self.give_up(&grant, at, ending));
            }
        };
        self.children.job = Some(job.pid());
        self.speaker
            .step(format!("started the job, process {}", job.pid()));
        let supervisor = Supervisor::new(Start {
            deadline,
            grace: self.timing.grace(),
            on_loss: self.on_loss,
        });
        let mut running = Running {
            job,
            terminal,
            lease: grant.lease.clone(),
            expires_at: grant.expires_at,
            stays_until: BootTime::now() + self.timing.ttl().get(),
            supervisor,
            out_of_reach: false,
            was_there_to_stop: false,
        };
        let beats = self.sender.clone();
        let tell = move |beat| drop(beats.send(Input::Beat(beat)));
        let heartbeat = Heartbeat::start(self.store.clone(), grant.lease, self.timing, at, tell);
        if heartbeat.is_err() {
            drop(self.sender.send(Input::Beat(Beat::Died)));
        }
        // The job may have ended before its number was known here.
        drop(self.sender.send(Input::Caught(Caught::Child)));

        let finish = self.supervise(&mut running);
        if let Ok(heartbeat) = heartbeat {
            heartbeat.stop();
        }
        Ok(self.end(&running, finish))
    }
}
