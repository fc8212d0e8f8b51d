//! lease-fencing(7): its recipes are read from the page, so that what is tested is what is printed.

use std::path::PathBuf;
use std::process::Command;

use pglease::fencing;

use crate::support::{programs, skip};

fn path() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/man/lease-fencing.7"))
}

fn text() -> String {
    std::fs::read_to_string(path()).expect("the page")
}

/// The recipe of that name, as a reader of the page sees it.
#[track_caller]
pub(crate) fn recipe(name: &str) -> String {
    let page = text();
    let mark = format!(".\\\" recipe: {name}\n");
    let from = page
        .find(&mark)
        .unwrap_or_else(|| panic!("the page has no recipe {name}"));
    let (_, rest) = page[from..].split_once(".EX\n").expect("an example");
    let (recipe, _) = rest.split_once(".EE\n").expect("the end of the example");
    shown(recipe)
}

/// The commands of README.md that write under a fence.
#[track_caller]
pub(crate) fn readme() -> String {
    let readme = include_str!("../../README.md");
    let (_, section) = readme.split_once("## Fencing\n").expect("the section");
    let from = section.find("    psql -Xq").expect("psql");
    let (commands, _) = section[from..].split_once("\n    SQL\n").expect("the end");
    let lines = commands
        .lines()
        .map(|line| line.strip_prefix("    ").unwrap_or(line));
    lines.chain(["SQL\n"]).collect::<Vec<_>>().join("\n")
}

fn shown(roff: &str) -> String {
    let plain = roff
        .replace("\\(aq", "'")
        .replace("\\-", "-")
        .replace("\\&", "");
    assert!(
        !plain.replace("\\e", "").contains('\\'),
        "an escape that is not undone here: {plain}"
    );
    assert!(
        plain.lines().all(|line| !line.starts_with(['.', '\''])),
        "a line that is a request: {plain}"
    );
    plain.replace("\\e", "\\")
}

#[test]
fn every_recipe_is_run_or_marked_as_not_run() {
    let page = text();
    let tests = [
        include_str!("recipes/mod.rs"),
        include_str!("recipes/sqlite.rs"),
        include_str!("recipes/file.rs"),
        include_str!("recipes/redis.rs"),
        include_str!("neighbours/race.rs"),
        include_str!("page.rs"),
    ]
    .concat();
    for example in page.split(".EX\n").collect::<Vec<_>>().windows(2) {
        let before = example[0];
        let near = before.rfind(".PP\n").map_or(before, |at| &before[at..]);
        match near.split_once("recipe: ") {
            Some((_, rest)) => {
                let name = rest.lines().next().expect("a name");
                assert!(
                    tests.contains(&format!("recipe(\"{name}\")")),
                    "{name} is not run"
                );
            }
            None => {
                let section = before.rfind(".SH ").map_or(before, |at| &before[at..]);
                assert!(section.contains("Not run by the tests."), "{section}");
            }
        }
    }
}

#[test]
fn the_page_removes_what_the_code_installs_and_names_its_state() {
    assert_eq!(recipe("postgresql-remove"), fencing::drop_ddl("\"public\""));
    assert!(text().contains(&format!(".BR {} ,", fencing::SQLSTATE_STALE)));
}

#[test]
fn the_page_is_formatted_without_a_warning() {
    let checks: [(&str, &[&str]); 2] = [
        ("groff", &["-man", "-ww", "-Tutf8", "-z"]),
        ("mandoc", &["-T", "lint", "-W", "warning"]),
    ];
    for (program, arguments) in checks {
        let Some(program) = programs::find(program) else {
            skip(program);
            continue;
        };
        let output = Command::new(program)
            .args(arguments)
            .arg(path())
            .output()
            .expect("runs");
        let said = [output.stdout, output.stderr].concat();
        assert!(
            output.status.success() && said.is_empty(),
            "{}",
            String::from_utf8_lossy(&said)
        );
    }
}
