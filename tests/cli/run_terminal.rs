//! `lease run` at a terminal, with the programs that people use there.

use std::path::Path;

use nix::sys::termios::LocalFlags;

use crate::support::job::{Journal, of_job, until_gone};
use crate::support::programs::find;
use crate::support::pty::{INTERRUPT, QUIT, SUSPEND, Terminal, interactive};
use crate::support::{LIMIT, Lease, key, shared, skip, until};
use crate::{claimed, column};

/// An interactive shell at a terminal. Its prompt is `ready> `.
fn shell(program: &str) -> Terminal {
    let shell = interactive(program).env("PS1", "ready> ").on(shared());
    let terminal = Terminal::spawn(&shell);
    terminal.wait_for("ready> ");
    terminal
}

#[test]
fn a_job_that_answers_the_first_ctrl_c_is_not_sent_a_second_one() {
    for program in ["bash", "dash"] {
        let (terminal, journal) = (shell(program), Journal::new());
        // It stays long enough for a second one to arrive.
        let script = "trap \"echo INT >>$0\" INT; echo job''-ready; i=0; while [ $i -lt 20 ]; do sleep 0.05; i=$((i+1)); done; exit 5";
        terminal.type_in(&format!(
            "$LEASE run {} -- sh -c '{script}' {}; echo code''-$?\n",
            key(),
            journal.path()
        ));
        terminal.wait_for("job-ready");
        terminal.type_in(INTERRUPT);
        terminal.wait_for("code-5");
        assert_eq!(journal.lines(), ["INT"], "{program}");
    }
}

#[test]
fn ctrl_backslash_quits_job_and_lease() {
    let (terminal, key) = (shell("bash"), key());
    terminal.type_in(&format!("$LEASE run {key} -- sh -c 'ulimit -c 0; echo job''-ready; exec sleep 1000'; echo code''-$?\n"));
    terminal.wait_for("job-ready");
    terminal.type_in(QUIT);
    terminal.wait_for("code-131");
    until_gone(&key);
    assert_eq!(column(shared(), &key, "holder"), "");
}

#[test]
fn one_ctrl_c_ends_a_loop_of_waiting_runs() {
    let (terminal, key) = (shell("bash"), key());
    let held = claimed(&key, &[]);
    terminal.type_in(&format!(
        "for i in 1 2 3; do echo round''-$i; $LEASE run --wait 10m {key} -- echo started; done\n"
    ));
    terminal.wait_for("waiting: ");
    terminal.type_in(INTERRUPT);
    terminal.type_in("echo next''-line\n");
    terminal.wait_for("next-line");
    let screen = terminal.screen();
    assert!(
        !screen.contains("round-2") && !screen.contains("\nstarted"),
        "{screen}"
    );
    assert_eq!(column(shared(), &key, "holder"), held.holder);
}

#[test]
fn a_waiting_run_can_be_suspended_and_fetched() {
    let (terminal, key) = (shell("bash"), key());
    let held = claimed(&key, &[]);
    terminal.type_in(&format!(
        "$LEASE run --wait 10m {key} -- echo job''-started\n"
    ));
    terminal.wait_for("waiting: ");
    terminal.type_in(SUSPEND);
    terminal.wait_for("Stopped");
    crate::with_term("release", &held).output().expect_code(0);
    terminal.type_in("fg\n");
    terminal.wait_for("job-started");
}

#[test]
fn a_pager_shows_pages_and_gives_the_terminal_back() {
    if find("less").is_none() {
        return skip("less");
    }
    let (terminal, key) = (shell("bash"), key());
    let before = terminal.settings();
    // What it shows comes through its standard input, so it reads its keys from the terminal.
    terminal.type_in(&format!(
        "seq -f 'row%g' 1 100 | $LEASE run {key} -- less -X; echo code''-$?\n"
    ));
    terminal.wait_for("row20");
    assert!(!terminal.screen().contains("row60"));
    terminal.type_in(" ");
    terminal.wait_for("row40");
    terminal.type_in("q");
    terminal.wait_for("code-0");
    assert_eq!(terminal.settings(), before);
}

#[test]
fn an_editor_edits_suspends_and_comes_back() {
    if find("vi").is_none() {
        return skip("vi");
    }
    let (terminal, key, journal) = (shell("bash"), key(), Journal::new());
    terminal.type_in(&format!("$LEASE run {key} -- vi {}\n", journal.path()));
    let raw = || !terminal.settings().local_flags.contains(LocalFlags::ICANON);
    until("the editor has the terminal", raw);
    terminal.type_in("ifirst\r");
    terminal.type_in("\x1b");
    terminal.type_in(SUSPEND);
    terminal.wait_for("Stopped");
    until("the shell has the terminal", || {
        terminal.foreground() == terminal.pid()
    });
    terminal.type_in("fg\n");
    until("the editor has it again", || {
        raw() && terminal.foreground() != terminal.pid()
    });
    terminal.type_in("isecond\x1b");
    terminal.type_in(":wq\r");
    until("the shell has it again", || {
        terminal.foreground() == terminal.pid()
    });
    terminal.type_in("echo code''-$?\n");
    terminal.wait_for("code-0");
    assert_eq!(journal.lines(), ["first", "second"]);
}

