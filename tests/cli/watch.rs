//! `lease status --watch` at a terminal, and what a table at a terminal looks like.

use nix::sys::signal::Signal;
use nix::sys::termios::LocalFlags;

use crate::support::job::around;
use crate::support::pty::{INTERRUPT, SUSPEND, Terminal, interactive};
use crate::support::{LIMIT, Lease, Server, key, shared, until};
use crate::{claimed, database, lease};

/// A database of its own with so many leases, which are held.
fn leases(count: usize) -> (String, String) {
    let database = database(shared());
    let url = shared().url_for("postgres", &database);
    Lease::new(["init"]).url(&url).output().expect_code(0);
    shared().psql_in(
        &database,
        &format!(
            "INSERT INTO public.lease (key, holder, acquired_at, expires_at)
             SELECT 'key-' || lpad(n::text, 2, '0'), 'web-1', clock_timestamp(), clock_timestamp() + interval '1 hour'
             FROM generate_series(1, {count}) n"
        ),
    );
    (database, url)
}

/// Waits until a person sees what `is_so` looks for, on the alternate screen.
#[track_caller]
fn until_seen(
    what: &str,
    terminal: &Terminal,
    size: (u16, u16),
    is_so: impl Fn(&[String]) -> bool,
) -> Vec<String> {
    until(what, || {
        let (lines, alternate) = terminal.seen(size);
        alternate && is_so(&lines)
    });
    terminal.seen(size).0
}

/// Whether the terminal passes keys on one by one, without an echo.
fn takes_keys(terminal: &Terminal) -> bool {
    let flags = terminal.settings().local_flags;
    !flags.intersects(LocalFlags::ICANON | LocalFlags::ECHO) && flags.contains(LocalFlags::ISIG)
}

/// An interactive shell in a terminal of this size, in which a watch is started.
fn watching(url: &str, size: (u16, u16), words: &str) -> Terminal {
    let shell = interactive("bash").env("PS1", "ready> ").url(url);
    let terminal = Terminal::spawn(&shell);
    terminal.wait_for("ready> ");
    terminal.resize(size.0, size.1);
    terminal.type_in(&format!("echo be''fore; {words}; echo code''-$?\n"));
    terminal
}

#[test]
fn a_watch_with_more_leases_than_rows_keeps_its_heading_and_counts_the_rest() {
    let (database, url) = leases(18);
    let size = (12, 80);
    let terminal = watching(&url, size, "$LEASE status --watch 100ms");
    let lines = until_seen("the leases", &terminal, size, |lines| {
        lines.last().is_some_and(|last| last.starts_with('…'))
    });
    let place = format!("127.0.0.1:{}/{database} ", shared().port());
    assert!(lines[0].starts_with(&place), "{lines:#?}");
    assert!(lines[2].starts_with("KEY "), "{lines:#?}");
    assert!(lines[3].starts_with("key-01 "), "{lines:#?}");
    assert!(lines[10].starts_with("key-08 "), "{lines:#?}");
    assert_eq!(lines[11], "… 10 more");
    terminal.type_in("q");
    terminal.wait_for("code-0");
    let (lines, alternate) = terminal.seen(size);
    assert!(!alternate);
    assert!(lines.iter().any(|line| line == "before"), "{lines:#?}");
    assert!(
        !lines.iter().any(|line| line.contains("key-01")),
        "{lines:#?}"
    );
}

#[test]
fn a_watch_follows_the_size_of_its_terminal() {
    let (_, url) = leases(18);
    // Drawn again because of the size, not because of the time.
    let terminal = watching(&url, (12, 80), "$LEASE status --watch 1h");
    until_seen("the leases", &terminal, (12, 80), |lines| {
        lines[11] == "… 10 more"
    });
    terminal.resize(30, 60);
    until_seen("all of them", &terminal, (30, 60), |lines| {
        lines.iter().any(|line| line.starts_with("key-18"))
            && !lines.iter().any(|line| line.contains("more"))
    });
    terminal.resize(6, 40);
    until_seen("a few", &terminal, (6, 40), |lines| lines[5] == "… 15 more");
}

