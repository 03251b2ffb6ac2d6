//! The pages in flight, and the cached pages on disk.
//!
//! Invariants: a page is in the table of pages in flight from the request that starts it until it is on disk, its
//! grace period is over, or it has failed. A reader of a truncated page receives an error, which truncates its
//! response.

use super::disk_threads::read_on_disk;
use super::in_flight::{InFlightOptions, InFlightPage, PageError, Reader, SharedMemory, Writer};
use super::page_meta::PageMeta;
use bytes::Bytes;
use http::HeaderValue;
use oaimend_base::clock;
use oaimend_files::{DiskWait, FileSlice, HotPage, PageCoding, PageEntry, PageKey, Pages};
use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

/// The pages on disk and in flight.
#[derive(Debug)]
pub(super) struct PageStorage {
    pub(super) pages: Arc<Pages>,
    /// The pages in flight that may be shared, the latest for each key.
    live: Mutex<HashMap<PageKey, Arc<InFlightPage>>>,
    /// The last failure of each page that an old page has replaced.
    failed: Mutex<HashMap<PageKey, ReplacedFailure>>,
    in_grace: Mutex<GraceQueue>,
    memory: SharedMemory,
    next_id: AtomicU64,
}

/// Ended pages that are still shared, the oldest first.
#[derive(Debug, Default)]
struct GraceQueue {
    pages: VecDeque<GracePage>,
    /// Their size in memory, in bytes.
    bytes: u64,
    /// Whether a task removes them after their grace period.
    is_watched: bool,
}

/// A page in its grace period, for requests that arrived while it was in flight.
#[derive(Debug)]
struct GracePage {
    in_flight: Arc<InFlightPage>,
    bytes: u64,
    /// By [`clock::uptime`].
    until: Duration,
}

/// A failure of a source that an old page replaces.
#[derive(Clone, Debug)]
struct ReplacedFailure {
    /// Until when the page is not requested again.
    until: SystemTime,
    /// Its `Proxy-Status`.
    proxy_status: HeaderValue,
}

/// How a request joins a page in flight.
pub(super) enum Joined {
    /// Another request has started it.
    Other(Reader),
    /// This request starts it.
    First(Reader, Writer),
    /// The page has ended since the lookup.
    Again,
}

/// The result of a lookup on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OnDisk {
    /// No page. One may have been stored since.
    Nothing,
    /// An old page, which replaces a failure. The source may have failed since.
    Old,
    /// No usable page, and no further lookup.
    Final,
}

/// A cached page on its way to a harvester.
pub(in crate::serve::oai) struct CachedPage {
    pub(super) meta: PageMeta,
    /// The coding of its bytes.
    pub(in crate::serve::oai) coding: PageCoding,
    /// The edition of the page in the index of pages, if the index contains it.
    edition: Option<i64>,
    /// The blocks after `first`.
    rest: Option<Rest>,
    /// The bytes that were read with the header; for most pages all of them.
    first: Option<Bytes>,
    /// The piece that was returned last. The next one uses its memory.
    last: Bytes,
    /// Length of the page in its coding, in bytes.
    pub(in crate::serve::oai) bytes: u64,
    at: u64,
}

/// The blocks of a page on disk.
struct Rest {
    pages: Arc<Pages>,
    key: PageKey,
    entry: Arc<PageEntry>,
    /// Whether the kernel may send parts of the file.
    is_sent_from_file: bool,
}

/// The form in which a page is sent.
#[derive(Clone, Copy, Debug)]
pub(in crate::serve::oai) struct PageForm {
    /// The coding of its bytes.
    pub(in crate::serve::oai) coding: PageCoding,
    /// Whether the connection can send parts of files.
    pub(in crate::serve::oai) may_be_file: bool,
}

impl PageStorage {
    pub(super) fn new(pages: Pages) -> Self {
        Self {
            pages: Arc::new(pages),
            live: Mutex::default(),
            failed: Mutex::default(),
            in_grace: Mutex::default(),
            memory: SharedMemory::default(),
            next_id: AtomicU64::new(1),
        }
    }

    /// An id for a page in flight.
    pub(super) fn next_id(&self) -> u64 {
        self.next_id.fetch_add(1, Ordering::Relaxed)
    }

    /// Removes a page from the table: no request joins it any more.
    pub(super) fn retire(&self, in_flight: &InFlightPage) {
        remove_live(&mut lock(&self.live), in_flight);
    }

    /// Removes a page from the table, unless a reader has just joined it.
    pub(super) fn retire_unwanted(&self, in_flight: &InFlightPage) -> bool {
        let mut live = lock(&self.live);
        let is_unwanted = in_flight.is_unwanted();
        if is_unwanted {
            remove_live(&mut live, in_flight);
        }
        is_unwanted
    }