#[test]
fn a_program_that_was_killed_in_raw_mode_leaves_the_terminal_as_it_was() {
    let (terminal, key) = (shell("bash"), key());
    let script = Path::new(Journal::new().path()).with_file_name("raw");
    // In a script: an interactive shell would set the terminal right itself.
    std::fs::write(&script, format!("$LEASE run {key} -- sh -c 'stty -echo raw; echo job''-ready; exec sleep 1000'\necho after''-job; read x; echo got-$x\n")).expect("a script");
    terminal.type_in("echo quiet''-prompt\n");
    terminal.wait_for("quiet-prompt");
    let modes = terminal.settings().local_flags;
    terminal.type_in(&format!("bash {}\n", script.display()));
    terminal.wait_for("job-ready");
    assert!(!terminal.settings().local_flags.contains(LocalFlags::ECHO));
    of_job(&key)[0].signal(nix::sys::signal::Signal::SIGKILL);
    terminal.wait_for("after-job");
    assert_eq!(terminal.settings().local_flags, modes);
    terminal.type_in("line\n");
    terminal.wait_for("got-line");
}

#[test]
fn a_resize_of_the_window_reaches_the_job_once() {
    let (terminal, key, journal) = (shell("bash"), key(), Journal::new());
    let script = "trap \"echo WINCH >>$0; stty size >>$0\" WINCH; trap \"exit 0\" INT; echo job''-ready; while :; do sleep 0.05; done";
    terminal.type_in(&format!(
        "$LEASE run {key} -- bash -c '{script}' {}; echo code''-$?\n",
        journal.path()
    ));
    terminal.wait_for("job-ready");
    terminal.resize(30, 100);
    journal.wait_for("30 100");
    terminal.type_in(INTERRUPT);
    terminal.wait_for("code-0");
    assert_eq!(journal.lines(), ["WINCH", "30 100"]);
}

#[test]
fn a_closed_window_ends_job_and_lease() {
    let (terminal, key) = (shell("bash"), key());
    terminal.type_in(&format!(
        "$LEASE run {key} -- sh -c 'echo job''-ready; sleep 1000; true'\n"
    ));
    terminal.wait_for("job-ready");
    terminal.hang_up();
    until_gone(&key);
    until("nothing is left", || terminal.processes().is_empty());
    until("the lease is free", || {
        column(shared(), &key, "holder").is_empty()
    });
}

#[test]
fn lease_as_the_leader_of_a_session_gives_its_job_the_terminal() {
    // As in `docker run -t` and `ssh -t host lease run ...`.
    let key = key();
    let terminal = Terminal::spawn(
        &Lease::new([
            "run",
            &key,
            "--",
            "sh",
            "-c",
            "echo job-ready; read x; echo got-$x; exec sleep 1000",
        ])
        .on(shared()),
    );
    terminal.wait_for("job-ready");
    terminal.type_in("word\n");
    terminal.wait_for("got-word");
    terminal.type_in(INTERRUPT);
    let status = terminal.wait_exit(LIMIT);
    assert_eq!(
        std::os::unix::process::ExitStatusExt::signal(&status),
        Some(2)
    );
    until_gone(&key);
}

#[test]
fn a_job_suspended_past_its_ttl_does_not_work_on() {
    let (terminal, key, journal) = (shell("bash"), key(), Journal::new());
    // It waits without another process: a shell that is about to start one (vfork) when Ctrl-Z comes can't be stopped, with
    // or without lease.
    let script =
        "exec 3<> <(:); echo job''-ready; while :; do echo work >>$0; read -rt 0.05 -u 3; done";
    terminal.type_in(&format!(
        "$LEASE run --ttl 3s {key} -- bash -c '{script}' {}\n",
        journal.path()
    ));
    terminal.wait_for("job-ready");
    terminal.type_in(SUSPEND);
    terminal.wait_for("Stopped");
    until("it is stopped", || {
        of_job(&key).iter().all(|process| process.is_stopped())
    });
    let done = journal.lines().len();
    // Stopped together with its lease: the watchdog ends a job whose lease is not renewed.
    until_gone(&key);
    until("the lease is over", || {
        column(shared(), &key, "expires_at < clock_timestamp()") == "t"
    });
    terminal.type_in("fg; echo code''-$?\n");
    terminal.wait_for("code-76");
    // The end of what it was at when it was stopped, at most.
    assert!(
        journal.lines().len() <= done + 1,
        "{} {done}",
        journal.lines().len()
    );
}

#[test]
fn a_neighbour_in_a_pipeline_may_read_the_terminal() {
    let (terminal, key) = (shell("bash"), key());
    let reader = "echo reader''-ready; read -r word </dev/tty; echo got''-$word; cat >/dev/null";
    terminal.type_in(&format!(
        "$LEASE run {key} -- sh -c 'echo job''-ready >&2; sleep 1; read -r more </dev/tty; echo job''-got-$more >&2' | sh -c '{reader}'; echo code''-$?\n"
    ));
    terminal.wait_for("job-ready");
    terminal.wait_for("reader-ready");
    terminal.type_in("first\n");
    terminal.wait_for("got-first");
    // And the job gets it in its turn.
    terminal.type_in("second\n");
    terminal.wait_for("job-got-second");
    terminal.wait_for("code-0");
    assert!(
        !terminal.screen().contains("Stopped"),
        "{}",
        terminal.screen()
    );
    until_gone(&key);
}
