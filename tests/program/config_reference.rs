//! docs/reference/configuration*.md: the pages list exactly the keys that the program reads.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use oaimend::config::{Config, Flags};
use oaimend_base::error::Error;
use oaimend_test_support::root;

/// No key is similar to this name, so its fault lists all keys of the table.
const UNKNOWN: &str = "qqqqqqqqqqqqqqqqqqqqqqqqqqqq";
/// Tables whose keys are names that the operator chooses; the pages call them NAME.
const NAMED: &str = "clients.known";
/// The table whose keys are names of HTTP headers, which the page calls NAME too.
const HEADERS: &str = "headers";
/// Keys of a mapping that the pages describe once, as keys of `oaimend.toml`.
const INHERITED: &str = "limits.";

/// The texts of the faults of one file with this content.
fn faults_of(folder: &Path, file: &str, text: &str) -> Vec<String> {
    let mappings = folder.join("mappings");
    fs::create_dir_all(&mappings).expect("a writable folder");
    for name in ["oaimend.toml", "mappings/x.toml"] {
        fs::write(folder.join(name), if name == file { text } else { "" }).expect("a writable folder");
    }
    let config = Some(folder.join("oaimend.toml"));
    match Config::load(&Flags { config, mappings: Some(mappings), ..Flags::default() }) {
        Err(Error::Config(faults)) => {
            let faults = faults.into_iter().filter(|fault| fault.file.ends_with(file));
            faults.map(|fault| fault.text).collect()
        }
        other => panic!("{file} has no fault: {other:?}"),
    }
}

/// All keys below a table of a file, with their full names. `table` is empty for the root.
fn keys_below(folder: &Path, file: &str, table: &str) -> BTreeSet<String> {
    if table == NAMED {
        return keys_below(folder, file, &format!("{table}.NAME"));
    }
    if table == HEADERS {
        return BTreeSet::from([format!("{table}.NAME")]);
    }
    let head = if table.is_empty() { String::new() } else { format!("[{table}]\n") };
    let faults = faults_of(folder, file, &format!("{head}{UNKNOWN} = 1\n"));
    let fault = faults.iter().find(|fault| fault.contains(UNKNOWN)).expect("a fault of the unknown key");
    let (_, known) = fault.rsplit_once(" are ").expect("the fault lists the known keys");
    let mut keys = BTreeSet::new();
    for key in known.split(", ") {
        let name = if table.is_empty() { key.to_owned() } else { format!("{table}.{key}") };
        // A boolean is wrong for a table, and the fault says so.
        let faults = faults_of(folder, file, &format!("{name} = false\n{UNKNOWN} = 1\n"));
        let is_table = faults.iter().any(|fault| fault.starts_with(&name) && fault.contains("a table"));
        if is_table {
            keys.extend(keys_below(folder, file, &name));
        } else {
            keys.insert(name);
        }
    }
    keys
}

/// The keys in the first cells of the tables of the pages.
fn documented_keys() -> BTreeSet<String> {
    let mut keys = BTreeSet::new();
    for entry in fs::read_dir(root().join("docs/reference")).expect("the folder of the pages") {
        let path = entry.expect("an entry of the folder").path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if !name.starts_with("configuration") {
            continue;
        }
        let page = fs::read_to_string(&path).expect("a readable page");
        let mut is_key_table = false;
        for line in page.lines() {
            is_key_table = line.starts_with("| key |") || is_key_table && line.starts_with('|');
            if is_key_table {
                let cell = line.split('|').nth(1).unwrap_or_default();
                keys.extend(cell.split('`').skip(1).step_by(2).map(str::to_owned));
            }
        }
    }
    keys
}

#[test]
fn the_reference_lists_exactly_the_keys_of_the_configuration() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let mut known = keys_below(folder.path(), "oaimend.toml", "");
    assert!(known.iter().any(|key| key.starts_with(INHERITED)), "{known:?}");
    let mapping = keys_below(folder.path(), "mappings/x.toml", "");
    known.extend(mapping.into_iter().filter(|key| !key.starts_with(INHERITED)));
    assert!(known.len() > 90, "only {} keys were found: {known:?}", known.len());
    let mut documented = documented_keys();
    assert!(documented.remove("limits.*"), "the page of mappings refers to the page of limits");
    let missing: Vec<&String> = known.difference(&documented).collect();
    let unknown: Vec<&String> = documented.difference(&known).collect();
    assert!(missing.is_empty() && unknown.is_empty(), "missing: {missing:?}; unknown: {unknown:?}");
}
