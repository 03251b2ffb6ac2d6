//! Whether the mappings folder, or a folder of records, may have changed, without listing it.
//!
//! To list ten thousand files every two seconds takes more time than to serve some requests. Therefore the kernel
//! reports changes in the folder, and oaimend looks at the folder itself: it may be replaced by another one, for example
//! by a symlink to a new release. Not every file system reports changes, so the folder is also listed at intervals.

use notify::{Config, Event, RecommendedWatcher, RecursiveMode, Watcher as _};
use oaimend_base::clock;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};

/// How often the folder is listed although no change was reported.
const LIST_INTERVAL: Duration = Duration::from_secs(60);

/// Watches a folder.
pub(super) struct MappingsWatch {
    folder: Option<PathBuf>,
    mode: RecursiveMode,
    /// `None` if the system cannot watch the folder. It is then due at each look.
    watcher: Option<RecommendedWatcher>,
    /// Set when a change was reported.
    has_changed: Arc<AtomicBool>,
    seen: Option<FolderStamp>,
    due_at: Duration,
}

/// Identifies a folder, and changes when a file is added, removed or renamed.
#[derive(Clone, Copy, PartialEq, Eq)]
struct FolderStamp {
    device: u64,
    inode: u64,
    modified: Option<SystemTime>,
}

impl MappingsWatch {
    /// Watches a folder, which is due at the first look.
    pub(super) fn new(folder: Option<&Path>) -> Self {
        Self {
            folder: folder.map(Path::to_owned),
            mode: RecursiveMode::NonRecursive,
            watcher: None,
            has_changed: Arc::default(),
            seen: None,
            due_at: Duration::ZERO,
        }
    }

    /// Watches a folder and its subfolders.
    pub(super) fn with_subfolders(folder: &Path) -> Self {
        Self { mode: RecursiveMode::Recursive, ..Self::new(Some(folder)) }
    }

    /// Whether the folder must be listed. Changes after this call are found by the next one.
    pub(super) fn is_due(&mut self) -> bool {
        let Some(folder) = &self.folder else { return false };
        let stamp = FolderStamp::of(folder);
        let has_changed = self.has_changed.swap(false, Ordering::SeqCst);
        let now = clock::uptime();
        if self.watcher.is_some() && !has_changed && stamp == self.seen && now < self.due_at {
            return false;
        }
        let place = |stamp: FolderStamp| (stamp.device, stamp.inode);
        if self.watcher.is_none() || stamp.map(place) != self.seen.map(place) {
            // A folder that does not exist yet is looked for.
            self.watcher = stamp.and_then(|_| watch(folder, self.mode, Arc::clone(&self.has_changed)));
        }
        (self.seen, self.due_at) = (stamp, now + LIST_INTERVAL);
        true
    }
}

impl FolderStamp {
    fn of(folder: &Path) -> Option<Self> {
        let meta = std::fs::metadata(folder).ok()?;
        Some(Self { device: meta.dev(), inode: meta.ino(), modified: meta.modified().ok() })
    }
}

/// Sets `has_changed` at each change in the folder; `None` if the system cannot report changes.
fn watch(folder: &Path, mode: RecursiveMode, has_changed: Arc<AtomicBool>) -> Option<RecommendedWatcher> {
    // An error may stand for lost reports. Reads are reports too.
    let is_change = |event: notify::Result<Event>| event.map_or(true, |event| !event.kind.is_access());
    let report = move |event| {
        has_changed.fetch_or(is_change(event), Ordering::SeqCst);
    };
    let watcher = RecommendedWatcher::new(report, Config::default().with_follow_symlinks(false));
    let watched = watcher.and_then(|mut watcher| {
        watcher.watch(folder, mode)?;
        Ok(watcher)
    });
    match watched {
        Ok(watcher) => Some(watcher),
        Err(error) => {
            tracing::debug!(%error, "changes of a folder are not reported; it is listed at each look");
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether the folder becomes due within some seconds.
    fn becomes_due(watch: &mut MappingsWatch) -> bool {
        let until = clock::uptime() + Duration::from_secs(20);
        while clock::uptime() < until {
            if watch.is_due() {
                return true;
            }
            std::thread::yield_now();
        }
        false
    }

    /// Waits until all reports of a change have arrived.
    fn settle(watch: &mut MappingsWatch) {
        let until = clock::uptime() + Duration::from_secs(20);
        while watch.is_due() {
            assert!(clock::uptime() < until, "the reports do not end");
        }
    }

    #[test]
    fn folder_is_due_after_a_change_only() {
        let data = tempfile::tempdir().expect("a folder");
        let (first, second, link) = (data.path().join("1"), data.path().join("2"), data.path().join("link"));
        for folder in [&first, &second] {
            std::fs::create_dir(folder).expect("a writable folder");
            std::fs::write(folder.join("x.toml"), "a").expect("a writable folder");
        }
        std::os::unix::fs::symlink(&first, &link).expect("a writable folder");
        let mut watch = MappingsWatch::new(Some(&link));
        assert!(watch.is_due(), "it was not listed yet");
        assert!(watch.watcher.is_some(), "the tests need a file system that reports changes");
        assert!(!watch.is_due());
        std::fs::read(first.join("x.toml")).expect("readable");
        assert!(!watch.is_due(), "it was only read");
        // A file that is written in place does not change its folder.
        std::fs::write(first.join("x.toml"), "b").expect("writable");
        assert!(becomes_due(&mut watch), "written in place");
        settle(&mut watch);
        std::fs::write(first.join("y.toml"), "a").expect("writable");
        assert!(becomes_due(&mut watch), "added");
        std::fs::remove_file(&link).expect("writable");
        std::os::unix::fs::symlink(&second, &link).expect("a writable folder");
        assert!(watch.is_due(), "another folder");
        settle(&mut watch);
        std::fs::write(second.join("x.toml"), "b").expect("writable");
        assert!(becomes_due(&mut watch), "the other folder is watched too");
    }

    #[test]
    fn folder_is_due_at_intervals() {
        let data = tempfile::tempdir().expect("a folder");
        let mut watch = MappingsWatch::new(Some(data.path()));
        assert!(watch.is_due() && !watch.is_due());
        watch.due_at = clock::uptime();
        assert!(watch.is_due() && !watch.is_due());
        assert!(!MappingsWatch::new(None).is_due());
    }
}