    /// Removes an ended page that is not cached after its grace period, so that requests which arrived while it was
    /// in flight find it. If too many pages wait, the oldest is removed at once.
    pub(super) fn hold_for_grace_period(&'static self, in_flight: Arc<InFlightPage>) {
        let mut in_grace = lock(&self.in_grace);
        let (bytes, until) = (in_flight.memory_bytes(), clock::uptime() + GRACE_PERIOD);
        in_grace.bytes += bytes;
        in_grace.pages.push_back(GracePage { in_flight, bytes, until });
        let mut expired = Vec::new();
        while in_grace.bytes > GRACE_BYTES_MAX || in_grace.pages.len() > GRACE_PAGES_MAX {
            expired.extend(in_grace.take_first());
        }
        if !std::mem::replace(&mut in_grace.is_watched, true) {
            tokio::spawn(self.end_grace_periods());
        }
        drop(in_grace);
        expired.iter().for_each(|in_flight| self.retire(in_flight));
    }

    /// Removes pages after their grace period, until none is left.
    async fn end_grace_periods(&self) {
        loop {
            let (mut expired, mut wait) = (Vec::new(), None);
            {
                let (now, mut in_grace) = (clock::uptime(), lock(&self.in_grace));
                while let Some(first) = in_grace.pages.front() {
                    if first.until > now {
                        wait = Some(first.until - now);
                        break;
                    }
                    expired.extend(in_grace.take_first());
                }
                in_grace.is_watched = wait.is_some();
            }
            expired.iter().for_each(|in_flight| self.retire(in_flight));
            drop(expired);
            let Some(wait) = wait else { return };
            tokio::time::sleep(wait).await;
        }
    }

    /// Records a failure of the source with its `Proxy-Status`; an old page replaces it until then.
    pub(super) fn note_failure(&self, key: &PageKey, until: SystemTime, proxy_status: HeaderValue) {
        let now = clock::now();
        let mut failed = lock(&self.failed);
        failed.retain(|_, failure| failure.until > now);
        failed.insert(key.clone(), ReplacedFailure { until, proxy_status });
    }

    /// The `Proxy-Status` of the failure, if the source has just failed for this page.
    pub(super) fn last_failure(&self, key: &PageKey) -> Option<HeaderValue> {
        let failed = lock(&self.failed);
        failed
            .get(key)
            .filter(|failure| failure.until > clock::now())
            .map(|failure| failure.proxy_status.clone())
    }

    /// Removes pages on disk and in flight: one, or all of a repository. Returns how many were on disk. Blocks on the
    /// disk.
    pub(super) fn purge_pages(&self, repository: &str, keys: Option<&[PageKey]>) -> u64 {
        let is_purged = |key: &PageKey| match keys {
            Some(keys) => keys.contains(key),
            None => key.repository() == repository,
        };
        lock(&self.live).retain(|key, in_flight| {
            if is_purged(key) {
                in_flight.purge();
            }
            !is_purged(key)
        });
        lock(&self.failed).retain(|key, _| !is_purged(key));
        match keys {
            Some(keys) => keys.iter().map(|key| u64::from(self.pages.purge(key))).sum(),
            None => self.pages.purge_repository(repository),
        }
    }

    /// Removes all pages of the repositories that are not kept. Returns how many were on disk. Blocks on the disk.
    pub(super) fn purge_others(&self, is_kept: impl Fn(&str) -> bool) -> u64 {
        if self.pages.is_closed() {
            return 0;
        }
        let repositories = self.pages.repositories();
        let others = repositories.iter().filter(|repository| !is_kept(repository));
        others.map(|repository| self.purge_pages(repository, None)).sum()
    }

    /// A reader of the page in flight, or of a page that starts now. `found` is the result of the lookup on disk:
    /// another lookup may find more.
    pub(super) fn join(&self, options: InFlightOptions, arrived: SystemTime, found: OnDisk) -> Joined {
        let mut live = lock(&self.live);
        if let Some(reader) = live.get(&options.key).and_then(|in_flight| reader_for(in_flight, arrived)) {
            return Joined::Other(reader);
        }
        let may_be_stored = match found {
            OnDisk::Nothing => options.plan.is_kept && self.pages.is_known(&options.key),
            OnDisk::Old => self.last_failure(&options.key).is_some(),
            OnDisk::Final => false,
        };
        if may_be_stored {
            return Joined::Again;
        }
        let writer = Writer::start(options, Arc::clone(&self.pages), &self.memory);
        live.insert(writer.page.key.clone(), Arc::clone(&writer.page));
        Joined::First(Reader::first(&writer.page), writer)
    }

