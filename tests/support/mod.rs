//! What the tests share: running the engine, the invariants, the judges, the corpus.
//!
//! Sits beside the engine and knows it by its public interface alone. Every
//! expectation here comes from the documents, never from what the engine did.
#![allow(dead_code, reason = "each test binary uses its own part")]

pub(crate) mod corpus;
pub(crate) mod damage;
pub(crate) mod envelope;
pub(crate) mod fuzzing;
pub(crate) mod harness;
pub(crate) mod invariants;
pub(crate) mod judge;
pub(crate) mod pages;
pub(crate) mod random;
pub(crate) mod shrink;
pub(crate) mod strict;

use std::path::{Path, PathBuf};

/// The folder of the project.
pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Every file below a folder, sorted, so that runs are alike everywhere.
pub(crate) fn files_below(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut open = vec![folder.to_path_buf()];
    while let Some(folder) = open.pop() {
        let Ok(entries) = std::fs::read_dir(&folder) else { continue };
        for path in entries.filter_map(|entry| Some(entry.ok()?.path())) {
            if path.is_dir() { open.push(path) } else { found.push(path) }
        }
    }
    found.sort();
    found
}

/// Fails the test with all failures at once.
#[track_caller]
pub(crate) fn report(what: &str, ran: usize, failures: &[String]) {
    assert!(ran > 0, "{what}: not one case ran");
    println!("{what}: {ran} ran, {} failed", failures.len());
    assert!(failures.is_empty(), "{what}: {} of {ran} failed\n\n{}", failures.len(), failures.join("\n\n"));
}

/// Keeps an input that failed, and says where.
pub(crate) fn keep(name: &str, input: &[u8]) -> String {
    let folder = root().join("target/failures");
    let path = folder.join(format!("{}.xml", name.replace([' ', '/', ','], "-")));
    let written = std::fs::create_dir_all(&folder).and_then(|()| std::fs::write(&path, input));
    written.map_or_else(|error| error.to_string(), |()| path.display().to_string())
}
