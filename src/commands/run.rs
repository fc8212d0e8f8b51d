//! `lease run`: runs a job while holding a lease. The one event loop is here; what an event means is decided in
//! `supervise`.

use std::collections::VecDeque;
use std::ffi::OsStr;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::Duration;

use anyhow::Context as _;

use super::{Ending, claim_failed, fresh_holder, store, voice, waiting};
use crate::acquire::{Acquired, Input, Wanted, acquire};
use crate::cli::{Common, OnLoss, Run};
use crate::clock::BootTime;
use crate::exit::Exit;
use crate::heartbeat::{Beat, Heartbeat};
use crate::lease::{Grant, Lease, Release, Renewal};
use crate::output::{self, Speaker};
use crate::process::{
    self, Change, Children, Job, Launch, NoProgram, SpawnError, StopOutcome, Terminal,
};
use crate::signals::{self, Caught};
use crate::store::{Sent, Store};
use crate::supervise::{
    Action, Ended, Event, Finish, Foreground, RunExit, Start, Supervisor, Word,
};
use crate::timing::{self, Timing, Ttl};
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
        ttl,
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
            guard.speaker.info(output::held_by(&row));
            return Ok(guard.leave(Ending::Code(args.acquire.conflict_exit_code)));
        }
        Ok(Acquired::Interrupted) => return Ok(guard.leave(interrupted(signal))),
        Err(failure) => {
            let error = claim_failed(failure, &args.key, &holder, ttl);
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
    supervisor: Supervisor,
    /// Whether it was said that the job can't be signalled.
    out_of_reach: bool,
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
        let (grant, at) = match self.enough_time(grant, at) {
            Ok(renewed) => renewed,
            Err(ending) => return Ok(self.leave(ending)),
        };
        let deadline = self.timing.deadline(at);
        let mut terminal = Terminal::open();
        let job = match self.start(args, &grant.lease, deadline, terminal.as_mut()) {
            Ok(job) => job,
            Err(error) => {
                let (ending, message) = cannot_start(&args.command[0], error);
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
            supervisor,
            out_of_reach: false,
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

    /// A claim can take long, behind a locked row for example. The job gets a lease that still has its time.
    fn enough_time(&self, grant: Grant, at: BootTime) -> Result<(Grant, BootTime), Ending> {
        if !self.timing.next_beat(at).has_passed() {
            return Ok((grant, at));
        }
        let key = grant.lease.key.as_str();
        match self
            .store
            .renew(&grant.lease, self.timing.ttl(), self.timing.db_timeout())
        {
            Ok(Sent {
                answer: Renewal::Renewed(renewed),
                at,
            }) if !self.timing.stop_at(self.timing.deadline(at)).has_passed() => Ok((renewed, at)),
            Ok(Sent {
                answer: Renewal::Lost(loss),
                ..
            }) => {
                self.speaker.error(format!(
                    "{key} is lost before the job was started: {}",
                    output::loss(&loss)
                ));
                Err(Ending::Exit(Exit::Lost))
            }
            Ok(Sent {
                answer: Renewal::Renewed(_),
                ..
            }) => {
                self.speaker.error(format!(
                    "the database is too slow for --ttl {}: {key} is nearly over when it is granted, so the job is not started",
                    timing::human(self.timing.ttl().get())
                ));
                drop(
                    self.store
                        .release(&grant.lease, Duration::ZERO, self.timing.db_timeout()),
                );
                Err(Ending::Exit(Exit::Unavailable))
            }
            Err(failure) => {
                self.speaker.error(format!(
                    "cannot renew {key}, so the job is not started: {failure}"
                ));
                Err(Ending::Exit(Exit::Unavailable))
            }
        }
    }

    /// Starts the job under the watchdog's eyes. One that was killed while the claim waited is replaced.
    fn start(
        &mut self,
        args: &Run,
        lease: &Lease,
        deadline: BootTime,
        terminal: Option<&mut Terminal>,
    ) -> Result<Job, SpawnError> {
        if self.on_loss == OnLoss::Stop {
            let told = self
                .watchdog
                .as_mut()
                .map(|w| w.tell(Word::Deadline(deadline)));
            if self.children.watchdog.is_none() || !matches!(told, Some(Ok(()))) {
                self.replace_watchdog(None, Word::Deadline(deadline))
                    .map_err(SpawnError::NotAnnounced)?;
            }
        }
        let fence = lease.fence.to_string();
        let environment = [
            ("FENCE", OsStr::new(&fence)),
            ("LEASE_KEY", OsStr::new(lease.key.as_str())),
            ("LEASE_HOLDER", OsStr::new(lease.holder.as_str())),
        ];
        process::spawn(Launch {
            command: &args.command,
            environment: &environment,
            announce: self.watchdog.as_ref().map(Watchdog::announcer),
            terminal,
        })
    }

    fn replace_watchdog(&mut self, job: Option<&Job>, word: Word) -> io::Result<()> {
        if let Some(mut old) = self.watchdog.take()
            && self.children.watchdog.is_none()
        {
            old.was_reaped();
        }
        // One that could not be told everything ends with this function, and with it its number.
        self.children.watchdog = None;
        let grace = self.timing.grace();
        let mut watchdog = match job {
            Some(job) => Watchdog::start_over(grace, job.group())?,
            None => Watchdog::start(grace)?,
        };
        watchdog.tell(word)?;
        self.children.watchdog = Some(watchdog.pid());
        self.watchdog = Some(watchdog);
        Ok(())
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
            Input::Caught(Caught::Signal(signal)) => events.push_back(Event::Signal(signal)),
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
                events.push_back(Event::Renewed(self.timing.deadline(at)));
            }
            Input::Beat(Beat::Failed(failure)) => {
                events.push_back(Event::RenewFailed(failure.to_string()))
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
            Action::StopSelf(signal) => {
                if process::stop_own_group(signal) == StopOutcome::StayedAwake {
                    events.push_back(Event::StayedAwake(signal));
                }
            }
            Action::CountLeftovers => {
                events.push_back(Event::Leftovers(running.job.group().count()))
            }
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

    /// Nothing of the job is left: release, and leave as it did.
    fn end(mut self, running: &Running, finish: Finish) -> Ending {
        self.watchdog = None;
        let lost = finish.release && self.release(&running.lease, self.hold, &running.expires_at);
        let ending = match finish.exit {
            RunExit::AsJob { .. } if lost && self.on_loss == OnLoss::Stop => {
                Ending::Exit(Exit::Lost)
            }
            RunExit::AsJob { ended, whole_group } => Ending::As { ended, whole_group },
            RunExit::Lost => Ending::Exit(Exit::Lost),
            RunExit::Failed => Ending::Exit(Exit::Failed),
        };
        self.leave(ending)
    }

    /// Releases, bounded in time; a signal that ends processes cuts it short, but not before [`PATIENCE`] is over. Answers
    /// whether the lease turned out to be lost before.
    fn release(&mut self, lease: &Lease, hold: Duration, expires_at: &str) -> bool {
        let key = lease.key.as_str();
        let (store, term, limit) = (self.store.clone(), lease.clone(), self.timing.db_timeout());
        let (answers, answer) = mpsc::channel();
        let started = thread::Builder::new()
            .name("lease-release".to_owned())
            .spawn(move || drop(answers.send(store.release(&term, hold, limit))));
        let now = BootTime::now();
        let (patient_until, until) = (now + PATIENCE, now + limit + SLICE);
        let mut asked_to_leave = false;
        let reason = if let Err(error) = started {
            error.to_string()
        } else {
            loop {
                match answer.recv_timeout(Duration::from_millis(20)) {
                    Ok(Ok(Release::Released | Release::AlreadyReleased)) => {
                        self.speaker.step(format!("released {key}"));
                        return false;
                    }
                    Ok(Ok(Release::Lost(loss))) => {
                        self.speaker.error(format!(
                            "{key} was lost before the job ended: {}",
                            output::loss(&loss)
                        ));
                        return true;
                    }
                    Ok(Err(failure)) => break failure.to_string(),
                    Err(_) if until.has_passed() => {
                        break "the database did not answer in time".to_owned();
                    }
                    Err(_) => {}
                }
                if let Ok(Input::Caught(caught)) = self.inputs.try_recv() {
                    asked_to_leave |= caught.ends_a_wait();
                }
                if asked_to_leave && patient_until.has_passed() {
                    break "interrupted".to_owned();
                }
            }
        };
        self.speaker.error(format!(
            "{key} could not be released, so it stays until {expires_at}: {reason}"
        ));
        false
    }

    /// The job was never started: the lease is given back at once.
    fn give_up(mut self, grant: &Grant, ending: Ending) -> Ending {
        self.watchdog = None;
        self.release(&grant.lease, Duration::ZERO, &grant.expires_at);
        self.leave(ending)
    }

    fn leave(self, ending: Ending) -> Ending {
        let Self {
            speaker,
            store,
            watchdog,
            ..
        } = self;
        // Ends it, if there is one.
        drop(watchdog);
        drop(store);
        speaker.finish(LAST_WORDS);
        ending
    }
}

/// How a shell reports it, and a message.
fn cannot_start(command: &OsStr, error: SpawnError) -> (Ending, String) {
    let command = command.to_string_lossy();
    match error {
        SpawnError::NoProgram(NoProgram::NotFound) => (
            Ending::Exit(Exit::NotFound),
            format!("cannot run {command}: command not found"),
        ),
        SpawnError::NoProgram(NoProgram::CannotExecute(error)) => (
            Ending::Exit(Exit::CannotExecute),
            format!("cannot run {command}: {error}"),
        ),
        SpawnError::NotAnnounced(error) => (
            Ending::Exit(Exit::Failed),
            format!("cannot run {command}: there is no watchdog to guard it: {error}"),
        ),
        SpawnError::Failed(error) => (
            Ending::Exit(Exit::Failed),
            format!("cannot run {command}: {error}"),
        ),
    }
}