    /// A reader of the page in flight. `None` if that is a failure or may become one, and a page is on disk that may
    /// replace it.
    pub(super) fn join_in_flight(&self, key: &PageKey, arrived: SystemTime) -> Option<Reader> {
        // Locked until the reader is counted, because a page without readers may be removed.
        let live = lock(&self.live);
        let in_flight = live.get(key)?;
        let may_fail = in_flight.begun().is_none_or(|begun| begun.head.status.is_server_error());
        if may_fail && !self.pages.is_absent(key) {
            return None;
        }
        reader_for(in_flight, arrived)
    }

    /// The page on disk, or its copy in memory, of any age. A compressed page is found only in memory; without one the
    /// page is plain.
    pub(super) async fn find_cached(&'static self, key: &PageKey, form: PageForm) -> Option<CachedPage> {
        if self.pages.is_absent(key) {
            return None;
        }
        if let Some(found) = self.find_hot(key, form.coding).or_else(|| self.find_hot(key, PageCoding::Plain))
        {
            return Some(found);
        }
        match self.read_cached(key.clone(), form, DiskWait::Refused) {
            Ok(found) => found,
            Err(_) => {
                let key = key.clone();
                // A lookup that panics finds nothing.
                read_on_disk(move || self.read_cached(key, form, DiskWait::Allowed)).await.ok().flatten()
            }
        }
    }

    fn find_hot(&self, key: &PageKey, coding: PageCoding) -> Option<CachedPage> {
        let hot = self.pages.hot(key, coding)?;
        let (meta, body) = (PageMeta::from_bytes(&hot.meta)?, hot.body.clone());
        let (bytes, edition) = (body.len() as u64, Some(hot.edition));
        Some(CachedPage {
            meta,
            coding,
            edition,
            rest: None,
            bytes,
            first: Some(body),
            last: Bytes::new(),
            at: 0,
        })
    }

    /// Holds the compressed form of a page in memory.
    pub(super) fn keep_compressed(&self, key: &PageKey, page: &CachedPage, body: Bytes) {
        if let Some(edition) = page.edition {
            let hot = HotPage { meta: page.meta.to_bytes(), body, edition };
            self.pages.keep_hot(key, PageCoding::Gzip, hot);
        }
    }

    /// Reads the page on disk.
    ///
    /// # Errors
    ///
    /// The disk would have to be waited for, and must not.
    fn read_cached(
        &self,
        key: PageKey,
        form: PageForm,
        wait: DiskWait,
    ) -> std::io::Result<Option<CachedPage>> {
        let Some(entry) = self.pages.find(&key, wait)? else { return Ok(None) };
        let is_sent_from_file = form.may_be_file
            && form.coding == PageCoding::Plain
            && entry.body_bytes > COPIED_BYTES_MAX
            // From memory it costs less.
            && !(entry.is_frequent && entry.body_bytes <= SHORT_PAGE_BYTES_MAX)
            && self.pages.lend(&key, &entry);
        let meta = PageMeta::from_bytes(&entry.meta).ok_or(std::io::ErrorKind::InvalidData.into());
        let first = |meta| {
            let read = || entry.blocks(0, blocks_at_once(&entry), wait, Bytes::new());
            Ok((meta, (!is_sent_from_file).then(read).transpose()?))
        };
        match meta.and_then(first) {
            Ok((meta, first)) => {
                let (bytes, edition) = (entry.body_bytes, entry.edition);
                if let Some(first) = first.as_ref().filter(|first| first.len() as u64 == bytes)
                    && let Some(edition) = edition
                {
                    let hot = HotPage { meta: entry.meta.clone(), body: first.clone(), edition };
                    self.pages.keep_hot(&key, PageCoding::Plain, hot);
                }
                let rest =
                    Rest { pages: Arc::clone(&self.pages), key, entry: Arc::new(entry), is_sent_from_file };
                let (coding, last) = (PageCoding::Plain, Bytes::new());
                Ok(Some(CachedPage { meta, coding, edition, rest: Some(rest), bytes, first, last, at: 0 }))
            }
            Err(error) if wait == DiskWait::Refused => Err(error),
            Err(error) => {
                self.pages.remove_damaged(&key, &error);
                Ok(None)
            }
        }
    }
}

/// A reader of a page in flight, if the page may answer a request that arrived at `arrived`.
fn reader_for(in_flight: &Arc<InFlightPage>, arrived: SystemTime) -> Option<Reader> {
    in_flight.is_for(arrived, clock::now()).then(|| Reader::start(in_flight)).flatten()
}