#[test]
fn every_end_of_a_watch_restores_the_terminal() {
    let (_, url) = leases(1);
    let size = (24, 80);
    let script = "echo re''ady; read go; \"$LEASE\" status --watch 100ms; echo code''-$?; read end";
    for end in ["q", INTERRUPT, "TERM", "HUP", "QUIT", "database"] {
        let terminal = Terminal::spawn(&around("sh", script).url(&url));
        terminal.wait_for("ready");
        let usual = terminal.settings();
        terminal.type_in("\n");
        until_seen("the lease", &terminal, size, |lines| {
            lines.iter().any(|line| line.starts_with("key-01"))
        });
        assert!(takes_keys(&terminal));
        let signal = |signal| {
            let watch = terminal.named("lease");
            watch.first().expect("a watch").signal(signal);
        };
        let code = match end {
            "TERM" => {
                signal(Signal::SIGTERM);
                "code-0"
            }
            "HUP" => {
                signal(Signal::SIGHUP);
                "code-0"
            }
            "QUIT" => {
                signal(Signal::SIGQUIT);
                "code-131"
            }
            "database" => {
                shared().psql_in(
                    url.rsplit('/').next().unwrap_or_default(),
                    "ALTER TABLE public.lease RENAME COLUMN expires_at TO gone",
                );
                "code-69"
            }
            INTERRUPT => {
                // The shell gets it as well, and it ends by it.
                terminal.type_in(INTERRUPT);
                terminal.wait_exit(LIMIT);
                ""
            }
            key => {
                terminal.type_in(key);
                "code-0"
            }
        };
        terminal.wait_for(code);
        assert!(!terminal.seen(size).1, "{end:?}");
        assert_eq!(terminal.settings(), usual, "{end:?}");
    }
}

#[test]
fn a_watch_can_be_suspended_and_fetched_and_started_in_the_background() {
    let (_, url) = leases(1);
    let size = (24, 80);
    let shows_it = |lines: &[String]| lines.iter().any(|line| line.starts_with("key-01"));
    let terminal = watching(&url, size, "$LEASE status --watch 100ms");
    until_seen("the lease", &terminal, size, shows_it);
    terminal.type_in(SUSPEND);
    terminal.wait_for("Stopped");
    assert!(!terminal.seen(size).1);
    assert!(!takes_keys(&terminal));
    terminal.type_in("fg\n");
    until_seen("the lease again", &terminal, size, shows_it);
    until("it takes keys", || takes_keys(&terminal));
    terminal.type_in("q");
    terminal.wait_for_next("ready> ");
    until("the shell is back", || !terminal.seen(size).1);
    // In the background it neither draws nor is it stopped.
    terminal.type_in("$LEASE status --watch 100ms &\n");
    until("it has started", || !terminal.named("lease").is_empty());
    let quiet = key();
    claimed(&quiet, &[]);
    terminal.type_in("echo still''-here\n");
    terminal.wait_for("still-here");
    assert!(!terminal.seen(size).1);
    terminal.type_in("fg\n");
    until_seen("the lease in front", &terminal, size, shows_it);
    terminal.type_in("q");
    until("the end", || terminal.named("lease").is_empty());
}

#[test]
fn a_failed_look_is_shown_above_the_leases_until_one_succeeds() {
    let server = Server::start_plain();
    Lease::new(["claim", "nightly", "--ttl", "1h"])
        .on(&server)
        .output()
        .expect_code(0);
    let size = (24, 80);
    let url = server.url();
    let terminal = watching(&url, size, "$LEASE status --watch 100ms");
    let has = |lines: &[String], part: &str| lines.iter().any(|line| line.starts_with(part));
    until_seen("the lease", &terminal, size, |lines| has(lines, "nightly"));
    server.stop();
    until_seen("the failure and the lease", &terminal, size, |lines| {
        has(lines, "cannot read the leases since 2") && has(lines, "nightly")
    });
    server.start();
    until_seen("the lease alone", &terminal, size, |lines| {
        !has(lines, "cannot") && has(lines, "nightly")
    });
    terminal.type_in(INTERRUPT);
    terminal.wait_for_next("ready> ");
}

#[test]
fn long_keys_are_shortened_at_a_terminal_and_whole_in_a_pipe() {
    let long = format!("{}/{}", key(), "long-".repeat(30));
    let held = claimed(&long, &["--ttl", "1h"]);
    let out = lease(&["status", &long]).output().expect_code(0);
    assert!(out.stdout.contains(&long) && out.stdout.contains(&held.holder));
    let terminal = Terminal::spawn(&lease(&["status", &long]));
    assert!(terminal.wait_exit(LIMIT).success());
    terminal.wait_for("held");
    let screen = terminal.screen();
    assert!(screen.contains('…'), "{screen}");
    assert!(!screen.contains(&long), "{screen}");
    for line in screen.lines() {
        assert!(line.chars().count() <= 80, "{line:?}");
    }
    let terminal = Terminal::spawn(&lease(&["status", "--watch", &long]));
    let lines = until_seen("the lease", &terminal, (24, 80), |lines| {
        lines.iter().any(|line| line.contains("held"))
    });
    assert!(!lines.iter().any(|line| line.contains(&long)), "{lines:#?}");
    terminal.type_in("q");
    assert!(terminal.wait_exit(LIMIT).success());
}
