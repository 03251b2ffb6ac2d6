//! The cached pages on disk: one file for each page, an index in memory, and a limit on all of them.
//!
//! `data/cache/<repository>/<name>` is one page (`entry` describes the format). The name is a hash of its key. A page
//! is written to a `.part` file in the same folder, and renamed when it is complete. This module does not interpret
//! HTTP: the caller defines the metadata of a body.
//!
//! **No file is synced to the disk.** When the process is killed, the kernel still writes the files. When the machine
//! fails, pages may be lost or torn, and their checksums detect that. A cache may lose a page, but it must never
//! return a damaged page. [`Pages::find`] removes a page that it finds damaged.
//!
//! [`Pages::scan`] rebuilds the index at each start from the headers of the files. Until it is done, [`Pages::find`]
//! looks at the disk. The index knows the order of use, so that [`Pages::commit`] evicts the least recently used
//! pages.
//!
//! Short pages that were read are also held in memory (`hot`). They were verified when they were read, and are dropped
//! when this process removes or replaces their file. Other pages have no file at all (`unsaved`).

use super::disk_wait::Wait;
use super::entry::{self, Entry, HEAD_BYTES, Head, NewPage};
use super::hot::{HOT_BYTES_MAX, HotPage, HotPages, PageCoding};
use super::key::{Name, PageKey, name_of};
use super::reuse::{Reused, take};
use super::unsaved::UnsavedPages;
use oaimend_base::error::Error;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs::{File, TryLockError};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The pages on disk. All calls block on the disk, except [`Pages::is_absent`], [`Pages::is_known`], [`Pages::hot`],
/// [`Pages::keep_hot`], [`Pages::keep_unsaved`], [`Pages::note_followed`], [`Pages::lend`], [`Pages::size`], and
/// [`Pages::find`] that must not wait.
#[derive(Debug)]
pub struct Pages {
    folder: PathBuf,
    pub(super) bytes_max: u64,
    parts: AtomicU64,
    /// Another process has the folder.
    is_closed: AtomicBool,
    /// Held while files of pages are renamed or removed, so that these changes and those of the index are in the same
    /// order. Locked before `index`.
    files: Mutex<()>,
    /// Never locked during a call that waits for the disk: requests for pages in memory need it.
    index: Mutex<Index>,
}

/// The size of the cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Size {
    /// Pages.
    pub entries: u64,
    /// Their files, and those in memory that have no file, in bytes.
    pub bytes: u64,
}

/// A page that is being written. Dropping it removes its file, unless [`Pages::commit`] has renamed it.
#[derive(Debug)]
pub struct Part {
    file: File,
    path: PathBuf,
    /// Length of the file before it was written, in bytes; more than 0 if it was another page's.
    length_before: u64,
    is_committed: AtomicBool,
}

#[derive(Debug, Default)]
pub(super) struct Index {
    slots: HashMap<Name, Slot>,
    /// By their last use, the least recent first.
    order: BTreeMap<i64, Name>,
    pub(super) hot: HotPages,
    pub(super) unsaved: UnsavedPages,
    last_use: i64,
    bytes: u64,
    /// Whether the index contains every file.
    is_whole: bool,
}

#[derive(Clone, Copy, Debug)]
struct Slot {
    bytes: u64,
    used: i64,
    useless_from: u64,
    /// Whether this process has verified the checksums of the whole body, or has written it.
    is_checked: bool,
    /// Whether another page may be written into the file: this process has written it, and the kernel has sent no part of
    /// it.
    is_reusable: bool,
    /// Distinguishes a page from an earlier page with the same name.
    edition: i64,
}

impl Pages {
    /// Opens or creates `cache/` in the data folder, and removes unfinished files of a killed process. `bytes_max`
    /// limits the size of all files together.
    ///
    /// # Errors
    ///
    /// The folder cannot be written to.
    pub fn open(data: &Path, bytes_max: u64) -> Result<Self, Error> {
        let folder = data.join("cache");
        let remedy = "name a folder that can be written to with --data";
        std::fs::create_dir_all(&folder).map_err(|error| Error::writing(&folder, error, remedy))?;
        let pages = Self {
            folder,
            bytes_max,
            parts: AtomicU64::new(0),
            is_closed: AtomicBool::new(false),
            files: Mutex::default(),
            index: Mutex::default(),
        };
        for path in pages.files().into_iter().filter(|path| path.extension().is_some_and(|e| e == PART)) {
            std::fs::remove_file(&path).map_err(|error| Error::writing(&path, error, remedy))?;
        }
        Ok(pages)
    }

