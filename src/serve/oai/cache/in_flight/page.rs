//! A page in flight: written once at the speed of its source, and read by any number of harvesters at theirs.
//!
//! The first MiB is held in memory, and a longer page in a file. So is a page for which all pages in flight together
//! leave no room in memory: its readers may be slow. A complete page may become a cached page.
//!
//! Invariants: a reader receives all bytes in order, and then the end or an error; a truncated page never ends
//! normally. The size is limited by `entry_bytes_max`. A longer page is not cached: it becomes a ring, which no
//! further reader joins, and in which the source waits for the slowest reader. If the disk fails, the rest of the
//! page becomes a ring in memory.

use super::memory::{MemoryShare, SharedMemory};
use crate::serve::oai::cache::rules::CachePlan;
use bytes::Bytes;
use http::StatusCode;
use oaimend_base::clock;
use oaimend_files::{PageKey, Part};
use oaimend_repository::ByteRope;
use pingora_http::ResponseHeader;
use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, SystemTime};
use tokio::sync::Notify;

/// One page in flight.
#[derive(Debug)]
pub(in crate::serve::oai) struct InFlightPage {
    /// Distinguishes it from other pages with the same key.
    pub(in crate::serve::oai::cache) id: u64,
    pub(in crate::serve::oai::cache) key: PageKey,
    pub(in crate::serve::oai::cache) plan: CachePlan,
    pub(super) begun: OnceLock<ResponseStart>,
    state: Mutex<State>,
    /// No request joins it any more. Changed only while the table of the storage is locked.
    pub(in crate::serve::oai::cache) is_retired: AtomicBool,
    /// Notified when there is more to read, or the end.
    pub(super) progress: Notify,
    /// Notified when a reader has made room, or has left.
    pub(super) room: Notify,
}

/// The start of a response.
#[derive(Debug)]
pub(in crate::serve::oai) struct ResponseStart {
    pub(in crate::serve::oai) head: ResponseHeader,
    /// When the header was received.
    pub(in crate::serve::oai::cache) at: SystemTime,
}

#[derive(Debug)]
pub(super) struct State {
    pub(super) held: Held,
    /// The memory of `held` while it is [`Held::Memory`].
    share: MemoryShare,
    /// Maximum number of bytes that are held.
    pub(super) capacity: u64,
    /// Bytes received so far.
    pub(super) written: u64,
    /// The position of each reader.
    pub(super) readers: BTreeMap<u64, u64>,
    pub(super) next_reader: u64,
    /// Must not be cached: it was purged while in flight, or it is too long.
    pub(super) is_passing: bool,
    /// Longer than the capacity: it is a ring.
    pub(super) is_ring: bool,
    /// Every byte was received. The page ends after it was cached, or found not to be cacheable.
    pub(super) is_written: bool,
    pub(super) end: End,
}

/// Where the bytes are held.
#[derive(Debug)]
pub(super) enum Held {
    /// In memory, as received.
    Memory(ByteRope),
    /// A ring in memory: byte `n` of the page is at `n % capacity`.
    Ring(Vec<u8>),
    /// In a file, which may be a ring too.
    File(Arc<Part>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// The page continues.
    Open,
    /// Complete at that time. Requests that arrived before may share it, and every request until `answers_until`.
    Whole { at: SystemTime, answers_until: Option<SystemTime> },
    /// Truncated.
    Broken,
}

/// Why a page ends early.
#[derive(Debug, thiserror::Error)]
pub(in crate::serve::oai) enum PageError {
    #[error("no reader is left, and the page is not to be cached")]
    Unwanted,
    #[error("the page is truncated")]
    Broken,
    #[error("the file of a page in flight failed: {0}; check space and rights of the data folder")]
    Disk(#[from] std::io::Error),
    #[error("a page in the cache is damaged: {0}")]
    Damaged(std::io::Error),
}

/// The parameters of a page.
pub(in crate::serve::oai::cache) struct InFlightOptions {
    pub(in crate::serve::oai::cache) id: u64,
    pub(in crate::serve::oai::cache) key: PageKey,
    pub(in crate::serve::oai::cache) plan: CachePlan,
    /// Maximum number of bytes that are held.
    pub(in crate::serve::oai::cache) capacity: u64,
}

impl InFlightPage {
    pub(super) fn new(options: InFlightOptions, memory: &SharedMemory) -> Self {
        let InFlightOptions { id, key, plan, capacity } = options;
        let state = State {
            held: Held::Memory(ByteRope::default()),
            share: memory.share(),
            capacity: capacity.max(PIECE_BYTES as u64),
            written: 0,
            readers: BTreeMap::new(),
            next_reader: 0,
            is_passing: !plan.is_kept,
            is_ring: false,
            is_written: false,
            end: End::Open,
        };
        Self {
            id,
            key,
            plan,
            begun: OnceLock::new(),
            state: Mutex::new(state),
            is_retired: AtomicBool::new(false),
            progress: Notify::new(),
            room: Notify::new(),
        }
    }

