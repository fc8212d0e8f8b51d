//! The effects of the loop on a job: its watchdog, its start, its terminal and its heartbeat.

use std::collections::VecDeque;
use std::ffi::OsStr;
use std::io;
use std::time::Duration;

use super::input::Input;
use super::state::EventLoop;
use crate::clock::BootTime;
use crate::heartbeat::Heartbeat;
use crate::job::{Foreground, Leftovers, OnLoss, Signal};
use crate::lease::Term;
use crate::output::{Level, Message};
use crate::process::{self, Launch, NoProgram, SpawnError, Terminal};
use crate::signals::Caught;
use crate::supervise::{Event, NotStarted, StartAnswer, WatchdogOrder};
use crate::text::os_error_text;
use crate::watchdog::Watchdog;

impl EventLoop {
    pub(super) fn foreground(&self) -> Foreground {
        self.job
            .as_ref()
            .and_then(|control| control.terminal.as_ref())
            .map_or(Foreground::Other, Terminal::foreground)
    }

    /// Gives the watchdog its first deadline. A watchdog that was killed while the claim waited is replaced.
    pub(super) fn arm_watchdog(&mut self, deadline: BootTime) -> Event {
        let order = WatchdogOrder::Deadline(deadline);
        let armed = Event::Start(StartAnswer::Armed);
        let Some(control) = &mut self.job else {
            return armed;
        };
        if control.on_loss == OnLoss::Continue {
            return armed;
        }
        let told = control.watchdog.as_mut().map(|w| w.tell(order));
        if self.children.watchdog.is_some() && matches!(told, Some(Ok(()))) {
            return armed;
        }
        match self.replace_watchdog(order) {
            Ok(()) => armed,
            Err(error) => Event::Unprotected(os_error_text(&error)),
        }
    }

    pub(super) fn start_job(
        &mut self,
        term: &Term,
        not_after: BootTime,
        events: &mut VecDeque<Event>,
    ) {
        let Some(control) = &mut self.job else { return };
        control.terminal = Terminal::open();
        let fence = term.fence.to_string();
        let environment = [
            ("FENCE", OsStr::new(&fence)),
            ("LEASE_KEY", OsStr::new(term.key.as_str())),
            ("LEASE_HOLDER", OsStr::new(term.holder.as_str())),
        ];
        let started = process::spawn(Launch {
            command: &control.command,
            environment: &environment,
            announce: control.watchdog.as_ref().map(Watchdog::announcer),
            not_after,
            terminal: control.terminal.as_mut(),
        });
        match started {
            Ok(job) => {
                self.children.job = Some(job.pid());
                let text = format!("started the job, process {}", job.pid());
                let started = Message::new(Level::Step, "job_started", text);
                self.stderr.write(&started.with("pid", job.pid()));
                control.job = Some(job);
                control.started = Some(BootTime::now());
                events.push_back(Event::Start(StartAnswer::Started));
                // The job may have ended before its pid was known here.
                drop(self.sender.send(Input::Caught(Caught::Child)));
            }
            Err(error) => {
                let command = control.command.first();
                let why = why_not_started(command.map_or(OsStr::new(""), |c| c), error);
                events.push_back(Event::Start(StartAnswer::NotStarted(why)));
            }
        }
    }

    pub(super) fn start_heartbeat(
        &mut self,
        term: Term,
        sent: BootTime,
        took: Duration,
        events: &mut VecDeque<Event>,
    ) {
        let Some(control) = &mut self.job else { return };
        let beats = self.sender.clone();
        let tell = move |beat| drop(beats.send(Input::Beat(beat)));
        let store = self.claimant.store.clone();
        match Heartbeat::start(store, term, control.timing, (sent, took), tell) {
            Ok(heartbeat) => control.heartbeat = Some(heartbeat),
            Err(error) => events.push_back(Event::NoHeartbeat(os_error_text(&error))),
        }
    }

    pub(super) fn stop_heartbeat(&mut self, events: &mut VecDeque<Event>) {
        if let Some(heartbeat) = self.job.as_mut().and_then(|c| c.heartbeat.take())
            && heartbeat.stop()
        {
            events.push_back(Event::RenewalInDoubt);
        }
    }

    /// The job's first process was reaped.
    pub(super) fn job_has_ended(&mut self) {
        if let Some(control) = &mut self.job {
            control.took = control.started.map(|at| BootTime::now().since(at));
        }
    }

    pub(super) fn signal_job(&mut self, signal: Signal) {
        let Some(control) = &mut self.job else { return };
        let Some(job) = &control.job else { return };
        if let Err(error) = job.group().signal(signal)
            && error.raw_os_error() == Some(libc::EPERM)
            && !control.out_of_reach
        {
            control.out_of_reach = true;
            let text = format!(
                "cannot signal the job of {}: it runs as another user, so lease cannot stop it",
                self.claimant.key.as_str()
            );
            self.stderr
                .write(&Message::new(Level::Error, "job_out_of_reach", text));
        }
    }

