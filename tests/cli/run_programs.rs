//! Programs that take the whole terminal, under `lease run`: they work, and the terminal is as it was before.

use std::path::Path;

use nix::sys::termios::{LocalFlags, Termios};

use crate::support::job::{Journal, until_gone};
use crate::support::programs::find;
use crate::support::pty::Terminal;
use crate::support::{Lease, key, shared, skip, until};

/// A script at a terminal: a line before, a job under a lease, and a line that is read afterwards. A shell that is not
/// interactive leaves the foreground and the modes as it finds them, so what they are after the job is what `lease` made of
/// them.
struct Script {
    terminal: Terminal,
    before: Termios,
    key: String,
}

impl Script {
    /// Starts it, with a job that is written for sh(1).
    fn start(job: &str) -> Self {
        let (file, key) = (
            Path::new(Journal::new().path()).with_file_name("script"),
            key(),
        );
        let text = format!(
            "echo script''-ready; read begin\n$LEASE run {key} -- {job}; echo code''-$?\nread x; echo script-got-$x\n"
        );
        std::fs::write(&file, text).expect("a script");
        let shell = Lease::program("sh")
            .arg(&file)
            .knowing_lease()
            .env("PS1", "inner> ")
            .on(shared());
        let terminal = Terminal::spawn(&shell);
        terminal.wait_for("script-ready");
        let before = terminal.settings();
        terminal.type_in("\n");
        Self {
            terminal,
            before,
            key,
        }
    }

    fn is_raw(&self) -> bool {
        let modes = self.terminal.settings().local_flags;
        !modes.contains(LocalFlags::ICANON)
    }

    /// Demands that the job has ended well, and that the terminal is the script's again, as it was.
    #[track_caller]
    fn ends_as_it_began(self) {
        self.terminal.wait_for("code-0");
        assert_eq!(self.terminal.foreground(), self.terminal.pid());
        assert_eq!(self.terminal.settings(), self.before);
        until_gone(&self.key);
        self.terminal.type_in("line\n");
        self.terminal.wait_for("script-got-line");
    }
}

#[test]
fn vim_shows_what_is_typed_and_leaves_the_terminal_as_it_was() {
    // Debian's smallest has a name of its own.
    let Some(vim) = ["vim", "vim.tiny"]
        .into_iter()
        .find(|name| find(name).is_some())
    else {
        return skip("vim");
    };
    let journal = Journal::new();
    std::fs::write(journal.path(), "row-one\nrow-two\n").expect("a file");
    let script = Script::start(&format!("{vim} -u NONE {}", journal.path()));
    script.terminal.wait_for("row-two");
    until("vim has the terminal", || {
        script.is_raw() && script.terminal.foreground() != script.terminal.pid()
    });
    // The terminal does not echo it; what shows is what vim draws.
    script.terminal.type_in("Otyped\x1b");
    script.terminal.wait_for("typed");
    script.terminal.type_in(":wq\r");
    script.ends_as_it_began();
    assert_eq!(journal.lines(), ["typed", "row-one", "row-two"]);
}

#[test]
fn less_shows_a_file_page_by_page_and_leaves_the_terminal_as_it_was() {
    if find("less").is_none() {
        return skip("less");
    }
    let journal = Journal::new();
    let rows: String = (1..=100).map(|row| format!("row{row}\n")).collect();
    std::fs::write(journal.path(), rows).expect("a file");
    let script = Script::start(&format!("less {}", journal.path()));
    script.terminal.wait_for("row20");
    assert!(!script.terminal.screen().contains("row60"));
    script.terminal.type_in(" ");
    script.terminal.wait_for("row40");
    assert!(script.is_raw() && script.terminal.foreground() != script.terminal.pid());
    script.terminal.type_in("q");
    script.ends_as_it_began();
}

#[test]
fn a_shell_with_line_editing_works_and_leaves_the_terminal_as_it_was() {
    let script = Script::start("bash --norc --noprofile -i");
    script.terminal.wait_for("inner> ");
    until("it edits lines", || script.is_raw());
    // It deletes and moves as the keys say, and shows text that was not typed.
    script
        .terminal
        .type_in("xcho inner-$((6*8\x7f7))\x01\x1b[3~e\r");
    script.terminal.wait_for("inner-42");
    until("it edits the next line", || script.is_raw());
    // It has jobs, and gets the terminal back from them.
    script.terminal.type_in("sh -c 'read y; echo job-got-$y'\r");
    until("its job has the terminal", || !script.is_raw());
    script.terminal.type_in("word\n");
    script.terminal.wait_for("job-got-word");
    until("it edits the next line", || script.is_raw());
    script.terminal.type_in("exit\r");
    script.ends_as_it_began();
}

#[test]
fn stty_sane_sets_a_terminal_right_under_a_lease() {
    let script =
        Script::start("sh -c 'stty -icanon -echo; echo job''-ready; read go; stty sane; stty -a'");
    script.terminal.wait_for("job-ready");
    until("the terminal is not sane", || script.is_raw());
    script.terminal.type_in("go\n");
    script.terminal.wait_for(" icanon");
    script.terminal.wait_for(" echo ");
    script.terminal.wait_for("code-0");
    let modes = script.terminal.settings().local_flags;
    assert!(modes.contains(LocalFlags::ICANON | LocalFlags::ECHO));
    assert_eq!(script.terminal.foreground(), script.terminal.pid());
    script.terminal.type_in("line\n");
    script.terminal.wait_for("script-got-line");
}
