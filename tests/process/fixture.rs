//! A `lease run` without a database: the real rooms around a heartbeat that only pretends.
//!
//! The test binary runs itself as this program, so that forks, signals and terminals belong to a process of its own.

#![expect(
    clippy::exit,
    clippy::print_stderr,
    reason = "this is a program of its own"
)]

use std::ffi::OsString;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use pglease::cli::OnLoss;
use pglease::clock::BootTime;
use pglease::process::{
    self, Change, Children, Job, Launch, NoProgram, SpawnError, StopOutcome, Terminal,
};
use pglease::signals::{self, Caught};
use pglease::supervise::{Action, Event, Finish, Foreground, Report, RunExit, Start, Supervisor};
use pglease::watchdog::Watchdog;

/// What the loop gets.
enum Input {
    Caught(Caught),
    Decide(Event),
}

impl From<Caught> for Input {
    fn from(caught: Caught) -> Self {
        Self::Caught(caught)
    }
}

/// The options: `KEY=VALUE...`, then `--`, then the command.
struct Options {
    ttl: Duration,
    grace: Duration,
    beat: bool,
    on_loss: OnLoss,
    command: Vec<OsString>,
}

fn options(args: impl Iterator<Item = OsString>) -> Options {
    let mut options = Options {
        ttl: Duration::from_secs(60),
        grace: Duration::from_secs(10),
        beat: true,
        on_loss: OnLoss::Stop,
        command: Vec::new(),
    };
    let mut args = args;
    for arg in args.by_ref() {
        let millis = |text: &str| Duration::from_millis(text.parse().expect("milliseconds"));
        match arg.to_str().expect("an option").split_once('=') {
            Some(("ttl", v)) => options.ttl = millis(v),
            Some(("grace", v)) => options.grace = millis(v),
            Some(("beat", v)) => options.beat = v == "yes",
            Some(("on-loss", "continue")) => options.on_loss = OnLoss::Continue,
            Some((other, _)) => panic!("unknown option {other}"),
            None => break,
        }
    }
    options.command = args.collect();
    options
}

struct Run {
    options: Options,
    supervisor: Supervisor,
    job: Job,
    watchdog: Option<Watchdog>,
    terminal: Option<Terminal>,
    children: Children,
}

pub(crate) fn run(args: impl Iterator<Item = OsString>) -> ! {
    let options = options(args);
    let guarded = options.on_loss == OnLoss::Stop;
    let mut watchdog = guarded.then(|| Watchdog::start(options.grace).expect("a watchdog"));
    let (tx, rx) = channel();
    signals::listen(tx.clone()).expect("signals");
    let deadline = BootTime::now() + options.ttl;
    if let Some(w) = &mut watchdog {
        w.tell(pglease::supervise::Word::Deadline(deadline))
            .expect("the watchdog reads");
    }
    let mut terminal = Terminal::open();
    let fence = OsString::from("42");
    let started = process::spawn(Launch {
        command: &options.command,
        environment: &[("FENCE", fence.as_os_str())],
        announce: watchdog.as_ref().map(Watchdog::announcer),
        terminal: terminal.as_mut(),
    });
    let job = match started {
        Ok(job) => job,
        Err(e) => {
            eprintln!("fixture: {e:?}");
            drop(watchdog);
            std::process::exit(match e {
                SpawnError::NoProgram(NoProgram::NotFound) => 127,
                SpawnError::NoProgram(NoProgram::CannotExecute(_)) => 126,
                SpawnError::NotAnnounced(_) | SpawnError::Failed(_) => 125,
            });
        }
    };
    if options.beat {
        pretend_to_renew(tx, options.ttl);
    }
    let supervisor = Supervisor::new(Start {
        deadline,
        grace: options.grace,
        on_loss: options.on_loss,
    });
    let children = Children {
        job: Some(job.pid()),
        watchdog: watchdog.as_ref().map(Watchdog::pid),
    };
    let mut run = Run {
        options,
        supervisor,
        job,
        watchdog,
        terminal,
        children,
    };
    let finish = run.until_finished(&rx);
    eprintln!("fixture: release={}", finish.release);
    drop(run.watchdog.take());
    match finish.exit {
        RunExit::AsJob { ended, whole_group } => process::die_as(ended, whole_group),
        RunExit::Lost => std::process::exit(76),
        RunExit::Failed => std::process::exit(125),
    }
}

