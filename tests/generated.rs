//! `completions/` and `man/` are what the code generates.
//!
//! Refresh them with `LEASE_REFRESH=1 cargo test --test generated`.

use std::fs;
use std::path::{Path, PathBuf};

use clap::{Command, CommandFactory as _};
use clap_complete::Shell;
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, roman};
use pglease::cli::Cli;
use pglease::cli::manual::{self, Block};

const REFRESH: &str = "LEASE_REFRESH=1 cargo test --test generated";

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The definitions without clap's own `help`, which is no verb and has no page.
fn command() -> Command {
    let mut command = Cli::command().disable_help_subcommand(true);
    command.build();
    command
}

/// A page: what clap knows, then the sections of the manual.
fn page(command: &Command, verb: &str) -> Vec<u8> {
    // clap keeps names for ever.
    let title: &'static str = if verb == "lease" {
        "lease"
    } else {
        Box::leak(format!("lease-{verb}").into_boxed_str())
    };
    // The examples have a section of their own.
    let command = command
        .clone()
        .name(title)
        .display_name(title)
        .after_long_help("")
        .after_help("");
    let man = Man::new(command)
        .title(title.to_uppercase())
        .section("1")
        .source(format!("lease {}", env!("CARGO_PKG_VERSION")))
        .manual("lease")
        .date("");
    let mut out = Vec::new();
    man.render_title(&mut out).expect("memory");
    man.render_name_section(&mut out).expect("memory");
    man.render_synopsis_section(&mut out).expect("memory");
    man.render_description_section(&mut out).expect("memory");
    man.render_options_section(&mut out).expect("memory");
    if verb == "lease" {
        man.render_subcommands_section(&mut out).expect("memory");
    }
    let mut roff = Roff::new();
    for section in manual::sections(verb) {
        roff.control("SH", [section.title]);
        for block in section.blocks {
            match block {
                Block::Text(text) => {
                    roff.control("PP", []).text([roman(*text)]);
                }
                Block::Code(code) => {
                    roff.control("RS", ["4"]).control("nf", []);
                    for line in code.lines() {
                        roff.text([roman(line)]);
                    }
                    roff.control("fi", []).control("RE", []);
                }
                Block::Terms(terms) => {
                    for (term, meaning) in *terms {
                        roff.control("TP", [])
                            .text([bold(*term)])
                            .text([roman(*meaning)]);
                    }
                }
            }
        }
    }
    let mut others = vec!["lease(1)".to_owned()];
    others.extend(verbs().iter().map(|v| format!("lease-{v}(1)")));
    others.extend(extra_pages());
    others.retain(|other| *other != format!("{title}(1)"));
    roff.control("SH", ["SEE ALSO"])
        .text([roman(others.join(", "))]);
    roff.to_writer(&mut out).expect("memory");
    out
}

fn verbs() -> Vec<String> {
    command()
        .get_subcommands()
        .map(|c| c.get_name().to_owned())
        .collect()
}

/// Pages that are written by hand, as their names stand in other pages.
fn extra_pages() -> Vec<String> {
    let mut pages: Vec<String> = fs::read_dir(root().join("man"))
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            let (name, section) = name.rsplit_once('.')?;
            (section != "1").then(|| format!("{name}({section})"))
        })
        .collect();
    pages.sort();
    pages
}

fn wanted() -> Vec<(PathBuf, Vec<u8>)> {
    let mut files = Vec::new();
    for (shell, name) in [
        (Shell::Bash, "lease.bash"),
        (Shell::Zsh, "_lease"),
        (Shell::Fish, "lease.fish"),
    ] {
        let mut text = Vec::new();
        clap_complete::generate(shell, &mut Cli::command(), "lease", &mut text);
        files.push((root().join("completions").join(name), text));
    }
    let command = command();
    files.push((root().join("man/lease.1"), page(&command, "lease")));
    for sub in command.get_subcommands() {
        let verb = sub.get_name();
        files.push((root().join(format!("man/lease-{verb}.1")), page(sub, verb)));
    }
    files
}

#[test]
fn completions_and_man_pages_are_current() {
    if std::env::var_os("LEASE_REFRESH").is_some() {
        for (path, text) in wanted() {
            fs::create_dir_all(path.parent().expect("a folder")).expect("the folder can be made");
            fs::write(&path, text).expect("the file can be written");
        }
    }
    for (path, text) in wanted() {
        let found = fs::read(&path).unwrap_or_default();
        assert!(
            found == text,
            "{} is stale: run `{REFRESH}`",
            path.display()
        );
    }
}

#[test]
fn nothing_in_completions_and_man_is_left_over() {
    let wanted: Vec<PathBuf> = wanted().into_iter().map(|(path, _)| path).collect();
    for folder in ["completions", "man"] {
        for entry in fs::read_dir(root().join(folder))
            .expect("the folder is there")
            .flatten()
        {
            let path = entry.path();
            let by_hand = path.extension().is_some_and(|e| e == "5" || e == "7");
            assert!(
                by_hand || wanted.contains(&path),
                "{} is generated by nothing",
                path.display()
            );
        }
    }
}

#[test]
fn every_page_carries_exit_codes_environment_and_examples() {
    for (path, text) in wanted()
        .iter()
        .filter(|(path, _)| path.extension().is_some_and(|e| e == "1"))
    {
        let text = String::from_utf8_lossy(text);
        for section in ["EXIT STATUS", "ENVIRONMENT", "EXAMPLES"] {
            assert!(text.contains(section), "{} lacks {section}", path.display());
        }
    }
}

#[test]
fn the_readme_shows_the_tables_of_the_manual() {
    let readme = fs::read_to_string(root().join("README.md")).expect("README.md");
    for (term, meaning) in manual::FATES.iter().chain(pglease::exit::TABLE) {
        let row = format!("| {term} | {meaning} |");
        assert!(readme.contains(&row), "README.md lacks: {row}");
    }
}