    /// Whether it has started, has no reader and is not to be cached. Until it starts it is wanted, because a
    /// harvester that timed out retries.
    pub(in crate::serve::oai::cache) fn is_unwanted(&self) -> bool {
        let state = self.state();
        self.begun().is_some() && state.is_passing && state.readers.is_empty()
    }

    /// Its start, once the header was received.
    pub(in crate::serve::oai) fn begun(&self) -> Option<&ResponseStart> {
        self.begun.get()
    }

    /// When it started, if it will be cached once it is complete.
    pub(in crate::serve::oai) fn began_if_kept(&self) -> Option<SystemTime> {
        let begun = self.begun().filter(|begun| self.plan.is_kept && begun.head.status == StatusCode::OK)?;
        Some(begun.at)
    }

    /// Its age, in seconds.
    pub(in crate::serve::oai) fn age_secs(&self) -> u64 {
        let age = self.begun().and_then(|begun| clock::now().duration_since(begun.at).ok());
        age.unwrap_or_default().as_secs()
    }

    /// Waits for its header.
    ///
    /// # Errors
    ///
    /// The session with the source ended without one.
    pub(in crate::serve::oai) async fn head(&self) -> Result<&ResponseHeader, PageError> {
        let known = || match (self.begun(), self.ended()) {
            (Some(begun), _) => Some(Ok(&begun.head)),
            (None, Some(_)) => Some(Err(PageError::Broken)),
            (None, None) => None,
        };
        until(&self.progress, known).await
    }

    /// Whether it may answer a request that arrived at `arrived`.
    pub(in crate::serve::oai::cache) fn is_for(&self, arrived: SystemTime, now: SystemTime) -> bool {
        let state = self.state();
        let is_local_or_trusted =
            self.plan.is_shared || self.begun().is_none_or(|begun| arrived <= begun.at + JOIN_WINDOW);
        match state.end {
            _ if state.is_ring => false,
            End::Open => is_local_or_trusted,
            End::Whole { at, answers_until } => {
                (is_local_or_trusted && arrived <= at) || answers_until.is_some_and(|until| now < until)
            }
            End::Broken => false,
        }
    }

    /// Its length, once it is complete.
    pub(in crate::serve::oai) fn whole_bytes(&self) -> Option<u64> {
        let state = self.state();
        matches!(state.end, End::Whole { .. }).then_some(state.written)
    }

    /// Whether it was complete before a time.
    pub(in crate::serve::oai::cache) fn was_over(&self, at: SystemTime) -> bool {
        matches!(self.state().end, End::Whole { at: ended, .. } if ended < at)
    }

    /// Whether every byte was received; the page may still be on its way to the disk.
    pub(in crate::serve::oai) fn is_written(&self) -> bool {
        self.state().is_written
    }

    /// Its size in memory, in bytes.
    pub(in crate::serve::oai::cache) fn memory_bytes(&self) -> u64 {
        match &self.state().held {
            Held::Memory(memory) => memory.len() as u64,
            Held::Ring(ring) => ring.len() as u64,
            Held::File(_) => 0,
        }
    }

    /// Waits until it has ended, or is too long to be held as a whole.
    pub(in crate::serve::oai) async fn ended_or_too_long(&self) {
        until(&self.progress, || (self.ended().is_some() || self.is_too_long()).then_some(())).await;
    }

    /// Whether it is too long to be held as a whole.
    pub(in crate::serve::oai) fn is_too_long(&self) -> bool {
        self.state().is_ring
    }

    /// Whether it is complete, once it has ended.
    pub(in crate::serve::oai) fn ended(&self) -> Option<bool> {
        match self.state().end {
            End::Open => None,
            End::Whole { .. } => Some(true),
            End::Broken => Some(false),
        }
    }

    /// Prevents it from being cached.
    pub(in crate::serve::oai::cache) fn purge(&self) {
        self.state().is_passing = true;
        self.room.notify_waiters();
    }

    pub(super) fn leave(&self, reader: u64) {
        self.state().readers.remove(&reader);
        self.room.notify_waiters();
    }

