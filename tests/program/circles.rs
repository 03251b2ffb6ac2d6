//! Files of one crate do not import each other in a circle. Cargo allows none between crates.

use oaimend_test_support::{files_below, root};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// The modules of a crate by their paths, such as `lex::names`, with their code and without tests.
type Modules = BTreeMap<String, String>;

fn modules_of(folder: &Path) -> Modules {
    let mut modules = Modules::new();
    for path in files_below(folder) {
        let relative = path.strip_prefix(folder).unwrap_or(&path).with_extension("");
        let mut parts: Vec<String> =
            relative.iter().map(|part| part.to_string_lossy().into_owned()).collect();
        let is_rust = path.extension().is_some_and(|extension| extension == "rs");
        if !is_rust || parts.last().is_some_and(|last| last == "tests") {
            continue;
        }
        parts.pop_if(|last| ["mod", "lib", "main"].contains(&last.as_str()));
        let text =
            std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let code: Vec<&str> = text.lines().filter(|line| !line.trim_start().starts_with("//")).collect();
        let code = code.join("\n");
        let tests = code.find("#[cfg(test)]\nmod tests").unwrap_or(code.len());
        // The root names all other modules.
        if !parts.is_empty() {
            modules.insert(parts.join("::"), code[..tests].to_owned());
        }
    }
    modules
}

/// The paths of a `use` tree.
fn expand(tree: &str) -> Vec<String> {
    let tree = tree.trim();
    let Some((start, rest)) = tree.split_once('{') else { return vec![tree.to_owned()] };
    let (mut paths, mut depth, mut part) = (Vec::new(), 0, String::new());
    for character in rest.trim_end_matches('}').chars().chain([',']) {
        depth += i32::from(character == '{') - i32::from(character == '}');
        if character == ',' && depth == 0 {
            paths.extend(expand(&part).iter().map(|path| format!("{start}{path}")));
            part.clear();
        } else {
            part.push(character);
        }
    }
    paths
}

/// The modules that a module imports. A `pub use` only gives a name to the outside.
fn imports_of(module: &str, modules: &Modules) -> BTreeSet<String> {
    let code = &modules[module];
    let uses = code.split(';').filter_map(|statement| {
        let line = statement.trim_start().lines().last()?;
        let (before, tree) = statement.rsplit_once("use ")?;
        let is_public = before.lines().last().unwrap_or_default().contains("pub");
        (!is_public && !line.is_empty()).then(|| expand(tree))
    });
    let inline = ["crate::", "super::"].into_iter().flat_map(|start| {
        // A path begins once, and the place of visibility is no import.
        let is_import = |at: usize| ["pub(in ", "super::"].iter().all(|before| !code[..at].ends_with(before));
        code.match_indices(start).filter(move |(at, _)| is_import(*at)).map(|(at, _)| {
            let is_path = |character: char| !character.is_alphanumeric() && !"_:".contains(character);
            let path = &code[at..];
            path[..path.find(is_path).unwrap_or(path.len())].to_owned()
        })
    });
    let absolute = |path: &String| {
        let (mut base, mut rest): (Vec<&str>, &str) = (module.split("::").collect(), path);
        if let Some(path) = rest.strip_prefix("crate::") {
            return path.to_owned();
        }
        while let Some(path) = rest.strip_prefix("super::") {
            base.pop();
            rest = path;
        }
        base.push(rest);
        base.join("::")
    };
    let module_at = |mut path: &str| loop {
        if modules.contains_key(path) {
            return Some(path.to_owned());
        }
        path = &path[..path.rfind("::")?];
    };
    let paths: Vec<String> = uses.flatten().chain(inline).collect();
    let targets = paths.iter().filter_map(|path| module_at(&absolute(path)));
    targets.filter(|target| target != module).collect()
}

#[test]
fn no_files_import_each_other_in_a_circle() {
    let crates = std::fs::read_dir(root().join("crates")).expect("the folder of the crates");
    let crates = crates.filter_map(|entry| Some(entry.ok()?.path()));
    // The crates of the tests have no layers.
    let is_tested =
        |path: &PathBuf| ["test-support", "store-contract"].iter().all(|name| !path.ends_with(name));
    let crates = crates.filter(is_tested).map(|path| path.join("src"));
    let (mut found, mut count) = (Vec::new(), 0);
    for folder in crates.chain([root().join("src")]) {
        let modules = modules_of(&folder);
        let mut left: BTreeMap<&str, BTreeSet<String>> =
            modules.keys().map(|module| (module.as_str(), imports_of(module, &modules))).collect();
        count += left.values().map(BTreeSet::len).sum::<usize>();
        // A module is in no circle once all its imports are in none, or nothing that is left imports it.
        loop {
            let is_free = |(module, imports): &(&&str, &BTreeSet<String>)| {
                !imports.iter().any(|target| left.contains_key(target.as_str()))
                    || !left.values().any(|imports| imports.contains(**module))
            };
            let Some(free) = left.iter().find(is_free).map(|(module, _)| *module) else { break };
            left.remove(free);
        }
        let shown = folder.strip_prefix(root()).unwrap_or(&folder).display().to_string();
        found.extend(left.iter().map(|(module, imports)| {
            let targets = imports.iter().filter(|target| left.contains_key(target.as_str()));
            format!("{shown}: {module} imports {}", targets.cloned().collect::<Vec<_>>().join(", "))
        }));
    }
    assert!(count > 500, "the imports were not found: {count}");
    assert!(found.is_empty(), "circles of imports:\n  {}", found.join("\n  "));
}
