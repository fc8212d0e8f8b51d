//! The modules of the crate and the imports between them, read from the text of the files.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// Where a module is: `["connect", "settings", "uri"]`. The crate's own is empty.
pub(crate) type Module = Vec<String>;

/// Every file below `src`, without its comments and its tests.
pub(crate) struct Modules(BTreeMap<Module, Source>);

struct Source {
    code: String,
    /// Whether there are modules below this one.
    is_folder: bool,
}

impl Modules {
    pub(crate) fn read(src: &Path) -> Self {
        let mut modules = BTreeMap::new();
        for file in super::rust_files(src) {
            let relative = file.strip_prefix(src).expect("below src");
            let mut module: Module = relative
                .with_extension("")
                .iter()
                .map(|part| part.to_string_lossy().into_owned())
                .collect();
            let last = module.pop().expect("a name");
            if module.last().is_some_and(|folder| folder == "tests") || last == "tests" {
                continue;
            }
            // `main.rs` is another crate, and only calls this one.
            if module.is_empty() && last == "main" {
                continue;
            }
            if last != "mod" && !(module.is_empty() && last == "lib") {
                module.push(last);
            }
            let code = code(&fs::read_to_string(&file).expect("text"));
            modules.insert(
                module,
                Source {
                    code,
                    is_folder: false,
                },
            );
        }
        let folders: Vec<Module> = modules
            .keys()
            .filter_map(|m| Some(m.split_last()?.1.to_vec()))
            .collect();
        for folder in folders {
            if let Some(source) = modules.get_mut(&folder) {
                source.is_folder = true;
            }
        }
        Self(modules)
    }

    /// Which file imports which, each pair once. What `mod.rs` passes on from a file beside it counts as that file's.
    pub(crate) fn imports(&self) -> BTreeSet<(Module, Module)> {
        let mut imports = BTreeSet::new();
        for (module, source) in &self.0 {
            for path in self.paths(module, &source.code) {
                if let Some(target) = self.resolve(&path)
                    && target != *module
                {
                    imports.insert((module.clone(), target));
                }
            }
        }
        imports
    }

    /// The circles in each folder: between its files, its subfolders and its `mod.rs`.
    pub(crate) fn circles(&self) -> BTreeSet<(Module, Vec<String>)> {
        let mut folders: BTreeMap<Module, BTreeMap<String, BTreeSet<String>>> = BTreeMap::new();
        for (from, to) in self.imports() {
            let shared = from.iter().zip(&to).take_while(|(a, b)| a == b).count();
            let name =
                |module: &Module| module.get(shared).map_or("mod", String::as_str).to_owned();
            // Between rooms the table decides.
            if shared > 0 {
                let folder = folders.entry(from[..shared].to_vec()).or_default();
                folder.entry(name(&from)).or_default().insert(name(&to));
            }
        }
        let mut circles = BTreeSet::new();
        for (folder, imports) in folders {
            for start in imports.keys() {
                if let Some(circle) = circle(&imports, &[start]) {
                    circles.insert((folder.clone(), circle));
                }
            }
        }
        circles
    }

    /// The file in which the name is that a path ends with, if it is one of ours.
    fn resolve(&self, path: &[String]) -> Option<Module> {
        let length = (1..=path.len())
            .rev()
            .find(|l| self.0.contains_key(&path[..*l]))?;
        let module = path[..length].to_vec();
        let source = &self.0[&module];
        let Some(name) = path.get(length).filter(|_| source.is_folder) else {
            return Some(module);
        };
        let passed_on = reexports(&source.code)
            .into_iter()
            .map(|target| absolute(&module, target))
            .find(|target| target.last() == Some(name) && target[..] != path[..=length]);
        match passed_on {
            Some(target) => self.resolve(&target),
            None => Some(module),
        }
    }