impl GraceQueue {
    fn take_first(&mut self) -> Option<Arc<InFlightPage>> {
        let first = self.pages.pop_front()?;
        self.bytes -= first.bytes;
        Some(first.in_flight)
    }
}

impl PageForm {
    /// The bytes of the page itself.
    pub(in crate::serve::oai) const PLAIN: Self = Self { coding: PageCoding::Plain, may_be_file: false };
}

impl CachedPage {
    /// When it started.
    pub(in crate::serve::oai) fn began(&self) -> SystemTime {
        self.meta.began
    }

    /// Its age, in seconds.
    pub(in crate::serve::oai) fn age_secs(&self) -> u64 {
        clock::now().duration_since(self.meta.began).unwrap_or_default().as_secs()
    }

    /// Whether all bytes were read.
    pub(in crate::serve::oai) fn is_at_end(&self) -> bool {
        self.at == self.bytes
    }

    /// The next part, if the kernel can send it from the file without waiting for the disk.
    pub(in crate::serve::oai) fn next_in_file(&mut self) -> Option<FileSlice> {
        let rest = self.rest.as_ref().filter(|rest| rest.is_sent_from_file)?;
        let slice = rest.entry.slice(self.at, SLICE_BYTES_MAX).filter(|slice| slice.bytes > 0)?;
        self.at += slice.bytes;
        Some(slice)
    }

    /// The next bytes; `None` at the end.
    ///
    /// # Errors
    ///
    /// The file is damaged, or the disk fails.
    pub(in crate::serve::oai) async fn next(&mut self) -> Result<Option<Bytes>, PageError> {
        let bytes = match (self.first.take(), &self.rest) {
            (Some(first), _) => first,
            (None, Some(rest)) if self.at < self.bytes => {
                rest.read(self.at, std::mem::take(&mut self.last)).await?
            }
            (None, _) => return Ok(None),
        };
        self.at += bytes.len() as u64;
        self.last = bytes.clone();
        Ok((!bytes.is_empty()).then_some(bytes))
    }
}

impl Rest {
    /// The blocks at `at`. `spent` is the piece before them.
    async fn read(&self, at: u64, spent: Bytes) -> Result<Bytes, PageError> {
        let count = blocks_at_once(&self.entry);
        if let Ok(read) = self.entry.blocks(at, count, DiskWait::Refused, spent) {
            return Ok(read);
        }
        let (entry, pages, key) = (Arc::clone(&self.entry), Arc::clone(&self.pages), self.key.clone());
        let read = read_on_disk(move || {
            let read = entry.blocks(at, count, DiskWait::Allowed, Bytes::new());
            if let Err(error) = &read {
                pages.remove_damaged(&key, error);
            }
            read
        });
        read.await.map_err(PageError::Damaged)
    }
}

fn remove_live(live: &mut HashMap<PageKey, Arc<InFlightPage>>, in_flight: &InFlightPage) {
    in_flight.is_retired.store(true, Ordering::Relaxed);
    if live.get(&in_flight.key).is_some_and(|known| known.id == in_flight.id) {
        live.remove(&in_flight.key);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// How many blocks of 64 KiB are read at once.
fn blocks_at_once(entry: &PageEntry) -> usize {
    if entry.body_bytes <= SHORT_PAGE_BYTES_MAX { BLOCKS_OF_SHORT_PAGE } else { BLOCKS_AT_ONCE }
}

/// A page of this length, in bytes, is read at once, and held in memory after it was requested.
const SHORT_PAGE_BYTES_MAX: u64 = 256 << 10;
const BLOCKS_OF_SHORT_PAGE: usize = 4;
/// Blocks of a longer page that are read at once. Each slow reader holds them in memory.
const BLOCKS_AT_ONCE: usize = 2;
/// Longest page, in bytes, that is copied to every connection: sending it from its file would cost more.
const COPIED_BYTES_MAX: u64 = 16 << 10;
/// Longest part of a file that is sent at once, in bytes: whole blocks.
const SLICE_BYTES_MAX: u64 = 1 << 20;
/// Grace period: how long an ended page that is not cached stays readable, for requests that arrived while it was in
/// flight.
pub(super) const GRACE_PERIOD: Duration = Duration::from_secs(2);
/// Maximum number of bytes in memory of pages in their grace period. They fit into the cache of a processor, since
/// new pages reuse their memory.
const GRACE_BYTES_MAX: u64 = 1 << 20;
/// Maximum number of pages in their grace period, including those in files.
const GRACE_PAGES_MAX: usize = 256;