    pub(super) fn tell_watchdog(&mut self, order: WatchdogOrder, events: &mut VecDeque<Event>) {
        let Some(control) = &mut self.job else { return };
        let told = control.watchdog.as_mut().map(|w| w.tell(order));
        events.extend(match (told, order) {
            (Some(Ok(())), WatchdogOrder::Deadline(at)) => Some(Event::WatchdogTold(at)),
            (Some(Ok(())), WatchdogOrder::KillAt(_)) => None,
            (Some(Err(_)) | None, _) => Some(Event::WatchdogDied),
        });
    }

    pub(super) fn replace_watchdog(&mut self, order: WatchdogOrder) -> io::Result<()> {
        let Some(control) = &mut self.job else {
            return Ok(());
        };
        if let Some(mut old) = control.watchdog.take()
            && self.children.watchdog.is_none()
        {
            old.was_reaped();
        }
        // If this fails, the new watchdog is dropped, and no pid must be left here.
        self.children.watchdog = None;
        let (grace, line) = (control.timing.grace(), &control.watchdog_line);
        let watchdog = match &control.job {
            Some(job) => Watchdog::start_over(grace, job.group(), order, line)?,
            None => {
                let mut watchdog = Watchdog::start(grace, line)?;
                watchdog.tell(order)?;
                watchdog
            }
        };
        self.children.watchdog = Some(watchdog.pid());
        control.watchdog = Some(watchdog);
        Ok(())
    }

    pub(super) fn dismiss_watchdog(&mut self) {
        if let Some(mut watchdog) = self.job.as_mut().and_then(|c| c.watchdog.take()) {
            if self.children.watchdog.is_none() {
                watchdog.was_reaped();
            }
            self.children.watchdog = None;
            watchdog.dismiss();
        }
    }

    pub(super) fn take_terminal(&self, restore_modes: bool) {
        if let Some(terminal) = self.job.as_ref().and_then(|c| c.terminal.as_ref()) {
            terminal.take_back(restore_modes);
        }
    }

    pub(super) fn give_terminal(&mut self) {
        if let Some(terminal) = self.job.as_mut().and_then(|c| c.terminal.as_mut()) {
            terminal.give();
        }
    }

    pub(super) fn look_at_leftovers(&self) -> Event {
        let job = self.job.as_ref().and_then(|c| c.job.as_ref());
        Event::Leftovers(job.map_or(Leftovers::Empty, |job| job.group().look()))
    }
}

/// Commands that only a shell can run: those that change the shell itself, and words of its syntax.
const BUILTINS: &[&str] = &[
    ".", ":", "{", "(", "!", "[[", "alias", "bg", "break", "builtin", "case", "cd", "command",
    "continue", "declare", "eval", "exec", "exit", "export", "fc", "fg", "for", "function",
    "getopts", "hash", "if", "jobs", "let", "local", "popd", "pushd", "read", "readonly", "return",
    "set", "shift", "shopt", "source", "time", "times", "trap", "type", "typeset", "ulimit",
    "umask", "unalias", "unset", "until", "wait", "while",
];

/// Why the job was not started, told apart like in a shell: 126 and 127.
fn why_not_started(command: &OsStr, error: SpawnError) -> NotStarted {
    let command = command.to_string_lossy();
    let cannot = |why: &str| format!("cannot run {command}: {why}");
    match error {
        SpawnError::NoProgram(NoProgram::NotFound) => NotStarted::NotFound(if command.is_empty() {
            "cannot run the command: it is empty".to_owned()
        } else if BUILTINS.contains(&&*command) {
            cannot(&format!(
                "it is part of the shell, not a program (write sh -c '{command} ...')"
            ))
        } else if command.contains(' ') {
            cannot(
                "command not found (write the command and each argument as separate words, or use sh -c '...')",
            )
        } else if command.contains('=') {
            cannot(&format!(
                "command not found (to set a variable, write env {command} and the command)"
            ))
        } else {
            cannot("command not found")
        }),
        SpawnError::NoProgram(NoProgram::NoInterpreter) => NotStarted::NotFound(cannot(
            "the interpreter that its first line names does not exist (does the file have Windows line endings?)",
        )),
        SpawnError::NoProgram(NoProgram::CannotExecute(error)) => {
            NotStarted::CannotExecute(cannot(&os_error_text(&error)))
        }
        SpawnError::NotAnnounced(error) => NotStarted::Failed(cannot(&format!(
            "cannot reach its watchdog: {}",
            os_error_text(&error)
        ))),
        SpawnError::TooLate => NotStarted::TooLate,
        SpawnError::Failed(error) => NotStarted::Failed(cannot(&os_error_text(&error))),
    }
}