    /// Builds the index from the headers of all files; to be run once, in the background.
    pub fn scan(&self) {
        let mut found = Vec::new();
        for path in self.files() {
            let Some(name) = name_of(&path) else { continue };
            match File::open(&path).and_then(|file| Ok((Head::read(&file, Wait::Allowed)?, file.metadata()?)))
            {
                Ok((head, about)) => {
                    found.push((about.modified().ok(), name, head.useless_from, about.len()))
                }
                Err(error) => self.forget_damaged(&name, &error),
            }
        }
        found.sort_by_key(|(modified, ..)| *modified);
        let _changing = self.changing_files();
        found.retain(|(_, name, ..)| self.path(name).exists());
        let mut index = self.index();
        // Older than every page that was used since the start.
        for ((_, name, useless_from, bytes), used) in found.into_iter().rev().zip((i64::MIN..0).rev()) {
            if !index.slots.contains_key(&name) {
                index.insert(name, Slot::new(bytes, used, useless_from));
            }
        }
        index.is_whole = true;
        let evicted = index.evict(self.bytes_max);
        drop(index);
        self.remove_files(&evicted);
    }

    /// Whether the page is certainly absent; does not read the disk.
    pub fn is_absent(&self, key: &PageKey) -> bool {
        let index = self.index();
        index.is_whole && !index.contains(key.name())
    }

    /// Whether the index contains the page; does not read the disk.
    pub fn is_known(&self, key: &PageKey) -> bool {
        self.index().contains(key.name())
    }

    /// The page, if it is in memory in this coding; does not read the disk.
    pub fn hot(&self, key: &PageKey, coding: PageCoding) -> Option<Arc<HotPage>> {
        let name = key.name();
        let mut index = self.index();
        if coding == PageCoding::Plain
            && let Some(page) = index.unsaved.find(name)
        {
            return Some(page);
        }
        let hot = index.hot.find(name, coding)?;
        index.touch(name);
        Some(hot)
    }

    /// Holds a page in memory whose body was read, and drops others to make room. Drops the page instead if another
    /// edition has replaced it.
    pub fn keep_hot(&self, key: &PageKey, coding: PageCoding, page: HotPage) {
        let name = key.name();
        let mut index = self.index();
        if index.edition(name) == Some(page.edition) {
            index.hot.keep(name, coding, page);
        }
    }

