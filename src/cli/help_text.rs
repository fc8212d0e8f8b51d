//! What a manual page says beyond the options: examples, exit codes, environment. The man pages and `--help` are made
//! from it.
//!
//! | file | what it holds |
//! |---|---|
//! | here | which page has which sections, and the layout of `--help` |
//! | `lease`, and a file for each verb | the page |
//! | `events` | the messages of `run` as JSON |
//! | `term` | what the pages of `claim` and `renew` have in common |
//! | `section` | what a page consists of, and the sections that every page has |

mod claim;
mod events;
mod history;
mod init;
mod lease;
mod purge;
mod release;
mod renew;
mod run;
mod section;
mod status;
mod term;

pub use self::run::FATES;
pub use self::section::{Block, Section};

/// The sections of the page of a verb; of `lease` itself for any other word.
#[must_use]
pub fn sections(verb: &str) -> &'static [Section] {
    match verb {
        "run" => run::RUN,
        "claim" => claim::CLAIM,
        "renew" => renew::RENEW,
        "release" => release::RELEASE,
        "status" => status::STATUS,
        "history" => history::HISTORY,
        "purge" => purge::PURGE,
        "init" => init::INIT,
        _ => lease::LEASE,
    }
}

/// The width that the text after the options is wrapped to, by hand: clap does not indent continuation lines.
const WIDTH: usize = 80;

/// The sections that `--help` shows after the options: the examples, and for `lease` itself the exit codes.
#[must_use]
pub fn after_help(verb: &str) -> String {
    let shown = |title: &str| title == "EXAMPLES" || (verb == "lease" && title == "EXIT STATUS");
    let mut out = String::new();
    for section in sections(verb).iter().filter(|s| shown(s.title)) {
        let mut title = section.title.to_lowercase();
        title[..1].make_ascii_uppercase();
        out.push_str(&format!("{title}:\n"));
        for block in section.blocks {
            match block {
                Block::Text(text) => out.push_str(&wrapped("  ", text)),
                Block::Code(code) => {
                    for line in code.lines() {
                        out.push_str(&format!("      {line}\n"));
                    }
                }
                Block::Terms(terms) => {
                    for (term, meaning) in *terms {
                        out.push_str(&wrapped(&format!("  {term:<6} "), meaning));
                    }
                }
            }
        }
        out.push('\n');
    }
    out.truncate(out.trim_end().len());
    out
}

/// A paragraph that begins with `head`. Its further lines are indented by the width of `head`.
fn wrapped(head: &str, text: &str) -> String {
    let indent = head.chars().count();
    let (mut out, mut line) = (String::new(), head.to_owned());
    let mut is_empty = true;
    for word in text.split(' ') {
        if !is_empty && line.chars().count() + 1 + word.chars().count() > WIDTH {
            out.push_str(&line);
            out.push('\n');
            line = " ".repeat(indent);
            is_empty = true;
        }
        if !is_empty {
            line.push(' ');
        }
        line.push_str(word);
        is_empty = false;
    }
    out + &line + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    const VERBS: [&str; 9] = [
        "lease", "run", "claim", "renew", "release", "status", "history", "purge", "init",
    ];

    fn commands(verb: &str) -> impl Iterator<Item = &'static str> {
        let blocks = sections(verb).iter().flat_map(|section| section.blocks);
        blocks.filter_map(|block| match block {
            Block::Code(code) => Some(*code),
            Block::Text(_) | Block::Terms(_) => None,
        })
    }

    /// clap would break them in two.
    #[test]
    fn no_command_is_wider_than_the_help() {
        for verb in VERBS {
            for line in commands(verb).flat_map(str::lines) {
                assert!(line.chars().count() + 6 <= WIDTH, "{verb}: {line}");
            }
        }
    }

    /// cron's own PATH is /usr/bin:/bin.
    #[test]
    fn a_crontab_line_comes_with_a_path_on_which_cron_finds_lease() {
        let is_of_cron = |line: &str| line.starts_with(|c: char| c == '*' || c.is_ascii_digit());
        let mut count = 0;
        for code in VERBS.into_iter().flat_map(commands) {
            if code.lines().any(is_of_cron) {
                assert!(code.starts_with("PATH=/usr/local/bin:"), "{code}");
                count += 1;
            }
        }
        assert!(count >= 5, "{count}");
    }

    #[test]
    fn the_continuation_lines_of_a_meaning_are_indented_below_it() {
        let text = after_help("lease");
        let (_, codes) = text.split_once("Exit status:\n").expect("the section");
        assert!(
            codes.lines().any(|line| line.starts_with("         ")),
            "{text}"
        );
        for line in codes.lines() {
            assert!(line.chars().count() <= WIDTH, "{line}");
            let starts_a_row = line.starts_with("  ") && !line[2..].starts_with(' ');
            assert!(starts_a_row || line.starts_with("         "), "{line:?}");
        }
    }
}
