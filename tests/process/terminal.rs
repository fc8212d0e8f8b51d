//! At a terminal: one Ctrl-C is one INT, the job can read, Ctrl-Z and fg work, and the terminal comes back.

use super::support::pty::{INTERRUPT, SUSPEND, Terminal, interactive};
use super::support::{Lease, key, shared, until};

/// A terminal with an interactive shell that echoes and prompts nothing: what is shown is what was answered.
fn shell() -> Terminal {
    let tty = Terminal::spawn(&interactive("bash").env("TERM", "dumb").on(shared()));
    tty.type_in("stty -echo; PS1=; PS2=; echo shell''-ready\n");
    tty.wait_for_next("shell-ready");
    tty
}

/// A line that runs this script under a lease.
fn run(options: &str, script: &str) -> String {
    format!("$LEASE run {} {options} -- sh -c '{script}'", key())
}

/// A [`shell`] in which this line has been typed, once its job is at work.
fn at_work(line: &str) -> Terminal {
    let tty = shell();
    tty.type_in(&format!("{line}\n"));
    tty.wait_for_next("job-ready");
    tty
}

/// Whether there are processes of each name, and all of them are stopped, or none is.
fn all_are(tty: &Terminal, names: &[&str], stopped: bool) -> bool {
    names.iter().all(|name| {
        let found = tty.named(name);
        !found.is_empty() && found.iter().all(|p| p.is_stopped() == stopped)
    })
}

#[test]
fn the_job_can_read_the_terminal() {
    let tty = at_work(&run("", "echo job''-ready; read x; echo got-$x"));
    tty.type_in("word\n");
    tty.wait_for_next("got-word");
    // The shell has the terminal again.
    tty.type_in("read y; echo shell-got-$y\n");
    tty.type_in("line\n");
    tty.wait_for_next("shell-got-line");
}

#[test]
fn a_loop_ends_on_one_ctrl_c_in_an_interactive_shell_and_in_a_script() {
    let line = format!(
        "for i in 1 2 3; do echo round-$i; {}; done; echo after''-loop",
        run("", "echo job''-ready; sleep 1000")
    );
    for program in ["bash", "dash"] {
        let tty = shell();
        tty.type_in(&format!("cd; cat >script-$$ <<'EOT'\n{line}\nEOT\n"));
        tty.type_in(&format!("{program} script-$$\n"));
        tty.wait_for_next("job-ready");
        // A shell that has just forked may wait for a child that the INT came too early for.
        until("it works", || !tty.named("sleep").is_empty());
        tty.type_in(INTERRUPT);
        tty.type_until_next("echo code-${C:=$?}\n", "code-130");
        let shown = tty.screen();
        assert!(
            !shown.contains("round-2") && !shown.contains("after-loop"),
            "{shown}"
        );
    }
    let tty = at_work(&line);
    until("it works", || !tty.named("sleep").is_empty());
    tty.type_in(INTERRUPT);
    tty.type_until_next("echo next''-line\n", "next-line");
    assert!(!tty.screen().contains("round-2"), "{}", tty.screen());
}

#[test]
fn ctrl_z_stops_both_and_fg_continues_both() {
    let tty = at_work(&run("", "echo job''-ready; read x; echo got-$x"));
    tty.type_in(SUSPEND);
    tty.wait_for_next("Stopped");
    until("both are stopped", || all_are(&tty, &["lease", "sh"], true));
    tty.type_in("fg\n");
    until("both go on", || all_are(&tty, &["lease", "sh"], false));
    tty.type_in("word\n");
    tty.wait_for_next("got-word");
}

#[test]
fn bg_lets_the_job_work_and_stops_it_when_it_wants_the_terminal() {
    let script = "echo job''-ready; sleep 1; echo work''-done; read x; echo got-$x";
    let tty = at_work(&run("", script));
    // A shell that has just vforked can't be stopped before its child has executed something.
    until("it works", || !tty.named("sleep").is_empty());
    tty.type_in(SUSPEND);
    tty.wait_for_next("Stopped");
    tty.type_in("bg\n");
    tty.wait_for_next("work-done");
    until("it waits for the terminal", || {
        all_are(&tty, &["lease"], true)
    });
    tty.type_in("fg\n");
    tty.type_in("word\n");
    tty.wait_for_next("got-word");
}