    /// Every path in a file that leads into the crate.
    fn paths(&self, module: &Module, code: &str) -> Vec<Vec<String>> {
        let mut starts = vec!["crate".to_owned(), "self".to_owned(), "super".to_owned()];
        if self.0[module].is_folder {
            let children = self
                .0
                .keys()
                .filter(|m| m.len() == module.len() + 1 && m.starts_with(module));
            starts.extend(children.filter_map(|m| m.last().cloned()));
        }
        let private = without_reexports(code);
        let mut paths = Vec::new();
        for start in starts {
            for (at, _) in private.match_indices(&format!("{start}::")) {
                let before = &private[..at];
                // `pub(in crate::room)` is a visibility.
                if before.ends_with(|c| is_word(c) || c == ':') || before.ends_with("(in ") {
                    continue;
                }
                paths.extend(
                    tree(&private[at..])
                        .0
                        .into_iter()
                        .map(|path| absolute(module, path)),
                );
            }
        }
        paths
    }
}

/// A path from the crate's root, for one that is written in `module`.
fn absolute(module: &Module, path: Vec<String>) -> Vec<String> {
    let mut whole = module.clone();
    for part in path {
        match part.as_str() {
            "crate" => whole.clear(),
            "self" => {}
            "super" => drop(whole.pop()),
            _ => whole.push(part),
        }
    }
    whole
}

/// The first circle that these steps lead into, from its least name on.
fn circle(imports: &BTreeMap<String, BTreeSet<String>>, steps: &[&String]) -> Option<Vec<String>> {
    let last = steps.last()?;
    for next in imports.get(*last)? {
        if next == steps[0] {
            let least = steps.iter().enumerate().min_by_key(|(_, name)| **name)?.0;
            let mut circle: Vec<String> = steps.iter().map(|name| (*name).clone()).collect();
            circle.rotate_left(least);
            circle.push(circle[0].clone());
            return Some(circle);
        }
        if !steps.contains(&next)
            && let Some(found) = circle(imports, &[steps, &[next]].concat())
        {
            return Some(found);
        }
    }
    None
}

/// The text without comments, and without the modules for tests that come last in a file.
fn code(text: &str) -> String {
    let text = text
        .split("\n#[cfg(test)]\nmod tests")
        .next()
        .unwrap_or(text);
    let lines = text
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"));
    lines.collect::<Vec<_>>().join("\n")
}

fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

/// Whether a statement is a `pub use`, in any degree of `pub`; then its tree.
fn reexport(statement: &str) -> Option<&str> {
    let start = statement.rfind("\npub")? + 1;
    let (visibility, tree) = statement[start..].split_once("use ")?;
    let visibility = visibility.trim_end();
    (visibility == "pub" || visibility.ends_with(')')).then_some(tree)
}

/// What a module passes on by `pub use`.
fn reexports(code: &str) -> Vec<Vec<String>> {
    let trees = code.split(';').filter_map(reexport);
    trees.flat_map(|text| tree(text).0).collect()
}

/// The code without its `pub use`.
fn without_reexports(code: &str) -> String {
    let others = code
        .split(';')
        .filter(|statement| reexport(statement).is_none());
    others.collect::<Vec<_>>().join(";")
}

/// Every path of a use tree at the beginning of `text`, and what follows it.
fn tree(text: &str) -> (Vec<Vec<String>>, &str) {
    let text = text.trim_start();
    if let Some(mut rest) = text.strip_prefix('{') {
        let mut paths = Vec::new();
        loop {
            rest = rest.trim_start_matches([' ', '\n', ',']);
            if let Some(rest) = rest.strip_prefix('}') {
                return (paths, rest);
            }
            let (more, after) = tree(rest);
            if after.len() == rest.len() {
                return (paths, rest);
            }
            paths.extend(more);
            rest = after;
        }
    }
    let end = text.find(|c| !is_word(c)).unwrap_or(text.len());
    let (name, rest) = text.split_at(end);
    if name.is_empty() {
        // `*`, or the `<` of a generic argument.
        return (vec![Vec::new()], text.strip_prefix('*').unwrap_or(text));
    }
    let Some(inner) = rest.strip_prefix("::") else {
        // The new name after `as` is not followed.
        let rest = rest
            .strip_prefix(" as ")
            .map_or(rest, |r| r.trim_start_matches(is_word));
        return (vec![vec![name.to_owned()]], rest);
    };
    let (paths, rest) = tree(inner);
    let paths = paths
        .into_iter()
        .map(|path| [vec![name.to_owned()], path].concat());
    (paths.collect(), rest)
}
