//! The rooms of the crate: who may import whom. The table is in `src/lib.rs`, and this test reads it there.

#[path = "layout/modules.rs"]
mod modules;

use std::fs;
use std::path::{Path, PathBuf};

use modules::{Module, Modules};

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

#[test]
fn every_room_stands_in_the_table_once() {
    let rooms = rooms();
    for file in rust_files(&src()) {
        let room = room_of(&file);
        if !["lib", "main"].contains(&room.as_str()) {
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
    let place = |module: &Module| {
        let room = module.first()?;
        rooms.iter().position(|r| r == room)
    };
    for (from, to) in Modules::read(&src()).imports() {
        if let (Some(own), Some(theirs)) = (place(&from), place(&to)) {
            let (from, to) = (from.join("::"), to.join("::"));
            assert!(theirs <= own, "{from} imports {to}, which is below it");
        }
    }
}

#[test]
fn no_files_of_a_room_import_one_another_in_a_circle() {
    let circles = Modules::read(&src()).circles();
    let shown = circles
        .iter()
        .map(|(folder, circle)| format!("in {}: {}", folder.join("/"), circle.join(" -> ")));
    assert_eq!(shown.collect::<Vec<_>>(), Vec::<String>::new());
}

#[test]
fn circles_are_found_through_groups_and_through_what_a_folder_passes_on() {
    let circles = |files: &[(&str, &str)]| {
        let dir = tempfile::tempdir().expect("a folder");
        for (name, text) in files {
            let path = dir.path().join(name);
            fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
            fs::write(path, text).expect("a file");
        }
        let circles = Modules::read(dir.path()).circles();
        let shown = circles
            .into_iter()
            .map(|(folder, circle)| (folder.join("/"), circle.join(" ")));
        shown.collect::<Vec<_>>()
    };
    let one = |folder: &str, circle: &str| vec![(folder.to_owned(), circle.to_owned())];
    let a = ("room/a.rs", "use super::{b::Thing, Other};");
    let passing_on = (
        "room/mod.rs",
        "mod a;\nmod b;\npub(super) use self::a::{One,\n Two};",
    );
    let mine = ("room/b.rs", "fn f(x: super::Two) {}");
    assert_eq!(circles(&[a, passing_on, mine]), one("room", "a b a"));
    let deep = ("room/b.rs", "use crate::room::inner::deep::X;");
    let inner = (
        "room/inner/deep.rs",
        "pub(in crate::room) struct X;\nuse crate::room::{b, c};",
    );
    assert_eq!(
        circles(&[a, passing_on, deep, inner]),
        one("room", "b inner b")
    );
    let parent = (
        "room/mod.rs",
        "mod a;\npub struct Other;\nfn f() { a::g() }",
    );
    assert_eq!(circles(&[a, parent]), one("room", "a mod a"));
    let test = (
        "room/b.rs",
        "fn f() {}\n#[cfg(test)]\nmod tests {\n    use super::super::a::X;\n}",
    );
    let prose = (
        "room/a.rs",
        "// crate::room::c\nuse super::b;\npub(in crate::room) fn f() {}",
    );
    assert_eq!(circles(&[prose, passing_on, test]), []);
}

#[test]
fn verbs_never_import_one_another() {
    let commands = src().join("commands");
    let verbs: Vec<String> = fs::read_dir(&commands)
        .expect("the verbs")
        .map(|entry| entry.expect("an entry").path())
        .filter_map(|path| Some(path.file_stem()?.to_str()?.to_owned()))
        .filter(|stem| stem != "mod")
        .collect();
    assert!(verbs.contains(&"purge".to_owned()) && verbs.contains(&"status".to_owned()));
    for file in rust_files(&commands) {
        let text = fs::read_to_string(&file).expect("text");
        assert!(!text.contains("crate::commands::"), "{}", file.display());
        for verb in &verbs {
            let own = file.starts_with(commands.join(verb))
                || file == commands.join(verb).with_extension("rs");
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
