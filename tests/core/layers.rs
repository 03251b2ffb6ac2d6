//! The layers of the source: imports point downwards, files do not import each other in a circle, and
//! the methods of a type stay together.
//!
//! The layers are the rows of the map in ARCHITECTURE.md, from the lowest to the highest.

use std::collections::{BTreeMap, BTreeSet};

use crate::support::{files_below, root};

/// The modules of `src` by their paths, e.g. `repair::lex::names`, with their code and without tests.
struct Modules {
    code: BTreeMap<String, String>,
}

impl Modules {
    fn read() -> Self {
        let src = root().join("src");
        let mut code = BTreeMap::new();
        for path in files_below(&src) {
            let relative = path.strip_prefix(&src).unwrap_or(&path).with_extension("");
            let mut parts: Vec<String> =
                relative.iter().map(|part| part.to_string_lossy().into_owned()).collect();
            let is_rust = path.extension().is_some_and(|extension| extension == "rs");
            if !is_rust || parts.last().is_some_and(|last| last == "tests") {
                continue;
            }
            if parts.last().is_some_and(|last| last == "mod") {
                parts.pop();
            }
            let text =
                std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            code.insert(parts.join("::"), without_tests(&without_comments(&text)));
        }
        Self { code }
    }

    /// The module that contains the item at `path`, and the item's path inside it.
    fn resolve<'p>(&self, path: &'p str) -> Option<(&'p str, &'p str)> {
        let mut module = path;
        loop {
            if self.code.contains_key(module) {
                return Some((module, path[module.len()..].trim_start_matches("::")));
            }
            module = &module[..module.rfind("::")?];
        }
    }

    /// The absolute paths that a module names: its imports, and paths inside its code. A `pub use` of a
    /// `mod.rs` is no import, because it only gives a name to the outside.
    fn paths_of(&self, module: &str) -> BTreeSet<String> {
        let code = &self.code[module];
        let mut paths = BTreeSet::new();
        let mut rest = code.as_str();
        let mut without_uses = String::new();
        while let Some(at) = next_use(rest) {
            let end = rest[at..].find(';').map_or(rest.len(), |len| at + len);
            let line_start = rest[..at].rfind('\n').map_or(0, |newline| newline + 1);
            let is_public = rest[line_start..at].contains("pub");
            without_uses.push_str(&rest[..at]);
            if !is_public {
                paths.extend(expand(&rest[at + "use ".len()..end]));
            }
            rest = &rest[end..];
        }
        without_uses.push_str(rest);
        for start in ["crate::", "super::", "self::"] {
            for (at, _) in without_uses.match_indices(start) {
                let before = &without_uses[..at];
                // `pub(in path)` is no import.
                let is_start = !before.ends_with("pub(in ")
                    && !before.ends_with(|before: char| before.is_alphanumeric() || "_:".contains(before));
                if is_start {
                    let is_path = |c: char| c.is_alphanumeric() || c == '_' || c == ':';
                    let len = without_uses[at..].find(|c| !is_path(c)).unwrap_or(without_uses.len() - at);
                    paths.insert(without_uses[at..at + len].trim_end_matches(':').to_owned());
                }
            }
        }
        // A path that begins with a child of this module.
        let child = |path: &String| {
            let first = path.split("::").next().unwrap_or_default();
            let target = [module, first].join("::").trim_start_matches(':').to_owned();
            self.code.contains_key(&target).then(|| [module, path].join("::").trim_matches(':').to_owned())
        };
        paths.iter().filter_map(|path| absolute(path, module).or_else(|| child(path))).collect()
    }

    /// The modules that a module imports.
    fn imports_of(&self, module: &str) -> BTreeSet<String> {
        let paths = self.paths_of(module);
        let targets = paths.iter().filter_map(|path| self.resolve(path)).map(|(target, _)| target.to_owned());
        targets.filter(|target| target != module).collect()
    }
}

/// Where the next `use` begins.
fn next_use(code: &str) -> Option<usize> {
    code.match_indices("use ").map(|(at, _)| at).find(|&at| {
        !code[..at].ends_with(|before: char| before.is_alphanumeric() || before == '_' || before == '"')
    })
}

/// The paths of a `use` tree.
fn expand(tree: &str) -> Vec<String> {
    let tree = tree.trim();
    let Some(open) = tree.find('{') else {
        return vec![tree.split(" as ").next().unwrap_or_default().trim().to_owned()];
    };
    let inner = tree[open + 1..].strip_suffix('}').unwrap_or(&tree[open + 1..]);
    let mut paths = Vec::new();
    let (mut depth, mut from) = (0, 0);
    for (at, c) in inner.char_indices().chain([(inner.len(), ',')]) {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                let part = inner.get(from..at).unwrap_or_default();
                paths.extend(
                    expand(part)
                        .iter()
                        .filter(|part| !part.is_empty())
                        .map(|part| format!("{}{part}", &tree[..open]).trim_end_matches("::self").to_owned()),
                );
                from = at + 1;
            }
            _ => {}
        }
    }
    paths
}

/// A path from the root of the crate; `None` for one of another crate.
fn absolute(path: &str, module: &str) -> Option<String> {
    let mut base: Vec<&str> = module.split("::").filter(|part| !part.is_empty()).collect();
    if let Some(rest) = path.strip_prefix("crate::") {
        return Some(rest.to_owned());
    }
    if let Some(rest) = path.strip_prefix("self::") {
        return Some([base.join("::").as_str(), rest].join("::"));
    }
    let mut rest = path;
    while let Some(inner) = rest.strip_prefix("super::") {
        base.pop();
        rest = inner;
    }
    (rest.len() < path.len())
        .then(|| [base.join("::").as_str(), rest].join("::").trim_matches(':').to_owned())
}

