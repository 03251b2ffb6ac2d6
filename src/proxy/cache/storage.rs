//! The pages under way, and those on disk as the cache finds them.
//!
//! Must stay true: a page is in the table of those under way from the request that begins it until it is on disk,
//! has lingered, or is over; a reader whose page breaks off gets an error, which breaks its answer off.

use super::fill::{Fill, Over, Reader, Recipe, Writer};
use super::rules::Kept;
use crate::clock;
use crate::store::{PageEntry, PageKey, Pages};
use bytes::Bytes;
use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};
use tokio::runtime::Runtime;

/// The pages on disk, and those under way.
#[derive(Debug)]
pub(super) struct PageStorage {
    pub(super) pages: Arc<Pages>,
    /// The pages under way that may be shared, the last one for each key.
    live: Mutex<HashMap<PageKey, Arc<Fill>>>,
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

/// How a request comes to a page under way.
pub(super) enum Joined {
    /// Another one began it.
    Other(Reader),
    /// It begins it.
    First(Reader, Writer),
    /// The page has ended since the request looked for it.
    Again,
}

/// What a request has found on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OnDisk {
    /// No page. One may have come since.
    Nothing,
    /// A page that stands in if the source fails, which it may have done since.
    Old,
    /// No page that can answer, and the request does not look again.
    Final,
}

/// A page that is kept on its way to a harvester.
pub(in crate::proxy) struct KeptPage {
    pub(super) meta: Meta,
    /// Where what is behind `first` lies.
    rest: Option<Rest>,
    /// What was read with the head, for most pages all of it.
    first: Option<Bytes>,
    /// Length of all of it, in bytes.
    pub(in crate::proxy) bytes: u64,
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

    /// A reader of the page that is under way, or of one that begins with this. `found` says what the request has
    /// found on disk: another look may find more.
    pub(super) fn join(&self, recipe: Recipe, arrived: SystemTime, found: OnDisk) -> Joined {
        let mut live = lock(&self.live);
        if let Some(reader) = live.get(&recipe.key).and_then(|fill| reader_for(fill, arrived)) {
            return Joined::Other(reader);
        }
        let has_come = match found {
            OnDisk::Nothing => recipe.plan.is_kept && self.pages.is_known(&recipe.key),
            OnDisk::Old => self.has_failed(&recipe.key),
            OnDisk::Final => false,
        };
        if has_come {
            return Joined::Again;
        }
        let writer = Fill::begin(recipe, Arc::clone(&self.pages));
        live.insert(writer.fill.key.clone(), Arc::clone(&writer.fill));
        Joined::First(writer.reader(), writer)
    }

    /// A reader of the page that is under way. Not if that is a failure, or may become one, and there is a page on
    /// disk: an old one may stand in.
    pub(super) fn join_live(&self, key: &PageKey, arrived: SystemTime) -> Option<Reader> {
        // Locked until the reader is counted: a page that nobody reads may be retired.
        let live = lock(&self.live);
        let fill = live.get(key)?;
        let may_fail = fill.begun().is_none_or(|begun| begun.head.status.is_server_error());
        if may_fail && !self.pages.is_absent(key) {
            return None;
        }
        reader_for(fill, arrived)
    }

    /// The page on disk, or its copy in memory, however old it is.
    pub(super) async fn find_kept(&'static self, key: &PageKey) -> Option<KeptPage> {
        if self.pages.is_absent(key) {
            return None;
        }
        if let Some(found) = self.find_hot(key) {
            return Some(found);
        }
        let key = key.clone();
        // A look that panics has found nothing.
        self.readers.spawn_blocking(move || self.read_kept(key)).await.ok().flatten()
    }

    fn find_hot(&self, key: &PageKey) -> Option<KeptPage> {
        let hot = self.pages.hot(key)?;
        let (meta, body) = (Meta::from_bytes(&hot.meta)?, hot.body.clone());
        Some(KeptPage { meta, rest: None, bytes: body.len() as u64, first: Some(body), at: 0 })
    }

