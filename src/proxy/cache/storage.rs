//! pingora-cache's `Storage` over the spool and the pages on disk.
//!
//! The only file that knows these traits, which change with each release of
//! pingora. pingora decides who asks the source and who waits; bodies do not go
//! through its hands. What it writes to a miss handler is nothing: the
//! [`Fill`] is written beside pingora, at the speed of the source, and
//! everybody reads that.
//!
//! Must stay true: a writer that pingora knows of is always found by its tag
//! (`lookup_streaming_write` answering none makes pingora panic), and a reader
//! whose page breaks off gets an error, which breaks its answer off.

use super::fill::{Fill, Reader, Recipe, Writer};
use super::rules::Kept;
use crate::clock;
use crate::store::{PageEntry, PageKey, Pages};
use async_trait::async_trait;
use bytes::Bytes;
use pingora_cache::lock::{CacheKeyLock, CacheLock, LockStatus, Locked, WritePermit};
use pingora_cache::storage::streaming_write::U64WriteId;
use pingora_cache::storage::{
    HandleHit, HandleMiss, HitHandler, MissFinishType, MissHandler, PurgeOutcome, PurgeTarget, PurgeType,
    Storage,
};
use pingora_cache::trace::SpanHandle;
use pingora_cache::{CacheKey, CacheMeta};
use pingora_error::{Error, ErrorType, Result};
use std::any::Any;
use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};
use tokio::runtime::Runtime;

/// What pingora asks for pages, and what is under way.
#[derive(Debug)]
pub(super) struct PageStorage {
    pub(super) pages: Arc<Pages>,
    /// The pages under way that may be shared, the last one for each key.
    live: Mutex<HashMap<PageKey, Arc<Fill>>>,
    /// The fills that pingora has a miss handler for, by their number.
    writing: Mutex<HashMap<u64, Arc<Fill>>>,
    /// Until when a source that failed for a page is not asked for it again,
    /// while there is an old one.
    failed: Mutex<HashMap<PageKey, SystemTime>>,
    lingering: Mutex<Lingering>,
    next_id: AtomicU64,
    /// Its threads read kept pages. Those of the server's runtime are as many as there are readers.
    readers: Runtime,
}

/// What has ended and is still shared, the first one longest.
#[derive(Debug, Default)]
struct Lingering {
    pages: VecDeque<Waiting>,
    /// What they take in memory, in bytes.
    bytes: u64,
    /// Whether somebody takes them out when their time is over.
    is_watched: bool,
}

/// A page that waits for those who came while it was under way.
#[derive(Debug)]
struct Waiting {
    fill: Arc<Fill>,
    bytes: u64,
    /// By [`clock::uptime`].
    until: Duration,
}

/// The page that is asked for, and when the request came; travels in the extensions of pingora's key.
#[derive(Clone, Debug)]
struct Wanted {
    page: PageKey,
    arrived: SystemTime,
}

/// How a request comes to a page that is only shared.
pub(super) enum Joined {
    /// Another one began it.
    Other(Reader),
    /// It begins it.
    First(Reader, Writer),
}

/// A page that was found.
pub(super) enum PageHit {
    /// It is under way, or was when the request came.
    Live(Reader),
    /// It is on the disk.
    Kept(KeptPage),
}

/// A page that is kept on its way to a harvester.
pub(super) struct KeptPage {
    /// Where what is behind `first` lies.
    rest: Option<Rest>,
    /// What was read with the head, for most pages all of it.
    first: Option<Bytes>,
    /// Length of all of it, in bytes.
    pub(super) bytes: u64,
    at: u64,
}

/// The blocks of a page on the disk.
struct Rest {
    pages: Arc<Pages>,
    readers: &'static Runtime,
    key: PageKey,
    entry: Arc<PageEntry>,
}

impl PageStorage {
    /// # Errors
    ///
    /// The system gives no more threads.
    pub(super) fn new(pages: Pages) -> std::io::Result<Self> {
        let readers = tokio::runtime::Builder::new_current_thread()
            .max_blocking_threads(READS_AT_ONCE)
            .thread_name("reads pages")
            .build()?;
        Ok(Self {
            pages: Arc::new(pages),
            live: Mutex::default(),
            writing: Mutex::default(),
            failed: Mutex::default(),
            lingering: Mutex::default(),
            next_id: AtomicU64::new(1),
            readers,
        })
    }

