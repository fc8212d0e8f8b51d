//! How a man page is made: from what clap knows of a verb, and from the sections of the manual.

use clap::{Arg, ArgAction, Command};
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, roman};
use pglease::cli::help_text::{self, Block};

use super::{extra_pages, verbs};

/// A page: what clap knows, then the sections of the manual.
pub(super) fn page(command: &Command, verb: &str) -> Vec<u8> {
    // clap keeps names for ever.
    let title: &'static str = if verb == "lease" {
        "lease"
    } else {
        Box::leak(format!("lease-{verb}").into_boxed_str())
    };
    let whole = command.clone();
    // The examples have a section of their own.
    let command = telling_conflicts(command.clone())
        .name(title)
        .display_name(title)
        .after_long_help("")
        .after_help("");
    let command = without_what_the_name_says(command);
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
    let mut known = Vec::new();
    man.render_description_section(&mut known).expect("memory");
    man.render_options_section(&mut known).expect("memory");
    let known = String::from_utf8(known).expect("UTF-8");
    out.extend(bold_for_backticks(&known).into_bytes());
    if verb == "lease" {
        man.render_subcommands_section(&mut out).expect("memory");
    }
    let mut roff = Roff::new();
    for section in help_text::sections(verb) {
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

/// The first paragraph of a description is the line that the section NAME has already.
fn without_what_the_name_says(command: Command) -> Command {
    let text = command.get_long_about().map(ToString::to_string);
    match text.as_deref().and_then(|text| text.split_once("\n\n")) {
        Some((_, rest)) => {
            let rest = rest.to_owned();
            command.long_about(rest)
        }
        None => command,
    }
}

/// `--help` marks what is typed by backticks, a man page by bold letters.
fn bold_for_backticks(roff: &str) -> String {
    let mut out = String::new();
    for (place, part) in roff.split('`').enumerate() {
        if place > 0 {
            out += if place % 2 == 1 { "\\fB" } else { "\\fR" };
        }
        out += part;
    }
    out
}

/// How a verb is called: its own options before those of every verb, each with its value, and what excludes one another
/// within the same brackets, if brackets can say it. clap's own synopsis leaves the values out.
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
    let mut words = Vec::new();
    while !options.is_empty() {
        let first = options.remove(0);
        let alternatives = alternatives(command, first);
        options.retain(|other| !alternatives.iter().flatten().any(|shown| shown == other));
        if alternatives.len() == 1 && first.is_required_set() {
            words.push(option_word(first));
            continue;
        }
        let alternatives: Vec<String> = alternatives
            .iter()
            .map(|options| match options.as_slice() {
                [one] => option_word(one),
                several => {
                    let several = several.iter().map(|one| format!("[{}]", option_word(one)));
                    several.collect::<Vec<String>>().join("\\ ")
                }
            })
            .collect();
        words.push(format!("[{}]", alternatives.join("\\ |\\ ")));
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

/// The options that exclude this one: clap is told of one of the two only.
fn conflicts<'a>(command: &'a Command, option: &Arg) -> Vec<&'a Arg> {
    let told = command.get_arg_conflicts_with(option);
    let excludes = |other: &Arg| {
        let of_other = command.get_arg_conflicts_with(other);
        told.contains(&other) || of_other.iter().any(|one| one.get_id() == option.get_id())
    };
    command
        .get_arguments()
        .filter(|other| other.get_id() != option.get_id() && excludes(other))
        .collect()
}

/// What this option is an alternative to: groups of options that exclude those of every other group, and go together among
/// themselves. Only itself, if the conflicts are not like that. Then only the text of each option tells them.
fn alternatives<'a>(command: &'a Command, first: &'a Arg) -> Vec<Vec<&'a Arg>> {
    let others = conflicts(command, first);
    let Some(other) = others.first() else {
        return vec![vec![first]];
    };
    let mut all: Vec<&Arg> = conflicts(command, other);
    all.extend(
        others
            .iter()
            .filter(|option| !all.contains(option))
            .copied()
            .collect::<Vec<_>>(),
    );
    let mut groups: Vec<(Vec<&Arg>, Vec<&Arg>)> = Vec::new();
    for option in command
        .get_arguments()
        .filter(|option| all.contains(option))
    {
        let excluded = conflicts(command, option);
        match groups
            .iter_mut()
            .find(|(of_group, _)| *of_group == excluded)
        {
            Some((_, group)) => group.push(option),
            None => groups.push((excluded, vec![option])),
        }
    }
    let is_whole = |(excluded, group): &(Vec<&Arg>, Vec<&Arg>)| {
        all.iter()
            .all(|option| excluded.contains(option) != group.contains(option))
            && excluded.iter().all(|option| all.contains(option))
    };
    if groups.iter().all(is_whole) {
        groups.into_iter().map(|(_, group)| group).collect()
    } else {
        vec![vec![first]]
    }
}

/// The same verb, whose options tell what they cannot be used with.
fn telling_conflicts(command: Command) -> Command {
    let whole = command.clone();
    command.mut_args(|option| {
        let names: Vec<String> = conflicts(&whole, &option)
            .iter()
            .filter_map(|other| Some(format!("--{}", other.get_long()?)))
            .collect();
        if names.is_empty() {
            return option;
        }
        let help = option.get_long_help().or(option.get_help());
        let help = help.map(ToString::to_string).unwrap_or_default();
        let told = format!(
            "{}. Cannot be used with {}",
            help.trim_end_matches('.'),
            names.join(", ")
        );
        option.help(told.clone()).long_help(told)
    })
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
