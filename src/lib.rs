//! `lease`: keeps a job from running on two machines at once.
//!
//! **What is not guaranteed comes first.** A lease alone is not mutual exclusion. A whole machine can freeze and thaw, a
//! job can have left its process group, the server's clock can jump. Only the resource that is written to can refuse a
//! stale writer, by remembering the largest fence that it has seen. Jobs must be idempotent until that check is in place.
//!
//! **What is promised.** By the server's clock at most one holder has an unexpired lease on a key; the fence only grows; a
//! job does not outlive its lease; a dead holder blocks nobody for longer than the ttl; no connection is held while a job
//! runs, except for a moment at its start.
//!
//! # Rooms
//!
//! A module imports from those above it, never from below, and verbs never import one another. Only [`connect`] and
//! [`store`] name the database client; only [`process`], [`watchdog`], [`clock`] and [`signals`] touch the system; only
//! [`output`] writes to stdout and stderr. `tests/layout.rs` reads this table and checks it:
//!
//! | room | what it does |
//! |---|---|
//! | [`lease`] | the terms: key, holder, fence, term, and how an attempt can end |
//! | [`clock`] | reads the local clocks |
//! | [`interrupt`] | ends a wait from another thread |
//! | [`fault`] | what each SQLSTATE means for an operation |
//! | [`text`] | the text of one line: makes text from elsewhere fit for a message, prepares a line that is written later |
//! | [`sql`] | every statement |
//! | [`fencing`] | the SQL by which a resource refuses a stale holder |
//! | [`timing`] | every duration, and every inequality between durations |
//! | [`exit`] | the table of exit codes |
//! | [`job`] | what every room says about a job: its signals, its end, and what a lost lease means for it |
//! | [`record`] | the history of runs: its table, its trigger, what a client tells it about a run |
//! | [`cli`] | the command line |
//! | [`supervise`] | decides what happens to a run and its job: events in, actions out |
//! | [`connect`] | finds the database and opens a connection |
//! | [`store`] | runs the statements, each within its time limit |
//! | [`process`] | starts the job, signals it, gives it the terminal, waits for it, ends as it ended |
//! | [`watchdog`] | the process that stops the job if `lease` cannot |
//! | [`signals`] | turns signals into events |
//! | [`heartbeat`] | the thread that renews and reports |
//! | [`output`] | writes text, shell code, JSON and OpenMetrics, and escapes what needs it |
//! | [`event_loop`] | the one event loop of a run and of a claim |
//! | [`commands`] | one file for each verb |
//! | [`usage`] | says in one line what is wrong with the arguments, and what would be right |

pub mod cli;
pub mod clock;
pub mod commands;
pub mod connect;
pub mod event_loop;
pub mod exit;
pub mod fault;
pub mod fencing;
pub mod heartbeat;
pub mod interrupt;
pub mod job;
pub mod lease;
pub mod output;
pub mod process;
pub mod record;
pub mod signals;
pub mod sql;
pub mod store;
pub mod supervise;
pub mod text;
pub mod timing;
pub mod usage;
pub mod watchdog;

use crate::cli::{Cli, Command};
use crate::commands::{Ending, ReportedError};
use crate::connect::SettingsError;
use crate::exit::Exit;
use crate::lease::Invalid;
use crate::output::{Level, Message};
use crate::store::Failure;
use crate::text::os_error_text;

/// Parses the arguments, runs the verb, writes one line if it failed, and exits.
pub fn main() -> ! {
    std::panic::set_hook(Box::new(report_bug));
    let ending = match cli::parse(std::env::args_os().collect()) {
        Ok(cli) => dispatch(cli).unwrap_or_else(|error| {
            let exit = exit_for(&error);
            let message = Message::new(Level::Error, "error", error_line(&error));
            output::write_message(&message.with("exit_code", exit.code()));
            Ending::Exit(exit)
        }),
        Err(error) => usage::refuse(&error),
    };
    match ending {
        Ending::Exit(exit) => std::process::exit(exit.code().into()),
        Ending::Code(code) => std::process::exit(code.into()),
        Ending::As { ended, whole_group } => process::die_as(ended, whole_group),
    }
}

/// A panic is a bug in `lease`. No state can be trusted after it, so the whole process ends, in every build: a thread that
/// ended alone could leave a job without a heartbeat. The watchdog then stops the job.
fn report_bug(panic: &std::panic::PanicHookInfo<'_>) {
    output::leave_screen();
    let text = format!("this is a bug in lease: {panic}");
    output::write_message(&Message::new(Level::Error, "bug", text));
    std::process::abort();
}

fn dispatch(cli: Cli) -> anyhow::Result<Ending> {
    let common = &cli.common;
    match cli.command {
        Command::Run(args) => commands::run::run(common, args),
        Command::Claim(args) => commands::claim::claim(common, args),
        Command::Renew(args) => commands::renew::renew(common, args),
        Command::Release(args) => commands::release::release(common, args),
        Command::Status(args) => commands::status::status(common, args),
        Command::History(args) => commands::history::history(common, &args),
        Command::Purge(args) => commands::purge::purge(common, &args),
        Command::Init(args) => commands::init::init(common, &args),
    }
}

/// An error and its causes, in one line.
fn error_line(error: &anyhow::Error) -> String {
    let causes = error.chain().map(|cause| {
        let io = cause.downcast_ref::<std::io::Error>();
        io.map_or_else(|| cause.to_string(), os_error_text)
    });
    causes.collect::<Vec<_>>().join(": ")
}

/// The exit code for an error, by its cause.
fn exit_for(error: &anyhow::Error) -> Exit {
    for cause in error.chain() {
        if cause.is::<Invalid>() || cause.is::<SettingsError>() {
            return Exit::Usage;
        }
        if let Some(reported) = cause.downcast_ref::<ReportedError>() {
            return reported.exit;
        }
        if cause.is::<Failure>() {
            return Exit::Unavailable;
        }
    }
    Exit::Failed
}