    /// A number for a fill.
    pub(super) fn next_id(&self) -> u64 {
        self.next_id.fetch_add(1, Ordering::Relaxed)
    }

    /// Takes a fill out: nobody joins it any more.
    pub(super) fn retire(&self, fill: &Fill) {
        take_out(&mut lock(&self.live), fill);
    }

    /// Takes a fill out if nobody wants it any more, which somebody may who has just joined it.
    pub(super) fn retire_unwanted(&self, fill: &Fill) -> bool {
        let mut live = lock(&self.live);
        let is_unwanted = fill.is_unwanted();
        if is_unwanted {
            take_out(&mut live, fill);
        }
        is_unwanted
    }

    /// Takes out a fill that has ended and is not kept, but not before those could
    /// find it who came while it was under way; where too much waits like
    /// that, what has waited longest goes at once.
    pub(super) fn linger(&'static self, fill: Arc<Fill>) {
        let mut lingering = lock(&self.lingering);
        let (bytes, until) = (fill.memory_bytes(), clock::uptime() + LINGER);
        lingering.bytes += bytes;
        lingering.pages.push_back(Waiting { fill, bytes, until });
        let mut past = Vec::new();
        while lingering.bytes > LINGERING_BYTES_MAX || lingering.pages.len() > LINGERING_PAGES_MAX {
            past.extend(lingering.take_first());
        }
        if !std::mem::replace(&mut lingering.is_watched, true) {
            tokio::spawn(self.watch_lingering());
        }
        drop(lingering);
        past.iter().for_each(|fill| self.retire(fill));
    }

    /// Takes out what has lingered long enough, until nothing is left.
    async fn watch_lingering(&self) {
        loop {
            let (mut past, mut wait) = (Vec::new(), None);
            {
                let (now, mut lingering) = (clock::uptime(), lock(&self.lingering));
                while let Some(first) = lingering.pages.front() {
                    if first.until > now {
                        wait = Some(first.until - now);
                        break;
                    }
                    past.extend(lingering.take_first());
                }
                lingering.is_watched = wait.is_some();
            }
            past.iter().for_each(|fill| self.retire(fill));
            drop(past);
            let Some(wait) = wait else { return };
            tokio::time::sleep(wait).await;
        }
    }

    /// The source has failed; an old page stands in for it until then.
    pub(super) fn note_failure(&self, key: &PageKey, until: SystemTime) {
        let now = clock::now();
        let mut failed = lock(&self.failed);
        failed.retain(|_, until| *until > now);
        failed.insert(key.clone(), until);
    }

    /// Whether the source failed for this page just now.
    pub(super) fn has_failed(&self, key: &PageKey) -> bool {
        lock(&self.failed).get(key).is_some_and(|until| *until > clock::now())
    }

    /// Removes pages, on the disk and under way: one, or all of a repository.
    /// Says how many were on the disk. Blocks on it.
    pub(super) fn purge_pages(&self, repository: &str, keys: Option<&[PageKey]>) -> u64 {
        let is_meant = |key: &PageKey| match keys {
            Some(keys) => keys.contains(key),
            None => key.repository() == repository,
        };
        lock(&self.live).retain(|key, fill| {
            if is_meant(key) {
                fill.purge();
            }
            !is_meant(key)
        });
        lock(&self.failed).retain(|key, _| !is_meant(key));
        match keys {
            Some(keys) => keys.iter().map(|key| u64::from(self.pages.purge(key))).sum(),
            None => self.pages.purge_repository(repository),
        }
    }

    /// Removes a page, on the disk and under way, without blocking.
    pub(super) async fn drop_page(&'static self, key: PageKey) {
        let is_live = lock(&self.live).contains_key(&key);
        if self.pages.is_closed() || !is_live && self.pages.is_absent(&key) {
            return;
        }
        let dropped = tokio::task::spawn_blocking(move || {
            self.purge_pages(key.repository(), Some(std::slice::from_ref(&key)))
        });
        if let Err(error) = dropped.await {
            tracing::error!(%error, "a page of the cache whose token was reused cannot be removed");
        }
    }

