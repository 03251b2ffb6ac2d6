//! Broken pages as they came: evidence for the provider, seeds for fuzzers.
//!
//! `data/broken/<repository>/<what was wrong>.xml` is the newest page of that
//! repository that needed just these repairs, after content decoding, and the
//! `.json` beside it says what was asked and when. Kept up to a bound, the newest
//! first. Not being able to keep one costs nothing but the evidence.

use blake2::{Blake2s256, Digest};
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

/// The broken pages that were kept. Cheap to clone; all clones are one.
#[derive(Clone, Debug)]
pub struct BrokenPages(Arc<PathBuf>);

/// What is said of a broken page.
#[derive(Clone, Debug, Serialize)]
pub struct BrokenPageInfo {
    /// The query that brought it.
    pub request: String,
    /// When, `YYYY-MM-DDThh:mm:ssZ`.
    pub at: String,
    /// Status of the source.
    pub status: u16,
    /// Names of the repairs it needed, or of why it could not be mended.
    pub needed: Vec<&'static str>,
}

/// Longest page that is kept, in bytes.
pub const BROKEN_PAGE_BYTES_MAX: usize = 1 << 20;
/// Bytes of broken pages that are kept of one repository.
const REPOSITORY_BYTES_MAX: u64 = 16 << 20;
/// Broken pages that are kept of one repository.
const REPOSITORY_PAGES_MAX: usize = 100;
/// Longest name of a file, without its ending.
const STEM_CHARS_MAX: usize = 120;

impl BrokenPages {
    /// Those in a data folder; the folder for them is made with the first one.
    pub fn of(data: &Path) -> Self {
        Self(Arc::new(data.join("broken")))
    }

    /// Keeps a page in place of the one that needed the same. Blocks on the disk.
    ///
    /// # Errors
    ///
    /// The disk says no.
    pub fn keep(&self, repository: &str, page: &[u8], about: &BrokenPageInfo) -> std::io::Result<()> {
        let folder = self.0.join(repository);
        std::fs::create_dir_all(&folder)?;
        let stem = stem_of(&about.needed);
        let json = serde_json::to_vec_pretty(about).map_err(std::io::Error::other)?;
        for (ending, bytes) in [("xml", page), ("json", json.as_slice())] {
            // Whoever looks at it meanwhile sees the old one or the new one.
            let unfinished = folder.join(format!(".{stem}.{ending}"));
            std::fs::write(&unfinished, bytes)?;
            std::fs::rename(&unfinished, folder.join(format!("{stem}.{ending}")))?;
        }
        make_room(&folder)
    }
}

/// The name of a page: what it needed.
fn stem_of(needed: &[&str]) -> String {
    let stem = needed.join("+");
    if stem.len() <= STEM_CHARS_MAX {
        return stem;
    }
    let hash = Blake2s256::digest(stem.as_bytes());
    let hash: String = hash.iter().take(4).map(|byte| format!("{byte:02x}")).collect();
    let cut: String = stem.chars().take(STEM_CHARS_MAX - 11).collect();
    format!("{cut}...{hash}")
}

/// Removes the oldest pages beyond the bounds.
fn make_room(folder: &Path) -> std::io::Result<()> {
    let mut pages: Vec<(SystemTime, PathBuf, u64)> = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let (path, about) = {
            let entry = entry?;
            (entry.path(), entry.metadata()?)
        };
        if path.extension().is_some_and(|ending| ending == "xml") {
            pages.push((about.modified()?, path, about.len()));
        }
    }
    pages.sort_by(|a, b| b.cmp(a));
    let mut bytes = 0;
    for (place, (_, path, len)) in pages.into_iter().enumerate() {
        bytes += len;
        if bytes > REPOSITORY_BYTES_MAX || place >= REPOSITORY_PAGES_MAX {
            std::fs::remove_file(&path)?;
            std::fs::remove_file(path.with_extension("json"))?;
        }
    }
    Ok(())
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
    fn the_newest_page_of_its_kind_is_kept() {
        let data = tempfile::tempdir().expect("a temporary folder");
        let pages = BrokenPages::of(data.path());
        pages.keep("x", b"old", &about(&["bare-ampersand"])).expect("writable");
        pages.keep("x", b"new", &about(&["bare-ampersand"])).expect("writable");
        pages.keep("x", b"other", &about(&["bare-ampersand", "doctype"])).expect("writable");
        let read = |name: &str| std::fs::read(data.path().join("broken/x").join(name)).expect("it is there");
        assert_eq!(read("bare-ampersand.xml"), b"new");
        assert_eq!(read("bare-ampersand+doctype.xml"), b"other");
        let json: serde_json::Value = serde_json::from_slice(&read("bare-ampersand.json")).expect("JSON");
        assert_eq!(json["request"], "verb=Identify");
        assert_eq!(std::fs::read_dir(data.path().join("broken/x")).expect("a folder").count(), 4);
    }

    #[test]
    fn old_pages_go_when_there_are_too_many_bytes() {
        let data = tempfile::tempdir().expect("a temporary folder");
        let pages = BrokenPages::of(data.path());
        let page = vec![b'x'; BROKEN_PAGE_BYTES_MAX];
        let names: Vec<&'static str> =
            crate::repair::catalogue::CATALOGUE.iter().map(|entry| entry.name).take(20).collect();
        for name in &names {
            pages.keep("x", &page, &about(&[*name])).expect("writable");
        }
        let files = std::fs::read_dir(data.path().join("broken/x")).expect("a folder").count();
        assert_eq!(files, 2 * 16, "16 MiB, each with its JSON");
        assert!(data.path().join("broken/x").join(format!("{}.xml", names[19])).exists(), "the newest stays");
    }

    #[test]
    fn long_names_stay_apart() {
        let all: Vec<&str> = crate::repair::catalogue::CATALOGUE.iter().map(|entry| entry.name).collect();
        let (one, other) = (stem_of(&all[..12]), stem_of(&all[..13]));
        assert!(one != other && one.len() <= STEM_CHARS_MAX, "{one} {other}");
    }
}
