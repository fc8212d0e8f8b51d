//! `lease run`: runs a job while holding a lease. The one event loop is here; what an event means is decided in
//! `supervise`.

mod end;
mod start;

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::time::Duration;

use anyhow::Context as _;

use super::{Ending, claim_failed, fresh_holder, gave_up, store, voice, waiting};
use crate::acquire::{Acquired, Input, Wanted, acquire};
use crate::cli::{Common, OnLoss, Run};
use crate::clock::BootTime;
use crate::exit::Exit;
use crate::heartbeat::{Beat, Heartbeat};
use crate::lease::{Grant, Lease};
use crate::output::{self, Speaker};
use crate::process::{self, Change, Children, Job, StopOutcome, Terminal};
use crate::signals::{self, Caught};
use crate::store::{Failure, Sent, Store};
use crate::supervise::{Action, Ended, Event, Finish, Foreground, Report, Start, Supervisor};
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
    let watchdog = match args.on_loss {
        OnLoss::Stop => Some(Watchdog::start(timing.grace()).context("cannot start the watchdog")?),
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
        return Ok(guard.give_up(&granted.answer, ending));
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
            Err(ending) => return Ok(self.give_up(&grant, ending)),
        };
        let deadline = self.timing.deadline(at);
        let mut terminal = Terminal::open();
        let job = match self.start(args, &grant.lease, deadline, terminal.as_mut()) {
            Ok(job) => job,
            Err(error) => {
                let (ending, message) = start::cannot_start(&args.command[0], error);
                self.speaker.error(message);
                return Ok(self.give_up(&grant, ending));
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

    /// Feeds events in and carries actions out until nothing of the job is left.
    fn supervise(&mut self, running: &mut Running) -> Finish {
        loop {
            let wake = running
                .supervisor
                .next_wakeup()
                .map_or(SLICE, |at| at.remaining().min(SLICE));
            let mut events = VecDeque::new();
            match self.inputs.recv_timeout(wake) {
                Ok(input) => self.read(input, running, &mut events),
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
                    events.push_back(Event::Tick)
                }
            }
            while let Some(event) = events.pop_front() {
                for action in running.supervisor.handle(BootTime::now(), event) {
                    if let Some(finish) = self.carry_out(action, running, &mut events) {
                        return finish;
                    }
                }
            }
        }
    }

    fn read(&mut self, input: Input, running: &mut Running, events: &mut VecDeque<Event>) {
        match input {
            Input::Caught(caught @ Caught::Signal(signal)) => {
                events.push_back(match caught.wants_terminal() {
                    Some(_) => Event::TerminalWanted(signal, running.foreground()),
                    None => Event::Signal(signal),
                });
            }
            Input::Caught(Caught::Child) => {
                while let Some(change) = process::reap(&mut self.children) {
                    events.push_back(match change {
                        Change::JobExited(ended) => Event::JobExited(ended, running.foreground()),
                        Change::JobStopped(signal) => {
                            Event::JobStopped(signal, running.foreground())
                        }
                        Change::JobContinued => Event::JobContinued,
                        Change::WatchdogDied => Event::WatchdogDied,
                    });
                }
            }
            Input::Beat(Beat::Renewed { at, expires_at }) => {
                self.speaker.step(format!(
                    "renewed {} until {expires_at}",
                    running.lease.key.as_str()
                ));
                running.expires_at = expires_at;
                running.stays_until = BootTime::now() + self.timing.ttl().get();
                events.push_back(Event::Renewed(self.timing.deadline(at)));
            }
            Input::Beat(Beat::Failed(failure)) => {
                events.push_back(Event::RenewFailed(why_not_renewed(&failure)));
            }
            Input::Beat(Beat::Lost(loss)) => events.push_back(Event::Lost(loss)),
            Input::Beat(Beat::Died) => events.push_back(Event::HeartbeatDied),
            Input::Waiting(_) | Input::Acquired(_) => {}
        }
    }

    fn carry_out(
        &mut self,
        action: Action,
        running: &mut Running,
        events: &mut VecDeque<Event>,
    ) -> Option<Finish> {
        match action {
            Action::Signal(signal) => {
                if signal == libc::SIGTERM {
                    // A job that the watchdog had stopped before this process woke up is not killed by it.
                    running.was_there_to_stop = running.job.group().count() > 0;
                }
                if let Err(error) = running.job.group().signal(signal)
                    && error.raw_os_error() == Some(libc::EPERM)
                    && !running.out_of_reach
                {
                    running.out_of_reach = true;
                    self.speaker.error("the job can't be signalled: it runs as another user, so lease can't stop it");
                }
            }
            Action::TellWatchdog(word) => {
                let told = self.watchdog.as_mut().map(|w| w.tell(word));
                if !matches!(told, Some(Ok(()))) {
                    events.push_back(Event::WatchdogDied);
                }
            }
            Action::ReplaceWatchdog(word) => {
                if let Err(error) = self.replace_watchdog(Some(&running.job), word) {
                    events.push_back(Event::Unprotected(error.to_string()));
                }
            }
            Action::TakeTerminal { restore_modes } => {
                if let Some(terminal) = &running.terminal {
                    terminal.take_back(restore_modes);
                }
            }
            Action::GiveTerminal => {
                if let Some(terminal) = &mut running.terminal {
                    terminal.give();
                }
            }
            Action::StopSelf {
                signal,
                whole_group,
            } => {
                if process::stop_own_group(signal, whole_group) == StopOutcome::StayedAwake {
                    events.push_back(Event::StayedAwake(signal));
                }
            }
            Action::WakeNeighbours => process::wake_own_group(),
            Action::CountLeftovers => {
                events.push_back(Event::Leftovers(running.job.group().count()))
            }
            Action::Report(Report::Killed) if !running.was_there_to_stop => {}
            Action::Report(report) => {
                let (words, always) = output::report(&report, running.lease.key.as_str());
                if always {
                    self.speaker.error(words)
                } else {
                    self.speaker.info(words)
                }
            }
            Action::Finish(finish) => return Some(finish),
        }
        None
    }
}

/// Whether the database was not there or refused is what people ask first.
fn why_not_renewed(failure: &Failure) -> String {
    if failure.is_silence() {
        format!("the database could not be reached: {failure}")
    } else {
        failure.to_string()
    }
}
