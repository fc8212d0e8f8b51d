//! `completions/` and `man/` are what the code generates.
//!
//! Refresh them with `LEASE_REFRESH=1 cargo test --test generated`.

use std::fs;
use std::path::{Path, PathBuf};

use clap::{Arg, ArgAction, Command, CommandFactory as _};
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
    let whole = command.clone();
    // The examples have a section of their own.
    let command = command
        .clone()
        .name(title)
        .display_name(title)
        .after_long_help("")
        .after_help("");
    let man = Man::new(command);
    let mut out = Vec::new();
    // clap leaves out an empty date, and what follows it then takes its place.
    let heading = format!(
        ".TH {} 1 \"\" \"lease {}\" \"lease\"\n",
        title.to_uppercase(),
        env!("CARGO_PKG_VERSION")
    );
    out.extend(heading.into_bytes());
    man.render_name_section(&mut out).expect("memory");
    out.extend(synopsis(&whole, verb).into_bytes());
    man.render_description_section(&mut out).expect("memory");
    man.render_options_section(&mut out).expect("memory");
    if verb == "lease" {
        man.render_subcommands_section(&mut out).expect("memory");
    }
    let mut roff = Roff::new();
    for section in manual::sections(verb) {
        roff.control("SH", [section.title]);
        for (place, block) in section.blocks.iter().enumerate() {
            match block {
                Block::Text(text) => {
                    if place > 0 {
                        roff.control("PP", []);
                    }
                    roff.text([roman(*text)]);
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

/// How a verb is called: its own options before those of every verb, each with its value, and what excludes one another
/// within the same brackets. clap's own synopsis leaves the values out.
fn synopsis(command: &Command, verb: &str) -> String {
    let name = if verb == "lease" {
        "lease".to_owned()
    } else {
        format!("lease {verb}")
    };
    let mut options: Vec<&Arg> = command
        .get_arguments()
        .filter(|arg| !arg.is_positional())
        .collect();
    options.sort_by_key(|arg| {
        let closing = ["help", "version"].contains(&arg.get_id().as_str());
        (closing, arg.is_global_set())
    });
    // What conflicts is told of one of the two only.
    let excludes = |a: &Arg, b: &Arg| command.get_arg_conflicts_with(a).contains(&b);
    let mut words = Vec::new();
    while !options.is_empty() {
        let first = options.remove(0);
        let other = options
            .iter()
            .position(|other| excludes(first, other) || excludes(other, first));
        let mut word = option_word(first);
        if let Some(place) = other {
            word += &format!("\\ |\\ {}", option_word(options.remove(place)));
        }
        words.push(format!("[{word}]"));
    }
    if let Some(usage) = command.get_overridden_usage() {
        let usage = usage.to_string();
        let (_, arguments) = usage.split_once("[OPTIONS] ").expect("options come first");
        words.extend(arguments.split(' ').map(argument_word));
    } else {
        for argument in command.get_positionals() {
            let mut word = argument.get_id().as_str().to_uppercase();
            if let Some([name]) = argument.get_value_names() {
                word = name.to_string();
            }
            if !argument.is_required_set() {
                word = format!("[{word}]");
            }
            if matches!(argument.get_action(), ArgAction::Append) {
                word += "...";
            }
            words.push(argument_word(&word));
        }
    }
    if command.has_subcommands() {
        words.extend(["COMMAND", "[ARGS]..."].map(argument_word));
    }
    format!(".SH SYNOPSIS\n.SY \"{name}\"\n{}\n.YS\n", words.join("\n"))
}

/// `-E|--conflict-exit-code N`, kept on one line.
fn option_word(option: &Arg) -> String {
    let mut names: Vec<String> = Vec::new();
    names.extend(option.get_short().map(|short| format!("-{short}")));
    names.extend(option.get_long().map(|long| format!("--{long}")));
    let names: Vec<String> = names
        .iter()
        .map(|name| format!("\\fB{}\\fR", name.replace('-', "\\-")))
        .collect();
    let mut word = names.join("|");
    if option.get_action().takes_values() {
        let value = option.get_value_names().expect("a named value")[0].as_str();
        let may_lack = option
            .get_num_args()
            .is_some_and(|count| count.min_values() == 0);
        let (open, close) = if may_lack { ("[", "]") } else { ("", "") };
        word += &format!("\\ {open}\\fI{value}\\fR{close}");
    }
    word
}

/// `[KEY]...` with its capitals in italics, and no brackets around what is required.
fn argument_word(word: &str) -> String {
    let word = word.replace(['<', '>'], "");
    let name = word.trim_matches(['[', ']', '.']);
    if name.starts_with('-') {
        return word.replace(name, &format!("\\fB{}\\fR", name.replace('-', "\\-")));
    }
    word.replace(name, &format!("\\fI{name}\\fR"))
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
fn a_synopsis_shows_every_option_with_its_value_and_what_is_required_without_brackets() {
    let plain = |path: &Path| {
        let page = fs::read_to_string(path).expect("a page");
        let (_, rest) = page.split_once(".SY ").expect("a synopsis");
        let (synopsis, _) = rest.split_once("\n.YS").expect("the end of a synopsis");
        ["\\fB", "\\fI", "\\fR", "\\", "\""]
            .iter()
            .fold(synopsis.replace('\n', " "), |text, mark| {
                text.replace(mark, "")
            })
    };
    let synopsis = |verb: &str| plain(&root().join(format!("man/lease-{verb}.1")));
    for verb in command().get_subcommands() {
        let text = synopsis(verb.get_name());
        for option in verb.get_opts() {
            let long = option.get_long().expect("a long name");
            if option.get_action().takes_values() && long != "watch" {
                let value = &option.get_value_names().expect("a value")[0];
                assert!(
                    text.contains(&format!("--{long} {value}")),
                    "--{long}: {text}"
                );
            }
        }
    }
    for (verb, part) in [
        (
            "run",
            "[--ttl DURATION] [--wait DURATION] [-E|--conflict-exit-code N]",
        ),
        ("run", "[-V|--version] KEY [--] COMMAND [ARGS]..."),
        ("claim", "[--name NAME | --holder ID]"),
        ("claim", "[-V|--version] KEY"),
        ("renew", "[-V|--version] [KEY]"),
        ("release", "[--holder ID | --force]"),
        ("status", "[--exit-code | --watch [INTERVAL]]"),
        ("status", "[-V|--version] [KEY]..."),
    ] {
        assert!(synopsis(verb).contains(part), "{part}: {}", synopsis(verb));
    }
    assert!(plain(&root().join("man/lease.1")).ends_with("COMMAND [ARGS]..."));
}

#[test]
fn the_readme_shows_the_tables_of_the_manual() {
    let readme = fs::read_to_string(root().join("README.md")).expect("README.md");
    for (term, meaning) in manual::FATES.iter().chain(pglease::exit::TABLE) {
        let row = format!("| {term} | {meaning} |");
        assert!(readme.contains(&row), "README.md lacks: {row}");
    }
}