    /// Whether a page has come since it was looked for. One that is too old was
    /// there already, unless its source has failed since and it stands in.
    fn is_there(&self, key: &CacheKey, is_too_old: bool) -> bool {
        let Some(Wanted { page, .. }) = wanted(key) else { return false };
        let is_new = if is_too_old { self.has_failed(page) } else { self.pages.is_known(page) };
        is_new || self.live_for(key).is_some()
    }

    /// A reader of the page that is under way, or of one that begins with this.
    pub(super) fn join(&self, recipe: Recipe, arrived: SystemTime) -> Joined {
        let mut live = lock(&self.live);
        let known = live.get(&recipe.key).filter(|fill| fill.is_for(arrived, clock::now()));
        if let Some(reader) = known.and_then(|fill| fill.reader(false)) {
            return Joined::Other(reader);
        }
        let writer = Fill::begin(recipe, Arc::clone(&self.pages));
        live.insert(writer.fill.key.clone(), Arc::clone(&writer.fill));
        Joined::First(writer.reader(), writer)
    }

    fn live_for(&self, key: &CacheKey) -> Option<Arc<Fill>> {
        let Wanted { page, arrived } = wanted(key)?;
        let fill = lock(&self.live).get(page).cloned()?;
        fill.is_for(*arrived, clock::now()).then_some(fill)
    }

    fn found_live(&self, key: &CacheKey) -> Option<(CacheMeta, HitHandler)> {
        let fill = self.live_for(key)?;
        let reader = fill.reader(false)?;
        Some((meta_of_live(&fill)?, Box::new(PageHit::Live(reader))))
    }
}

#[async_trait]
impl Storage for PageStorage {
    async fn lookup(
        &'static self,
        key: &CacheKey,
        _trace: &SpanHandle,
    ) -> Result<Option<(CacheMeta, HitHandler)>> {
        if let Some(found) = self.found_live(key) {
            return Ok(Some(found));
        }
        let Some(page) = wanted(key).map(|wanted| wanted.page.clone()) else { return Ok(None) };
        if self.pages.is_absent(&page) {
            return Ok(None);
        }
        if let Some(found) = self.found_hot(&page) {
            return Ok(Some(found));
        }
        let found = self.readers.spawn_blocking(move || self.found_kept(page)).await;
        found.map_err(|error| Error::because(ErrorType::InternalError, "while looking for a page", error))
    }

    async fn lookup_streaming_write(
        &'static self,
        key: &CacheKey,
        tag: Option<&[u8]>,
        trace: &SpanHandle,
    ) -> Result<Option<(CacheMeta, HitHandler)>> {
        let id = tag.and_then(|tag| U64WriteId::try_from(tag).ok()).map(u64::from);
        let fill = id.and_then(|id| lock(&self.writing).get(&id).cloned());
        match fill.and_then(|fill| Some((meta_of_live(&fill)?, fill.reader(true)?))) {
            Some((meta, reader)) => Ok(Some((meta, Box::new(PageHit::Live(reader))))),
            None => self.lookup(key, trace).await,
        }
    }

    async fn get_miss_handler(
        &'static self,
        _key: &CacheKey,
        meta: &CacheMeta,
        _trace: &SpanHandle,
    ) -> Result<MissHandler> {
        let fill = meta.extensions().get::<Arc<Fill>>().cloned();
        let fill = fill.ok_or_else(|| Error::explain(ErrorType::InternalError, "a miss without a fill"))?;
        let id = fill.id;
        lock(&self.writing).insert(id, Arc::clone(&fill));
        let mut live = lock(&self.live);
        if !fill.is_retired.load(Ordering::Relaxed) {
            live.insert(fill.key.clone(), fill);
        }
        drop(live);
        Ok(Box::new(PageMiss { storage: self, id, tag: U64WriteId::from(id) }))
    }

    async fn purge(
        &'static self,
        _target: PurgeTarget<'_>,
        _kind: PurgeType,
        _trace: &SpanHandle,
    ) -> Result<PurgeOutcome> {
        // pingora knows a page by its hash alone. The admin listener purges.
        Ok(PurgeOutcome::NotFound)
    }

    async fn update_meta(
        &'static self,
        _key: &CacheKey,
        _meta: &CacheMeta,
        _trace: &SpanHandle,
    ) -> Result<bool> {
        // Comes with a 304, and sources are never asked conditionally.
        Ok(false)
    }