fn without_comments(text: &str) -> String {
    text.lines().filter(|line| !line.trim_start().starts_with("//")).collect::<Vec<_>>().join("\n")
}

/// The code before the tests of the module, which are at its end.
fn without_tests(code: &str) -> String {
    let tests = code.find("#[cfg(test)]\nmod tests").unwrap_or(code.len());
    code[..tests].to_owned()
}

/// The layers from the lowest to the highest: the paths in the first column of ARCHITECTURE.md's map.
fn layers() -> Vec<String> {
    let page = std::fs::read_to_string(root().join("ARCHITECTURE.md")).expect("ARCHITECTURE.md is readable");
    let map = page.split("## Map of the code").nth(1).expect("ARCHITECTURE.md has a map");
    let map = map.split("\n## ").next().unwrap_or_default();
    let rows = map.lines().filter_map(|line| line.strip_prefix("| `src/")?.split('`').next());
    rows.map(|path| path.trim_end_matches('/').trim_end_matches(".rs").replace('/', "::")).collect()
}

/// The rank of a module: the row with the longest path that contains it.
fn rank_of(module: &str, layers: &[String]) -> Option<usize> {
    let contains = |layer: &str| {
        module.strip_prefix(layer).is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
    };
    (0..layers.len()).filter(|&rank| contains(&layers[rank])).max_by_key(|&rank| layers[rank].len())
}

#[track_caller]
fn none(what: &str, found: &[String]) {
    assert!(found.is_empty(), "{what}:\n  {}", found.join("\n  "));
}

#[test]
fn imports_point_downwards() {
    let (modules, layers) = (Modules::read(), layers());
    assert!(layers.len() > 15, "the map was not found: {layers:?}");
    let mut found = Vec::new();
    for module in modules.code.keys().filter(|module| !["main", "lib"].contains(&module.as_str())) {
        let Some(own) = rank_of(module, &layers) else {
            found.push(format!("{module} is in no row of the map in ARCHITECTURE.md"));
            continue;
        };
        for target in modules.imports_of(module) {
            let rank = rank_of(&target, &layers);
            if rank.is_some_and(|rank| rank > own) {
                found.push(format!("{module} imports {target}, which is in a higher layer"));
            }
        }
    }
    none("imports that point upwards", &found);
}

#[test]
fn no_files_import_each_other_in_a_circle() {
    let modules = Modules::read();
    let imports: BTreeMap<&str, BTreeSet<String>> =
        modules.code.keys().map(|module| (module.as_str(), modules.imports_of(module))).collect();
    // A module is in no circle once all its imports are in none.
    let mut left: BTreeSet<&str> = imports.keys().copied().filter(|module| *module != "lib").collect();
    loop {
        let free: Vec<&str> = left
            .iter()
            .copied()
            .filter(|module| !imports[module].iter().any(|target| left.contains(target.as_str())))
            .collect();
        if free.is_empty() {
            break;
        }
        for module in free {
            left.remove(module);
        }
    }
    // The rest is in a circle, or imports one.
    while let Some(&outside) =
        left.iter().find(|&&module| !left.iter().any(|other| imports[other].contains(module)))
    {
        left.remove(outside);
    }
    let found: Vec<String> = left
        .iter()
        .map(|module| {
            let targets = imports[module].iter().filter(|target| left.contains(target.as_str()));
            format!("{module} imports {}", targets.cloned().collect::<Vec<_>>().join(", "))
        })
        .collect();
    none("circles of imports", &found);
}

/// Files that may contain methods of one type.
const FILES_OF_A_TYPE_MAX: usize = 3;

#[test]
fn the_methods_of_a_type_are_in_few_files() {
    let modules = Modules::read();
    let mut files: BTreeMap<String, BTreeSet<&str>> = BTreeMap::new();
    for (module, code) in &modules.code {
        let paths = modules.paths_of(module);
        for name in code.lines().filter_map(implemented_type) {
            let is_own = ["struct ", "enum "].iter().any(|kind| code.contains(&format!("{kind}{name}")));
            let imported = paths.iter().find(|path| path.ends_with(&format!("::{name}")));
            let home = imported.filter(|_| !is_own).cloned().unwrap_or_else(|| format!("{module}::{name}"));
            files.entry(home).or_default().insert(module);
        }
    }
    assert!(files.len() > 100, "the methods were not found");
    let found: Vec<String> = files
        .iter()
        .filter(|(_, files)| files.len() > FILES_OF_A_TYPE_MAX)
        .map(|(home, files)| format!("{home}: {files:?}"))
        .collect();
    none("types with methods in too many files", &found);
}

/// The name of the type whose own methods begin at this line.
fn implemented_type(line: &str) -> Option<&str> {
    let rest = line.strip_prefix("impl")?;
    let rest = match rest.strip_prefix('<') {
        Some(generics) => generics.split_once("> ")?.1,
        None => rest.strip_prefix(' ')?,
    };
    let name = rest.split(['<', ' ']).next()?;
    (!rest.contains(" for ") && rest.ends_with('{')).then_some(name)
}
