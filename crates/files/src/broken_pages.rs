//! Broken pages as received: evidence for the provider, and seeds for fuzzers.
//!
//! `data/broken/<repository>/<repairs>.xml` is the newest page of a repository that needed exactly these repairs, after
//! content decoding. The `.json` file beside it contains the request and its time. The number and size of the files
//! are limited; the oldest are removed first. If a page cannot be stored, only the evidence is lost.
//!
//! A page is stored only if one of its defects was not stored lately: some repositories send thousands of pages with the
//! same defect.

use blake2::{Blake2s256, Digest};
use serde::Serialize;
use std::collections::HashMap;
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};
use tempfile::NamedTempFile;

/// The stored broken pages. Clones share them.
#[derive(Clone, Debug)]
pub struct BrokenPages(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    folder: PathBuf,
    /// When each defect of each repository was last stored, by [`clock::uptime`](oaimend_base::clock::uptime).
    stored: Mutex<HashMap<String, HashMap<&'static str, Duration>>>,
}

/// The content of the JSON file.
#[derive(Clone, Debug, Serialize)]
pub struct BrokenPageInfo {
    /// The query whose response it was.
    pub request: String,
    /// The time of the response, `YYYY-MM-DDThh:mm:ssZ`.
    pub at: String,
    /// HTTP status of the source.
    pub status: u16,
    /// Names of the repairs it needed, or of the reasons why it could not be repaired.
    pub needed: Vec<&'static str>,
}

/// Longest page that is stored, in bytes.
pub const BROKEN_PAGE_BYTES_MAX: usize = 1 << 20;
/// Maximum number of bytes of broken pages of one repository.
const REPOSITORY_BYTES_MAX: u64 = 16 << 20;
/// Maximum number of broken pages of one repository.
const REPOSITORY_PAGES_MAX: usize = 100;
/// How long a defect of a repository is not stored again.
const STORE_INTERVAL: Duration = Duration::from_mins(10);
/// Longest file name without extension, in characters.
const STEM_CHARS_MAX: usize = 120;

impl BrokenPages {
    /// The broken pages of a data folder. Their folder is created with the first one.
    pub fn new(data: &Path) -> Self {
        Self(Arc::new(Shared { folder: data.join("broken"), stored: Mutex::default() }))
    }

    /// Whether a page with these defects is to be stored at `now`, by [`clock::uptime`](oaimend_base::clock::uptime). If so, they
    /// count as stored.
    pub fn are_due(&self, repository: &str, needed: &[&'static str], now: Duration) -> bool {
        let mut stored = self.0.stored.lock().unwrap_or_else(PoisonError::into_inner);
        let defects = match stored.get_mut(repository) {
            Some(defects) => defects,
            None => stored.entry(repository.to_owned()).or_default(),
        };
        let is_due =
            |defect: &&str| defects.get(*defect).is_none_or(|at| now.saturating_sub(*at) >= STORE_INTERVAL);
        if !needed.iter().any(is_due) {
            return false;
        }
        defects.extend(needed.iter().map(|defect| (*defect, now)));
        true
    }

    /// Stores a page in place of the one that needed the same repairs. Blocks on the disk.
    ///
    /// # Errors
    ///
    /// The page cannot be written.
    pub fn store(&self, repository: &str, page: &[u8], about: &BrokenPageInfo) -> std::io::Result<()> {
        let folder = self.0.folder.join(repository);
        std::fs::create_dir_all(&folder)?;
        let stem = stem_of(&about.needed);
        let json = serde_json::to_vec_pretty(about).map_err(std::io::Error::other)?;
        for (ending, bytes) in [("xml", page), ("json", json.as_slice())] {
            // A reader sees the old file or the new file, never a part of one. Each writer has a file of its own.
            let mut unfinished = NamedTempFile::new_in(&folder)?;
            unfinished.write_all(bytes)?;
            unfinished.persist(folder.join(format!("{stem}.{ending}")))?;
        }
        remove_oldest(&folder)
    }
}

/// The file name of a page: the repairs it needed.
fn stem_of(needed: &[&str]) -> String {
    let stem = needed.join("+");
    if stem.len() <= STEM_CHARS_MAX {
        return stem;
    }
    let hash = Blake2s256::digest(stem.as_bytes());
    let hash = hex::encode(&hash[..4]);
    let cut: String = stem.chars().take(STEM_CHARS_MAX - 11).collect();
    format!("{cut}...{hash}")
}

/// Removes the oldest pages beyond the limits.
fn remove_oldest(folder: &Path) -> std::io::Result<()> {
    let mut pages: Vec<(SystemTime, PathBuf, u64)> = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.extension().is_none_or(|ending| ending != "xml") {
            continue;
        }
        // Another writer may have removed the page.
        if let Some(about) = unless_removed(std::fs::metadata(&path))? {
            pages.push((about.modified()?, path, about.len()));
        }
    }
    pages.sort_by(|a, b| b.cmp(a));
    let mut bytes = 0;
    for (place, (_, path, len)) in pages.into_iter().enumerate() {
        bytes += len;
        if bytes > REPOSITORY_BYTES_MAX || place >= REPOSITORY_PAGES_MAX {
            unless_removed(std::fs::remove_file(&path))?;
            unless_removed(std::fs::remove_file(path.with_extension("json")))?;
        }
    }
    Ok(())
}