    fn support_streaming_partial_write(&self) -> bool {
        true
    }

    fn as_any(&self) -> &(dyn Any + Send + Sync + 'static) {
        self
    }
}

impl PageStorage {
    fn found_hot(&self, key: &PageKey) -> Option<(CacheMeta, HitHandler)> {
        let hot = self.pages.hot(key)?;
        let (meta, body) = (read_meta(&hot.meta)?, hot.body.clone());
        let kept = KeptPage { rest: None, bytes: body.len() as u64, first: Some(body), at: 0 };
        Some((meta, Box::new(PageHit::Kept(kept))))
    }

    fn found_kept(&'static self, key: PageKey) -> Option<(CacheMeta, HitHandler)> {
        let entry = self.pages.find(&key)?;
        let read = read_meta(&entry.meta).ok_or(std::io::ErrorKind::InvalidData.into());
        let first = |meta| Ok((meta, Bytes::from(entry.blocks(0, BLOCKS_AT_ONCE)?)));
        match read.and_then(first) {
            Ok((meta, first)) => {
                let bytes = entry.body_bytes;
                if first.len() as u64 == bytes {
                    self.pages.keep_hot(&key, &entry, first.clone());
                }
                let (pages, readers) = (Arc::clone(&self.pages), &self.readers);
                let rest = Rest { pages, readers, key, entry: Arc::new(entry) };
                let kept = KeptPage { rest: Some(rest), bytes, first: Some(first), at: 0 };
                Some((meta, Box::new(PageHit::Kept(kept))))
            }
            Err(error) => {
                self.pages.remove_damaged(&key, &error);
                None
            }
        }
    }
}

impl Lingering {
    fn take_first(&mut self) -> Option<Arc<Fill>> {
        let first = self.pages.pop_front()?;
        self.bytes -= first.bytes;
        Some(first.fill)
    }
}

/// pingora's lock, with a second look. pingora looks for a page first and asks
/// for the lock then; who finds nothing, and is late for the lock of the one who
/// was about to begin the page, would begin it a second time.
pub(super) struct Lock {
    inner: CacheLock,
    storage: &'static PageStorage,
}

impl Lock {
    pub(super) fn new(storage: &'static PageStorage, age_max: Duration) -> Self {
        Self { inner: CacheLock::new(age_max), storage }
    }
}

impl CacheKeyLock for Lock {
    fn lock(&self, key: &CacheKey, stale_writer: bool) -> Locked {
        match self.inner.lock(key, stale_writer) {
            Locked::Write(permit) if self.storage.is_there(key, stale_writer) => {
                // A lock to wait for that is released at once: it looks again.
                let wait = self.inner.lock(key, stale_writer);
                self.inner.release(key, permit, LockStatus::Done);
                wait
            }
            locked => locked,
        }
    }

    fn release(&self, key: &CacheKey, permit: WritePermit, reason: LockStatus) {
        self.inner.release(key, permit, reason);
    }
}

#[async_trait]
impl HandleHit for PageHit {
    async fn read_body(&mut self) -> Result<Option<Bytes>> {
        match self {
            Self::Live(reader) => reader
                .next()
                .await
                .map_err(|over| Error::because(ErrorType::ConnectionClosed, "the page ended early", over)),
            Self::Kept(page) => page.next().await,
        }
    }

    async fn finish(
        self: Box<Self>,
        _storage: &'static (dyn Storage + Sync),
        _key: &CacheKey,
        _trace: &SpanHandle,
    ) -> Result<()> {
        Ok(())
    }

    fn as_any(&self) -> &(dyn Any + Send + Sync) {
        self
    }

    fn as_any_mut(&mut self) -> &mut (dyn Any + Send + Sync) {
        self
    }
}

impl KeptPage {
    async fn next(&mut self) -> Result<Option<Bytes>> {
        let bytes = match (self.first.take(), &self.rest) {
            (Some(first), _) => first,
            (None, Some(rest)) if self.at < self.bytes => rest.read(self.at).await?,
            (None, _) => return Ok(None),
        };
        self.at += bytes.len() as u64;
        Ok((!bytes.is_empty()).then_some(bytes))
    }
}