    /// The page, if it exists and is intact.
    ///
    /// # Errors
    ///
    /// The lookup would have to wait for the disk ([`io::ErrorKind::WouldBlock`]), and must not.
    pub fn find(&self, key: &PageKey, wait: Wait) -> io::Result<Option<Entry>> {
        let name = key.name();
        // Read before the file is opened: a page that replaces it meanwhile has another edition.
        let known = self.index().slots.get(name).map(|slot| (slot.edition, slot.is_checked));
        let is_checked = known.is_some_and(|(_, is_checked)| is_checked);
        if wait == Wait::Refused && !is_checked {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let file = match wait.open(&self.path(name)) {
            Ok(file) => file,
            Err(error) if is_refused(&error, wait) => return Err(error),
            Err(error) => {
                if error.kind() == io::ErrorKind::NotFound
                    && let Some((edition, _)) = known
                {
                    // Another page of this name may have been added meanwhile.
                    self.index().remove_edition(name, edition);
                }
                return Ok(None);
            }
        };
        if !self.is_readable(&file, name, known.map(|(edition, _)| edition)) {
            return Ok(None);
        }
        let entry = Entry::read(file, key, wait).and_then(|entry| {
            if !is_checked {
                entry.check()?;
            }
            Ok(entry)
        });
        match entry {
            Ok(mut entry) => {
                entry.edition = known.map(|(edition, _)| edition);
                self.note_found(name, &mut entry);
                Ok(Some(entry))
            }
            Err(error) if is_refused(&error, wait) => Err(error),
            Err(error) => {
                self.remove_damaged(key, &error);
                Ok(None)
            }
        }
    }

    /// Notes the use of an intact page.
    fn note_found(&self, name: &Name, entry: &mut Entry) {
        let mut index = self.index();
        let used_before = index.slots.get(name).map(|slot| slot.used);
        let others = used_before.and_then(|used| u64::try_from(index.last_use.checked_sub(used)?).ok());
        let as_long = others.and_then(|others| others.checked_mul(entry.body_bytes));
        entry.is_frequent = as_long.is_some_and(|bytes| bytes <= HOT_BYTES_MAX as u64);
        match index.touch(name) {
            Some(slot) => slot.is_checked |= entry.edition == Some(slot.edition),
            None => {
                let used = index.next_use();
                let slot = Slot::new(entry.file_bytes, used, entry.useless_from);
                index.insert(name.clone(), Slot { is_checked: true, ..slot });
            }
        }
    }

    /// Prevents that another page is written into the file of a page, because the kernel is going to send parts of it.
    /// False if the page was removed meanwhile: then another page may be written into its file at any time. Does not read
    /// the disk.
    pub fn lend(&self, key: &PageKey, entry: &Entry) -> bool {
        let mut index = self.index();
        let slot = index.slots.get_mut(key.name()).filter(|slot| entry.edition == Some(slot.edition));
        slot.map(|slot| slot.is_reusable = false).is_some()
    }

    /// Removes a page that turned out to be damaged.
    pub fn remove_damaged(&self, key: &PageKey, error: &io::Error) {
        let name = key.name();
        self.index().remove(name);
        self.forget_damaged(name, error);
    }

    /// Starts a page. `now` is in seconds since 1970.
    ///
    /// # Errors
    ///
    /// The folder cannot be written to.
    pub fn part(&self, key: &PageKey, now: u64) -> io::Result<Part> {
        let is_committed = AtomicBool::new(false);
        if let Some(Reused { file, path, bytes }) = self.reuse(key.name(), now) {
            return Ok(Part { file, path, length_before: bytes, is_committed });
        }
        let path = self.part_path(key.name());
        let file = in_folder(&path, || File::options().read(true).write(true).create_new(true).open(&path))?;
        Ok(Part { file, path, length_before: 0, is_committed })
    }

    /// Adds a page in place of an older one, and evicts the least recently used pages.
    ///
    /// [`Pages::sweep`] may remove it from the time on at which it is of no use.
    ///
    /// # Errors
    ///
    /// It cannot be written; the older page stays.
    pub fn commit(&self, part: &Part, key: &PageKey, page: NewPage<'_>) -> io::Result<()> {
        self.commit_if(part, key, page, || true)
    }

    /// As [`Pages::commit`], if the page is still wanted once no file can be changed by others.
    pub(super) fn commit_if(
        &self,
        part: &Part,
        key: &PageKey,
        page: NewPage<'_>,
        is_wanted: impl FnOnce() -> bool,
    ) -> io::Result<()> {
        let useless_from = page.useless_from;
        let bytes = entry::seal(&part.file, key, page)?;
        if part.length_before > bytes {
            part.file.set_len(bytes)?;
        }
        let name = key.name();
        let path = self.path(name);
        let _changing = self.changing_files();
        if !is_wanted() {
            return Ok(());
        }
        in_folder(&path, || std::fs::rename(&part.path, &path))?;
        part.is_committed.store(true, Ordering::Relaxed);
        let mut index = self.index();
        let used = index.next_use();
        let slot = Slot::new(bytes, used, useless_from);
        index.insert(name.clone(), Slot { is_checked: true, is_reusable: true, ..slot });
        let evicted = index.evict(self.bytes_max);
        drop(index);
        self.remove_files(&evicted);
        Ok(())
    }

    /// Removes one page; returns whether it existed.
    pub fn purge(&self, key: &PageKey) -> bool {
        let name = key.name();
        let _changing = self.changing_files();
        let was_unsaved = self.index().remove(name);
        std::fs::remove_file(self.path(name)).is_ok() || was_unsaved
    }

    /// Removes all pages of a repository and its folder; returns how many pages there were.
    pub fn purge_repository(&self, repository: &str) -> u64 {
        let _changing = self.changing_files();
        let unsaved: Vec<Name> = self.index().unsaved.names_of(repository).cloned().collect();
        let mut purged = unsaved.iter().map(|name| u64::from(self.index().drop_unsaved(name))).sum();
        let folder = self.folder.join(repository);
        for path in files_in(&folder) {
            if let Some(name) = name_of(&path) {
                self.index().remove(&name);
                purged += u64::from(std::fs::remove_file(&path).is_ok());
            }
        }
        // Fails while a page is being written.
        let _ = std::fs::remove_dir(folder);
        purged
    }

    /// The ids of the repositories that have pages or a folder, in any order.
    pub fn repositories(&self) -> Vec<String> {
        let name = |path: PathBuf| Some(path.file_name()?.to_str()?.to_owned());
        let mut repositories: BTreeSet<String> =
            self.index().unsaved.repositories().map(str::to_owned).collect();
        repositories.extend(files_in(&self.folder).into_iter().filter_map(name));
        repositories.into_iter().collect()
    }

    /// Marks the folder as taken over by another process. This process must not commit pages any more, and its index
    /// becomes stale. Returns whether it was marked before.
    pub(super) fn set_closed(&self) -> bool {
        self.is_closed.swap(true, Ordering::Relaxed)
    }

    /// Whether another process has the folder, or may get it.
    pub fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::Relaxed)
    }

    /// Removes pages that are too old to be of use; `now` is in seconds since 1970.
    pub fn sweep(&self, now: u64) {
        let _changing = self.changing_files();
        if self.is_closed() {
            return;
        }
        let useless = self.index().remove_useless(now);
        self.remove_files(&useless);
    }

    /// The size of the cache, as far as the index knows.
    pub fn size(&self) -> Size {
        let index = self.index();
        let (unsaved, unsaved_bytes) = index.unsaved.size();
        Size { entries: index.slots.len() as u64 + unsaved, bytes: index.bytes + unsaved_bytes }
    }

    /// Removes the files of pages that were removed from the index. A reader of a file has it open.
    fn remove_files(&self, names: &[Name]) {
        for name in names {
            let _ = std::fs::remove_file(self.path(name));
        }
    }

    fn forget_damaged(&self, name: &Name, error: &io::Error) {
        let _changing = self.changing_files();
        if self.index().slots.contains_key(name) {
            // An intact page has replaced it meanwhile.
            return;
        }
        let path = self.path(name);
        if error.kind() != io::ErrorKind::NotFound && std::fs::remove_file(&path).is_ok() {
            tracing::warn!(path = %path.display(), %error, "a damaged page is removed from the cache");
        }
    }

    /// Where the next page is written, which may be one of this name.
    fn part_path(&self, name: &Name) -> PathBuf {
        let number = self.parts.fetch_add(1, Ordering::Relaxed);
        // Two processes write at the same time while one takes over from the other.
        let process = std::process::id();
        let file = format!("{}-{process}-{number}.{PART}", name.file());
        self.folder.join(&*name.repository).join(file)
    }

    pub(super) fn path(&self, name: &Name) -> PathBuf {
        self.folder.join(&*name.repository).join(name.file())
    }

    fn files(&self) -> Vec<PathBuf> {
        files_in(&self.folder).into_iter().flat_map(|folder| files_in(&folder)).collect()
    }

    fn changing_files(&self) -> MutexGuard<'_, ()> {
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn index(&self) -> MutexGuard<'_, Index> {
        self.index.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The file of the least recently used page, if that page must be evicted for `next` or is useless at `now`, in
    /// seconds since 1970.
    pub(super) fn reuse(&self, next: &Name, now: u64) -> Option<Reused> {
        // A process that has lost the folder removes nothing.
        if self.is_closed() {
            return None;
        }
        let _changing = self.changing_files();
        let (name, Slot { bytes, is_reusable, .. }) = self.index().remove_for(next, self.bytes_max, now)?;
        let (page, path) = (self.path(&name), self.part_path(&name));
        match is_reusable.then(|| take(&page, &path)) {
            Some(Ok(file)) => Some(Reused { file, path, bytes }),
            _ => {
                let _ = std::fs::remove_file(page);
                None
            }
        }
    }

    /// Locks a file for reading. False if another page may be written into it, because the page with the edition
    /// `known` was removed from the cache meanwhile.
    pub(super) fn is_readable(&self, file: &File, name: &Name, known: Option<i64>) -> bool {
        if let Err(TryLockError::WouldBlock) = file.try_lock_shared() {
            return false;
        }
        let Some(edition) = known else { return true };
        self.index().slots.get(name).is_some_and(|slot| slot.edition == edition)
    }
}

