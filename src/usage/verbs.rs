//! Which verbs there are, and which one is meant.

use clap::CommandFactory as _;

use crate::cli::Cli;

/// Verbs of other tools, each with the verbs that do the same here.
const ALIASES: &[(&[&str], &[&str])] = &[
    (&["exec", "start", "with"], &["run"]),
    (&["lock", "acquire", "take", "get"], &["claim", "run"]),
    (&["extend", "refresh", "keepalive", "heartbeat"], &["renew"]),
    (&["unlock", "evict", "force", "steal", "free"], &["release"]),
    (
        &["list", "ls", "show", "ps", "who", "watch", "info"],
        &["status"],
    ),
    (
        &["create", "setup", "install", "migrate", "print"],
        &["init"],
    ),
    (
        &[
            "prune", "delete", "remove", "rm", "drop", "gc", "clean", "cleanup", "vacuum",
        ],
        &["purge"],
    ),
];

/// The names of the verbs.
pub(super) fn names() -> Vec<String> {
    let cli = Cli::command();
    let verbs = cli.get_subcommands();
    verbs.map(|verb| verb.get_name().to_owned()).collect()
}

/// The verbs that have this option, written with its dashes.
pub(super) fn with_option(option: &str) -> Vec<String> {
    let has = |verb: &clap::Command| {
        verb.get_arguments().any(|arg| {
            let long = arg.get_long().map(|long| format!("--{long}"));
            let short = arg.get_short().map(|short| format!("-{short}"));
            [long, short].contains(&Some(option.to_owned()))
        })
    };
    let cli = Cli::command();
    let verbs = cli.get_subcommands().filter(|verb| has(verb));
    verbs.map(|verb| verb.get_name().to_owned()).collect()
}

/// The verbs that an unknown word may mean: the word is another tool's name for them, the beginning of their name, or
/// their name with at most a third of the letters wrong.
pub(super) fn meant_by(typed: &str) -> Vec<String> {
    let alias = ALIASES.iter().find(|(words, _)| words.contains(&typed));
    if let Some((_, verbs)) = alias {
        return verbs.iter().map(|verb| (*verb).to_owned()).collect();
    }
    let names = names();
    let begun: Vec<String> = names
        .iter()
        .filter(|name| typed.len() > 1 && name.starts_with(typed))
        .cloned()
        .collect();
    if !begun.is_empty() {
        return begun;
    }
    let distance = |name: &str| strsim::osa_distance(typed, name);
    let allowed = (typed.chars().count() / 3).max(1);
    let nearest = names.iter().map(|name| distance(name)).min();
    let near = nearest.filter(|nearest| *nearest <= allowed && typed.chars().count() > 1);
    names
        .into_iter()
        .filter(|name| Some(distance(name)) == near)
        .collect()
}

/// `a, b or c`.
pub(super) fn joined(words: &[String], and: &str) -> String {
    match words {
        [] => String::new(),
        [only] => only.clone(),
        [others @ .., last] => format!("{} {and} {last}", others.join(", ")),
    }
}
