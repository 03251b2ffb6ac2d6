//! Shared by the tests: running the engine, the invariants, the judges, the corpus.
//!
//! It uses only the public interface of the engine. Its expectations come from the documentation,
//! not from observed output.

#![allow(missing_docs, reason = "most fields and constants are explained by the test that uses them")]

pub mod corpus;
pub mod damage;
pub mod envelope;
pub mod events;
pub mod forgery;
pub mod fuzzing;
pub mod grain;
pub mod harness;
pub mod hostile_pages;
pub mod invariants;
pub mod judge;
#[cfg(target_os = "linux")]
pub mod landlock;
pub mod losses;
pub mod names;
pub mod pages;
pub mod pdf;
pub mod random;
pub mod shrink;
pub mod strict;
pub mod trial;
pub mod v1;

use std::path::{Path, PathBuf};

/// The folder of the project.
pub fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

/// The step at which a test runs a long series of cases: 1 with `OAIMEND_THOROUGH`, as in CI, or else `step`.
///
/// The short series answers after an edit in seconds.
pub fn step_of_series(step: usize) -> usize {
    if std::env::var_os("OAIMEND_THOROUGH").is_some() { 1 } else { step }
}

/// Every file below a folder, sorted, so that all machines give the same order.
pub fn files_below(folder: &Path) -> Vec<PathBuf> {
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

/// Checks all items in parallel; the failures are in the order of the items.
pub fn each<T: Sync>(items: &[T], check: impl Fn(&T) -> Option<String> + Sync) -> Vec<String> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let check = &check;
    let shares: Vec<Vec<(usize, String)>> = std::thread::scope(|scope| {
        let share = |first: usize| {
            let share = items.iter().enumerate().skip(first).step_by(threads);
            share.filter_map(|(index, item)| Some((index, check(item)?))).collect()
        };
        let running: Vec<_> = (0..threads).map(|first| scope.spawn(move || share(first))).collect();
        let joined = running.into_iter().map(std::thread::ScopedJoinHandle::join);
        joined.map(|share| share.unwrap_or_else(|panic| std::panic::resume_unwind(panic))).collect()
    });
    let mut failures: Vec<(usize, String)> = shares.into_iter().flatten().collect();
    failures.sort();
    failures.into_iter().map(|(_, failure)| failure).collect()
}

/// Fails the test with all failures at once.
#[track_caller]
pub fn report(what: &str, ran: usize, failures: &[String]) {
    assert!(ran > 0, "{what}: not one case ran");
    println!("{what}: {ran} ran, {} failed", failures.len());
    assert!(failures.is_empty(), "{what}: {} of {ran} failed\n\n{}", failures.len(), failures.join("\n\n"));
}

/// Stores a failing input and returns a message with its path.
pub fn keep(name: &str, input: &[u8]) -> String {
    let folder = root().join("target/failures");
    let path = folder.join(format!("{}.xml", name.replace([' ', '/', ','], "-")));
    let written = std::fs::create_dir_all(&folder).and_then(|()| std::fs::write(&path, input));
    written.map_or_else(|error| error.to_string(), |()| path.display().to_string())
}