/// `None` if the file does not exist.
fn unless_removed<T>(done: std::io::Result<T>) -> std::io::Result<Option<T>> {
    match done {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        done => done.map(Some),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn about(needed: &[&'static str]) -> BrokenPageInfo {
        BrokenPageInfo {
            request: "verb=Identify".into(),
            at: "2026-01-02T03:04:05Z".into(),
            status: 200,
            needed: needed.to_vec(),
        }
    }

    #[test]
    fn the_newest_page_with_the_same_repairs_is_stored() {
        let data = tempfile::tempdir().expect("a temporary folder");
        let pages = BrokenPages::new(data.path());
        pages.store("x", b"old", &about(&["bare-ampersand"])).expect("writable");
        pages.store("x", b"new", &about(&["bare-ampersand"])).expect("writable");
        pages.store("x", b"other", &about(&["bare-ampersand", "doctype"])).expect("writable");
        let read = |name: &str| std::fs::read(data.path().join("broken/x").join(name)).expect("it is there");
        assert_eq!(read("bare-ampersand.xml"), b"new");
        assert_eq!(read("bare-ampersand+doctype.xml"), b"other");
        let json: serde_json::Value = serde_json::from_slice(&read("bare-ampersand.json")).expect("JSON");
        assert_eq!(json["request"], "verb=Identify");
        assert_eq!(std::fs::read_dir(data.path().join("broken/x")).expect("a folder").count(), 4);
    }

    #[test]
    fn each_defect_is_stored_once_in_an_interval() {
        let pages = BrokenPages::new(Path::new("unused"));
        let at = |secs| Duration::from_secs(secs);
        assert!(pages.are_due("x", &["bare-ampersand"], at(5)));
        assert!(!pages.are_due("x", &["bare-ampersand"], at(604)));
        assert!(pages.are_due("y", &["bare-ampersand"], at(10)), "each repository has its own pages");
        assert!(pages.are_due("x", &["bare-ampersand", "doctype"], at(600)), "the second one is new");
        assert!(!pages.are_due("x", &["doctype"], at(1199)));
        assert!(!pages.are_due("x", &["bare-ampersand"], at(1199)), "it was stored with the other");
        assert!(pages.are_due("x", &["bare-ampersand"], at(1200)));
    }

    #[test]
    fn the_oldest_pages_are_removed_beyond_the_limit() {
        let data = tempfile::tempdir().expect("a temporary folder");
        let pages = BrokenPages::new(data.path());
        let page = vec![b'x'; BROKEN_PAGE_BYTES_MAX];
        let names: Vec<&'static str> =
            oaimend_repair::catalog::CATALOG.iter().map(|entry| entry.name).take(20).collect();
        for name in &names {
            pages.store("x", &page, &about(&[*name])).expect("writable");
        }
        let files = std::fs::read_dir(data.path().join("broken/x")).expect("a folder").count();
        assert_eq!(files, 2 * 16, "16 MiB, each with its JSON");
        assert!(data.path().join("broken/x").join(format!("{}.xml", names[19])).exists(), "the newest stays");
    }

    #[test]
    fn concurrent_writers_of_the_same_page_do_not_fail() {
        let data = tempfile::tempdir().expect("a temporary folder");
        let pages = BrokenPages::new(data.path());
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..100 {
                        pages
                            .store("x", b"page", &about(&["doctype"]))
                            .expect("each writer has its own file");
                    }
                });
            }
        });
        assert_eq!(std::fs::read_dir(data.path().join("broken/x")).expect("a folder").count(), 2);
    }

    #[test]
    fn long_names_stay_distinct() {
        let all: Vec<&str> = oaimend_repair::catalog::CATALOG.iter().map(|entry| entry.name).collect();
        let (one, other) = (stem_of(&all[..12]), stem_of(&all[..13]));
        assert!(one != other && one.len() <= STEM_CHARS_MAX, "{one} {other}");
    }
}
