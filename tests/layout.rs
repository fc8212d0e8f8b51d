//! The rooms of the crate: who may import whom. The table stands in `src/lib.rs`, and this test reads it there.

use std::fs;
use std::path::{Path, PathBuf};

fn src() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src")
}

fn rust_files(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).expect("a folder").flatten() {
        let path = entry.path();
        if path.is_dir() {
            files.extend(rust_files(&path));
        } else if path.extension().is_some_and(|e| e == "rs") {
            files.push(path);
        }
    }
    files.sort();
    files
}

/// The rooms in the order of the table.
fn rooms() -> Vec<String> {
    let text = fs::read_to_string(src().join("lib.rs")).expect("lib.rs");
    let rooms: Vec<String> = text
        .lines()
        .filter_map(|line| line.strip_prefix("//! | [`")?.split('`').next())
        .map(str::to_owned)
        .collect();
    assert!(rooms.len() > 10, "the table was found: {rooms:?}");
    rooms
}

/// The room that a file belongs to.
fn room_of(file: &Path) -> String {
    let relative = file.strip_prefix(src()).expect("below src");
    let first = relative
        .components()
        .next()
        .expect("a name")
        .as_os_str()
        .to_string_lossy();
    first.trim_end_matches(".rs").to_owned()
}

/// The rooms that a file names with `crate::`.
fn named(text: &str) -> Vec<String> {
    // Prose may point to any room.
    let code: Vec<&str> = text
        .lines()
        .filter(|l| !l.trim_start().starts_with("//"))
        .collect();
    let code = code.join("\n");
    let mut found = Vec::new();
    for (at, _) in code.match_indices("crate::") {
        let rest = &code[at + "crate::".len()..];
        let name: String = rest
            .chars()
            .take_while(|c| c.is_ascii_alphanumeric() || *c == '_')
            .collect();
        assert!(
            !name.is_empty(),
            "imports are written one room a line: {}",
            &rest[..rest.len().min(40)]
        );
        found.push(name);
    }
    found
}

#[test]
fn every_room_stands_in_the_table_once() {
    let rooms = rooms();
    for file in rust_files(&src()) {
        let room = room_of(&file);
        if !["lib", "main", "usage"].contains(&room.as_str()) {
            assert_eq!(
                rooms.iter().filter(|r| **r == room).count(),
                1,
                "{room} in {rooms:?}"
            );
        }
    }
}

#[test]
fn a_room_imports_only_from_rooms_above_it() {
    let rooms = rooms();
    let place = |room: &str| rooms.iter().position(|r| r == room);
    for file in rust_files(&src()) {
        let room = room_of(&file);
        let Some(own) = place(&room) else { continue };
        for other in named(&fs::read_to_string(&file).expect("text")) {
            let theirs =
                place(&other).unwrap_or_else(|| panic!("{}: no room {other}", file.display()));
            assert!(
                theirs <= own,
                "{} imports {other}, which stands below {room}",
                file.display()
            );
        }
    }
}

#[test]
fn verbs_never_import_one_another() {
    for file in rust_files(&src().join("commands")) {
        let text = fs::read_to_string(&file).expect("text");
        assert!(!text.contains("crate::commands::"), "{}", file.display());
        for verb in ["claim", "init", "release", "renew", "run", "status"] {
            let own = file.file_stem().is_some_and(|stem| stem == verb);
            assert!(
                own || !text.contains(&format!("super::{verb}")),
                "{}",
                file.display()
            );
        }
    }
}

#[test]
fn what_is_kept_to_a_few_rooms_is_in_no_other() {
    let only = |word: &str, rooms: &[&str]| {
        for file in rust_files(&src()) {
            let text = fs::read_to_string(&file).expect("text");
            let code = text.lines().filter(|l| !l.trim_start().starts_with("//"));
            if code.clone().any(|line| line.contains(word)) {
                let room = room_of(&file);
                assert!(
                    rooms.contains(&room.as_str()),
                    "{word} in {}",
                    file.display()
                );
            }
        }
    };
    only("postgres::", &["connect", "store"]);
    only("unsafe {", &["process", "watchdog", "clock", "signals"]);
    only("io::stderr", &["output"]);
    only("println!", &[]);
    only("crate::sql::Statements", &["store"]);
}