fn pretend_to_renew(tx: Sender<Input>, ttl: Duration) {
    std::thread::spawn(move || {
        loop {
            std::thread::sleep(ttl / 3);
            let deadline = BootTime::now() + ttl;
            if tx.send(Input::Decide(Event::Renewed(deadline))).is_err() {
                break;
            }
        }
    });
}

impl Run {
    fn until_finished(&mut self, rx: &Receiver<Input>) -> Finish {
        loop {
            let wait = self
                .supervisor
                .next_wakeup()
                .map_or(Duration::from_secs(1), |at| at.remaining())
                .min(Duration::from_secs(1));
            let events = match rx.recv_timeout(wait) {
                Ok(Input::Decide(event)) => vec![event],
                Ok(Input::Caught(Caught::Signal(signal))) => vec![Event::Signal(signal)],
                Ok(Input::Caught(Caught::Child)) => self.changes(),
                Err(RecvTimeoutError::Timeout) => vec![Event::Tick],
                Err(RecvTimeoutError::Disconnected) => unreachable!("the signals thread lives"),
            };
            for event in events {
                if let Some(finish) = self.carry_out(event) {
                    return finish;
                }
            }
        }
    }

    fn changes(&mut self) -> Vec<Event> {
        let mut events = Vec::new();
        while let Some(change) = process::reap(&mut self.children) {
            events.push(match change {
                Change::JobExited(ended) => Event::JobExited(ended, self.foreground()),
                Change::JobStopped(signal) => Event::JobStopped(signal, self.foreground()),
                Change::JobContinued => Event::JobContinued,
                Change::WatchdogDied => {
                    if let Some(w) = &mut self.watchdog {
                        w.was_reaped();
                    }
                    Event::WatchdogDied
                }
            });
        }
        events
    }

    fn carry_out(&mut self, event: Event) -> Option<Finish> {
        let mut events = std::collections::VecDeque::from([event]);
        while let Some(event) = events.pop_front() {
            for action in self.supervisor.handle(BootTime::now(), event) {
                match action {
                    Action::Signal(signal) => {
                        let _ = self.job.group().signal(signal);
                    }
                    Action::TellWatchdog(word) => {
                        if let Some(w) = &mut self.watchdog
                            && w.tell(word).is_err()
                        {
                            events.push_back(Event::WatchdogDied);
                        }
                    }
                    Action::ReplaceWatchdog(word) => {
                        self.watchdog = None;
                        match self.replace(word) {
                            Ok(w) => {
                                self.children.watchdog = Some(w.pid());
                                self.watchdog = Some(w);
                            }
                            Err(e) => events.push_back(Event::Unprotected(e.to_string())),
                        }
                    }
                    Action::TakeTerminal { restore_modes } => {
                        if let Some(t) = &self.terminal {
                            t.take_back(restore_modes);
                        }
                    }
                    Action::GiveTerminal => {
                        if let Some(t) = &mut self.terminal {
                            t.give();
                        }
                    }
                    Action::StopSelf(signal) => {
                        if process::stop_own_group(signal) == StopOutcome::StayedAwake {
                            events.push_back(Event::StayedAwake(signal));
                        }
                    }
                    Action::CountLeftovers => {
                        events.push_back(Event::Leftovers(self.job.group().count()));
                    }
                    Action::Report(report) => say(&report),
                    Action::Finish(finish) => return Some(finish),
                }
            }
        }
        None
    }

    fn foreground(&self) -> Foreground {
        self.terminal
            .as_ref()
            .map_or(Foreground::Other, Terminal::foreground)
    }

    fn replace(&self, word: pglease::supervise::Word) -> std::io::Result<Watchdog> {
        let mut watchdog = Watchdog::start(self.options.grace)?;
        watchdog.tell_group(self.job.group().id())?;
        watchdog.tell(word)?;
        Ok(watchdog)
    }
}

fn say(report: &Report) {
    use std::io::Write;
    // A full or closed stderr is no reason for anything.
    let _ = writeln!(std::io::stderr(), "fixture: {report:?}");
}