impl Part {
    /// Writes a piece of the body at this offset, in bytes from the start of the body.
    ///
    /// # Errors
    ///
    /// The file cannot be written.
    pub fn write(&self, at: u64, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all_at(bytes, HEAD_BYTES + at)
    }

    /// Reads a written piece of the body.
    ///
    /// # Errors
    ///
    /// The file cannot be read.
    pub fn read(&self, at: u64, bytes: &mut [u8]) -> io::Result<()> {
        self.file.read_exact_at(bytes, HEAD_BYTES + at)
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        if !*self.is_committed.get_mut() {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

impl Slot {
    fn new(bytes: u64, used: i64, useless_from: u64) -> Self {
        Self { bytes, used, useless_from, is_checked: false, is_reusable: false, edition: used }
    }
}

impl Index {
    fn insert(&mut self, name: Name, slot: Slot) {
        self.remove(&name);
        self.bytes += slot.bytes;
        self.order.insert(slot.used, name.clone());
        self.slots.insert(name, slot);
    }

    /// Marks a page as the most recently used.
    fn touch(&mut self, name: &Name) -> Option<&mut Slot> {
        let used = self.next_use();
        let slot = self.slots.get_mut(name)?;
        if let Some(name) = self.order.remove(&slot.used) {
            self.order.insert(used, name);
        }
        slot.used = used;
        Some(slot)
    }

    /// Removes the least recently used pages until the rest has at most `bytes_max`; returns their names.
    fn evict(&mut self, bytes_max: u64) -> Vec<Name> {
        let mut evicted = Vec::new();
        while self.bytes > bytes_max {
            let Some((_, name)) = self.order.pop_first() else { break };
            self.remove(&name);
            evicted.push(name);
        }
        evicted
    }

    /// Removes the pages that are useless at `now`, in seconds since 1970; returns their names.
    fn remove_useless(&mut self, now: u64) -> Vec<Name> {
        let slots = self.slots.iter().filter(|(_, slot)| slot.useless_from <= now);
        let useless: Vec<Name> = slots.map(|(name, _)| name.clone()).collect();
        for name in &useless {
            self.remove(name);
        }
        for name in self.unsaved.useless(now) {
            self.drop_unsaved(&name);
        }
        useless
    }

    /// Removes the least recently used page, if it is useless at `now`, in seconds since 1970, or if `bytes_max` has no
    /// room for a page as long in place of `next`.
    fn remove_for(&mut self, next: &Name, bytes_max: u64, now: u64) -> Option<(Name, Slot)> {
        let name = self.order.first_key_value()?.1.clone();
        let slot = *self.slots.get(&name)?;
        let Slot { bytes, useless_from, .. } = slot;
        let replaced = self.slots.get(next).map_or(0, |slot| slot.bytes);
        let has_room = self.bytes - replaced + bytes <= bytes_max;
        if useless_from > now && has_room {
            return None;
        }
        self.remove(&name);
        Some((name, slot))
    }

    fn contains(&self, name: &Name) -> bool {
        self.slots.contains_key(name) || self.unsaved.contains(name)
    }

    fn edition(&self, name: &Name) -> Option<i64> {
        self.unsaved.edition(name).or_else(|| self.slots.get(name).map(|slot| slot.edition))
    }

    /// Drops a page that has no file; returns whether there was one. An older page of this name stays in its file.
    pub(super) fn drop_unsaved(&mut self, name: &Name) -> bool {
        let was_unsaved = self.unsaved.remove(name);
        if was_unsaved {
            self.hot.remove(name);
        }
        was_unsaved
    }

    /// Removes the page with this edition, whose file does not exist any more.
    fn remove_edition(&mut self, name: &Name, edition: i64) {
        if self.edition(name) == Some(edition) {
            self.remove(name);
        }
    }

    /// Removes all pages of a name; returns whether there was one without a file.
    pub(super) fn remove(&mut self, name: &Name) -> bool {
        self.hot.remove(name);
        if let Some(slot) = self.slots.remove(name) {
            self.bytes -= slot.bytes;
            self.order.remove(&slot.used);
        }
        self.unsaved.remove(name)
    }

    pub(super) fn next_use(&mut self) -> i64 {
        self.last_use += 1;
        self.last_use
    }
}

/// Whether a read failed because it must not wait.
fn is_refused(error: &io::Error, wait: Wait) -> bool {
    wait == Wait::Refused && error.kind() == io::ErrorKind::WouldBlock
}

/// Runs a task that needs the folder of a path, and creates the folder if it does not exist.
fn in_folder<T>(path: &Path, task: impl Fn() -> io::Result<T>) -> io::Result<T> {
    match (task(), path.parent()) {
        (Err(error), Some(folder)) if error.kind() == io::ErrorKind::NotFound => {
            std::fs::create_dir_all(folder)?;
            task()
        }
        (done, _) => done,
    }
}

pub(super) fn files_in(folder: &Path) -> Vec<PathBuf> {
    let Ok(listed) = std::fs::read_dir(folder) else { return Vec::new() };
    listed.filter_map(|entry| Some(entry.ok()?.path())).collect()
}

/// Extension of files that are being written.
const PART: &str = "part";