    fn read_kept(&'static self, key: PageKey) -> Option<KeptPage> {
        let entry = self.pages.find(&key)?;
        let meta = Meta::from_bytes(&entry.meta).ok_or(std::io::ErrorKind::InvalidData.into());
        let first = |meta| Ok((meta, Bytes::from(entry.blocks(0, BLOCKS_AT_ONCE)?)));
        match meta.and_then(first) {
            Ok((meta, first)) => {
                let bytes = entry.body_bytes;
                if first.len() as u64 == bytes {
                    self.pages.keep_hot(&key, &entry, first.clone());
                }
                let (pages, readers) = (Arc::clone(&self.pages), &self.readers);
                let rest = Rest { pages, readers, key, entry: Arc::new(entry) };
                Some(KeptPage { meta, rest: Some(rest), bytes, first: Some(first), at: 0 })
            }
            Err(error) => {
                self.pages.remove_damaged(&key, &error);
                None
            }
        }
    }
}

/// A reader of a page under way, if that may answer a request that came at `arrived`.
fn reader_for(fill: &Arc<Fill>, arrived: SystemTime) -> Option<Reader> {
    fill.is_for(arrived, clock::now()).then(|| fill.reader()).flatten()
}

impl Lingering {
    fn take_first(&mut self) -> Option<Arc<Fill>> {
        let first = self.pages.pop_front()?;
        self.bytes -= first.bytes;
        Some(first.fill)
    }
}

impl KeptPage {
    /// How long ago it began, in seconds.
    pub(in crate::proxy) fn age_secs(&self) -> u64 {
        clock::now().duration_since(self.meta.began).unwrap_or_default().as_secs()
    }

    /// The next bytes; `None` is the end.
    ///
    /// # Errors
    ///
    /// The file is damaged, or the disk fails.
    pub(in crate::proxy) async fn next(&mut self) -> Result<Option<Bytes>, Over> {
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
    async fn read(&self, at: u64) -> Result<Bytes, Over> {
        let (entry, pages, key) = (Arc::clone(&self.entry), Arc::clone(&self.pages), self.key.clone());
        let read = self.readers.spawn_blocking(move || {
            let read = entry.blocks(at, BLOCKS_AT_ONCE);
            if let Err(error) = &read {
                pages.remove_damaged(&key, error);
            }
            read
        });
        let bytes = read.await.map_err(std::io::Error::other).flatten();
        bytes.map(Bytes::from).map_err(Over::Damaged)
    }
}

/// What is kept beside the body of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Meta {
    began: SystemTime,
    kept: Kept,
}

impl Meta {
    pub(super) fn new(began: SystemTime, kept: Kept) -> Self {
        Self { began, kept }
    }

    /// Whether the page is an answer at that time.
    pub(super) fn is_fresh(&self, now: SystemTime) -> bool {
        now < self.kept.fresh_until
    }

    /// Whether the page is an answer at that time if the source fails.
    pub(super) fn stands_in(&self, now: SystemTime) -> bool {
        now < self.kept.fresh_until + self.kept.stale_if_error
    }

    /// As it is written beside the body.
    pub(super) fn to_bytes(self) -> Vec<u8> {
        let Kept { fresh_until, stale_if_error } = self.kept;
        let times = [since_1970(self.began), since_1970(fresh_until), stale_if_error];
        times.iter().flat_map(|time| nanos(*time).to_le_bytes()).collect()
    }

    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (times, []) = bytes.as_chunks::<8>() else { return None };
        let &[began, fresh_until, stale_if_error] = times else { return None };
        let time = |nanos| Duration::from_nanos(u64::from_le_bytes(nanos));
        let at = |nanos| SystemTime::UNIX_EPOCH + time(nanos);
        let kept = Kept { fresh_until: at(fresh_until), stale_if_error: time(stale_if_error) };
        Some(Self { began: at(began), kept })
    }
}

fn since_1970(time: SystemTime) -> Duration {
    time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default()
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
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
pub(super) const LINGER: Duration = Duration::from_secs(2);
/// Most that pages take in memory that have ended and wait like that, in bytes: what stays in the
/// cache of a processor, since the next pages take the place of those that go.
const LINGERING_BYTES_MAX: u64 = 1 << 20;
/// Most of them, also of those that lie in files.
const LINGERING_PAGES_MAX: usize = 256;