impl Rest {
    async fn read(&self, at: u64) -> Result<Bytes> {
        let (entry, pages, key) = (Arc::clone(&self.entry), Arc::clone(&self.pages), self.key.clone());
        let read = self.readers.spawn_blocking(move || {
            let read = entry.blocks(at, BLOCKS_AT_ONCE);
            if let Err(error) = &read {
                pages.remove_damaged(&key, error);
            }
            read
        });
        let bytes = read.await.map_err(std::io::Error::other).flatten();
        bytes
            .map(Bytes::from)
            .map_err(|error| Error::because(ErrorType::ReadError, "a page in the cache is damaged", error))
    }
}

/// What pingora has in hand while a page is under way.
struct PageMiss {
    storage: &'static PageStorage,
    id: u64,
    tag: U64WriteId,
}

#[async_trait]
impl HandleMiss for PageMiss {
    async fn write_body(&mut self, _data: Bytes, _end: bool) -> Result<()> {
        Ok(())
    }

    async fn finish(self: Box<Self>) -> Result<MissFinishType> {
        Ok(MissFinishType::Created(0))
    }

    fn streaming_write_tag(&self) -> Option<&[u8]> {
        Some(self.tag.as_bytes())
    }
}

impl Drop for PageMiss {
    fn drop(&mut self) {
        lock(&self.storage.writing).remove(&self.id);
    }
}

/// The key of a page as pingora is told it.
pub(super) fn cache_key(key: &PageKey, arrived: SystemTime) -> CacheKey {
    let mut cache_key = CacheKey::new(key.text(), key.repository());
    // pingora's own hash leaves the repository out, which is its user tag.
    cache_key.set_primary_bin_override(key.hash());
    cache_key.extensions.insert(Wanted { page: key.clone(), arrived });
    cache_key
}

/// What a key is for; all that pingora has are ours.
fn wanted(key: &CacheKey) -> Option<&Wanted> {
    key.extensions.get()
}

/// The meta of a page under way. It is never compared with the clock: whoever
/// finds the page may have it.
fn meta_of_live(fill: &Fill) -> Option<CacheMeta> {
    let begun = fill.begun()?;
    Some(CacheMeta::new(begun.at, begun.at, 0, 0, begun.head.clone()))
}

/// The meta of a page that is kept, as bytes.
pub(super) fn write_meta(fill: &Fill, kept: Kept) -> Option<Vec<u8>> {
    let stale_if_error = u32::try_from(kept.stale_if_error.as_secs()).unwrap_or(u32::MAX);
    let begun = fill.begun()?;
    let meta = CacheMeta::new(kept.fresh_until, begun.at, 0, stale_if_error, begun.head.clone());
    let (internal, header) = meta.serialize().ok()?;
    let mut bytes = u32::try_from(internal.len()).ok()?.to_le_bytes().to_vec();
    bytes.extend(internal);
    bytes.extend(header);
    Some(bytes)
}

fn read_meta(bytes: &[u8]) -> Option<CacheMeta> {
    let (length, rest) = bytes.split_first_chunk()?;
    let (internal, header) = rest.split_at_checked(u32::from_le_bytes(*length) as usize)?;
    CacheMeta::deserialize(internal, header).ok()
}

fn take_out(live: &mut HashMap<PageKey, Arc<Fill>>, fill: &Fill) {
    fill.is_retired.store(true, Ordering::Relaxed);
    if live.get(&fill.key).is_some_and(|known| known.id == fill.id) {
        live.remove(&fill.key);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Blocks of 64 KiB that are read from the disk in one go. A page of no more is
/// held in memory when it has been asked for.
const BLOCKS_AT_ONCE: usize = 4;

/// Pages that are read from the disk at once, each by a thread with a heap of its own.
const READS_AT_ONCE: usize = 8;

/// How long a page that has ended and is not kept, or that nobody reads yet,
/// waits for those who came while it was under way and have not been told.
pub(in crate::proxy) const LINGER: Duration = Duration::from_secs(2);
/// Most that pages take in memory that have ended and wait like that, in bytes: what stays in the
/// cache of a processor, since the next pages take the place of those that go.
const LINGERING_BYTES_MAX: u64 = 1 << 20;
/// Most of them, also of those that lie in files.
const LINGERING_PAGES_MAX: usize = 256;