#[test]
fn a_run_started_in_the_background_can_be_fetched() {
    let tty = at_work(&format!(
        "{} &",
        run("", "echo job''-ready; read x; echo got-$x")
    ));
    until("it waits for the terminal", || {
        all_are(&tty, &["lease"], true)
    });
    tty.type_in("fg\n");
    tty.type_in("word\n");
    tty.wait_for_next("got-word");
}

#[test]
fn a_mode_that_the_job_has_set_on_purpose_stays() {
    let tty = shell();
    tty.type_in(&format!(
        "{}; stty -a | grep -o 'intr = x'\n",
        run("", "stty intr x")
    ));
    tty.wait_for_next("intr = x");
}

#[test]
fn a_job_that_could_not_be_started_leaves_the_terminal_to_the_script_around_lease() {
    let tty = shell();
    let line = format!("$LEASE run {} -- ./broken-$$", key());
    tty.type_in("cd; printf '#!/nowhere/interpreter\n' >broken-$$; chmod +x broken-$$\n");
    tty.type_in(&format!(
        "cat >script-$$ <<EOT\n{line}\necho code-\\$?\nread y\necho script-got-\\$y\nEOT\n"
    ));
    tty.type_in("bash script-$$\n");
    tty.wait_for_next("code-127");
    tty.type_in("line\n");
    tty.wait_for_next("script-got-line");
}

#[test]
fn ctrl_z_does_nothing_if_no_shell_could_continue_it() {
    // As in `ssh -t host lease run ...`: the leader of the session is the run itself.
    let script = "stty -echo; echo ready; read x; echo got-$x";
    let run = Lease::new(["run", &key(), "--", "sh", "-c", script]).on(shared());
    let tty = Terminal::spawn(&run);
    tty.wait_for_next("ready");
    tty.type_in(SUSPEND);
    tty.type_in("word\n");
    tty.wait_for_next("got-word");
}

#[test]
fn a_pipeline_stops_and_ends_as_a_whole() {
    let tty = at_work(&format!(
        "{} | cat",
        run("", "echo job''-ready; sleep 1000")
    ));
    until("all of it runs", || {
        all_are(&tty, &["lease", "sleep", "cat"], false)
    });
    tty.type_in(SUSPEND);
    tty.wait_for_next("Stopped");
    until("all of it is stopped", || {
        all_are(&tty, &["lease", "sleep", "cat"], true)
    });
    tty.type_in("fg\n");
    until("all of it goes on", || {
        all_are(&tty, &["lease", "sleep", "cat"], false)
    });
    tty.type_in(INTERRUPT);
    tty.type_until_next("echo next''-line\n", "next-line");
    until("nothing is left", || {
        ["lease", "sleep", "cat", "job-watchdog"]
            .iter()
            .all(|name| tty.named(name).is_empty())
    });
}

#[test]
fn a_shell_with_job_control_works_as_the_job() {
    let tty = shell();
    tty.type_in(&format!(
        "$LEASE run {} -- bash --norc --noprofile --noediting -i\n",
        key()
    ));
    tty.type_in("PS1=; echo inner''-ready\n");
    tty.wait_for_next("inner-ready");
    tty.type_in("sleep 1000\n");
    until("the inner shell runs it", || !tty.named("sleep").is_empty());
    tty.type_in(SUSPEND);
    tty.wait_for_next("Stopped");
    // With a job that it believes to be stopped a shell would not exit.
    tty.type_in("kill -9 %1; while kill -0 %1 2>/dev/null; do sleep 0.05; done; exit 7\n");
    until("the inner shell has ended", || {
        tty.named("lease").is_empty()
    });
    tty.type_in("echo code-$?\n");
    tty.wait_for_next("code-7");
}