    pub(super) fn finish(&self, end: End) {
        let mut state = self.state();
        if state.end == End::Open {
            state.end = end;
        }
        drop(state);
        self.progress.notify_waiters();
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Whether `count` more bytes fit. Makes a ring of a page that exceeds the capacity.
    pub(super) fn has_room(&mut self, count: u64) -> Result<bool, PageError> {
        if self.written + count <= self.capacity {
            return Ok(true);
        }
        self.is_ring = true;
        self.is_passing = true;
        let slowest = self.readers.values().copied().min().ok_or(PageError::Unwanted)?;
        Ok(self.written + count - slowest <= self.capacity)
    }

    /// Replaces the file by a ring in memory, once no reader needs the file.
    pub(super) fn forget_file(&mut self) -> Result<bool, PageError> {
        self.is_ring = true;
        self.is_passing = true;
        let slowest = self.readers.values().copied().min().ok_or(PageError::Unwanted)?;
        if matches!(self.held, Held::File(_)) {
            if slowest < self.written {
                return Ok(false);
            }
            self.held = Held::Ring(vec![0; usize::try_from(MEMORY_BYTES).unwrap_or_default()]);
        }
        self.capacity = MEMORY_BYTES;
        Ok(true)
    }

    /// Maximum number of bytes that are added at once.
    pub(super) fn piece_bytes(&self) -> usize {
        let fits = self.written + MEMORY_PIECE_BYTES as u64 <= self.capacity.min(MEMORY_BYTES);
        if fits && matches!(self.held, Held::Memory(_)) { MEMORY_PIECE_BYTES } else { PIECE_BYTES }
    }

    /// Holds the bytes in this file, which contains those that were in memory.
    pub(super) fn move_to(&mut self, part: Arc<Part>) {
        self.held = Held::File(part);
        self.share.release();
    }

    /// The file with the bytes, or the bytes to write to a new one first.
    pub(super) fn part(&self) -> Result<Arc<Part>, ByteRope> {
        match &self.held {
            Held::File(part) => Ok(Arc::clone(part)),
            Held::Memory(memory) => Err(memory.clone()),
            // A ring in memory is not moved to a file.
            Held::Ring(_) => Err(ByteRope::default()),
        }
    }

    /// Adds bytes in memory, unless they belong in a file.
    pub(super) fn remember(&mut self, bytes: &Bytes) -> bool {
        let (written, capacity) = (self.written, self.capacity);
        if let Held::Memory(memory) = &mut self.held {
            let count = bytes.len() as u64;
            let is_short = written + count <= MEMORY_BYTES.min(capacity);
            if is_short && self.share.grow(count) {
                memory.push(bytes.clone());
                return true;
            }
            if is_short || capacity > MEMORY_BYTES {
                return false;
            }
            self.held = Held::Ring(memory.to_vec());
            self.share.release();
        }
        let Held::Ring(memory) = &mut self.held else { return false };
        for (at, run) in runs(written, bytes, capacity) {
            let at = index(at);
            let known = run.len().min(memory.len().saturating_sub(at));
            let (over, behind) = run.split_at(known);
            if let Some(place) = memory.get_mut(at..at + known) {
                place.copy_from_slice(over);
            }
            memory.extend_from_slice(behind);
        }
        true
    }
}

/// An index in memory; `usize::MAX` for an impossible one.
pub(super) fn index(at: u64) -> usize {
    usize::try_from(at).unwrap_or(usize::MAX)
}

/// The one or two runs of bytes in a ring, each with its offset.
pub(super) fn runs(written: u64, bytes: &[u8], capacity: u64) -> impl Iterator<Item = (u64, &[u8])> {
    let at = written % capacity;
    let fits = usize::try_from(capacity - at).unwrap_or(usize::MAX).min(bytes.len());
    let (first, second) = bytes.split_at(fits);
    [(at, first), (0, second)].into_iter().filter(|(_, run)| !run.is_empty())
}

/// Waits for a result; checks again at each notification.
pub(super) async fn until<T>(notify: &Notify, mut answer: impl FnMut() -> Option<T>) -> T {
    loop {
        // Created before the check, so that a later notification is not missed.
        let again = notify.notified();
        if let Some(answer) = answer() {
            return answer;
        }
        again.await;
    }
}

pub(super) fn once_true(is_so: Result<bool, PageError>) -> Option<Result<(), PageError>> {
    is_so.map(|is_so| is_so.then_some(())).transpose()
}

/// Bytes of one read or write of a file. A slow reader holds as many.
pub(super) const PIECE_BYTES: usize = 64 << 10;
/// Bytes of one piece in memory. Its readers share it, and send it in one write.
pub(super) const MEMORY_PIECE_BYTES: usize = 128 << 10;
/// Longest page in memory, in bytes; longer ones are in a file.
const MEMORY_BYTES: u64 = 1 << 20;
/// How long after its start the first page of a list may be shared.
const JOIN_WINDOW: Duration = Duration::from_secs(5);
